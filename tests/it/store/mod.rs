//! Tests of store, one file per feature.

mod audit;
mod audit_restore;
mod blob_faults;
mod blobs;
mod checkpoint_signers;
pub mod fake_kms;
mod function_program;
mod gcs_uploads;
mod grants;
mod hooked_store;
mod idempotency;
mod idle;
mod lock_waiters;
pub mod object_stores;
mod plans;
mod pooler;
pub mod rekeys;
mod resources;
mod root_keys;
mod round_trips;
mod schema;
mod sealed_columns;
mod sessions;
pub mod state_client;
mod state_lock_infos;
mod state_memory;
mod state_people_uploads;
mod state_refusals;
mod state_retention;
mod state_sharing;
mod state_stores;
mod state_uploads;
mod state_versions;
pub mod terraform_client;
mod tfstates;
mod tls;
mod token_signers;
mod workspaces;

/// Whoever may read the whole audit log.
pub fn audit_context() -> plumbline_core::access::Ctx {
    audit::auditor(plumbline_core::access::Scope::All)
}
