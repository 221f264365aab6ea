//! Tests of queue, one file per feature.
