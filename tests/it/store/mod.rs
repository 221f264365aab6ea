//! Tests of store, one file per feature.

mod audit;
mod idempotency;
mod sessions;
