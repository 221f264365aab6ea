//! Tests of reconcile, one file per feature.
