//! Tests of executor, one file per feature.
