//! Tests of store, one file per feature.

mod audit;
mod grants;
mod idempotency;
mod schema;
mod sessions;
mod workspaces;
