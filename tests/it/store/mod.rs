//! Tests of store, one file per feature.
