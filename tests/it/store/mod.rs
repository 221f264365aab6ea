//! Tests of store, one file per feature.

mod audit;
mod blobs;
mod grants;
mod idempotency;
mod idle;
pub mod object_stores;
mod plans;
mod pooler;
mod round_trips;
mod schema;
mod sessions;
pub mod state_client;
mod state_refusals;
mod state_uploads;
mod terraform_client;
mod tfstates;
mod tls;
mod workspaces;
