//! Tests of cli, one file per feature.
