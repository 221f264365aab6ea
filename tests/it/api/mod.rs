//! Tests of api, one file per feature.
