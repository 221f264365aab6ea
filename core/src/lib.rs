//! The whole of Plumbline except its edges.
//!
//! One folder per feature. Inside a feature, `model`, `lifecycle` and `rules` are pure (no clock, randomness,
//! async or I/O) and compile without the `store` feature; `store` holds SQL, `service` holds use cases, `tasks`
//! holds what a queued task of the feature does. `ARCHITECTURE.md` has the map and the invariants.

#![cfg_attr(
    not(feature = "store"),
    expect(
        dead_code,
        reason = "the pure half is compiled alone only to prove its layering; services use the rest"
    )
)]

pub mod access;
pub mod api_keys;
pub mod audit;
pub mod business_units;
pub mod ci_logins;
pub mod cloud_accounts;
pub mod config;
pub mod digest;
pub mod discovery;
pub mod executors;
pub mod git_credentials;
pub mod idempotency;
pub mod ids;
pub mod issuer_keys;
pub mod limits;
pub mod oidc_logins;
pub mod page;
pub mod presence;
pub mod protocol;
pub mod rekeys;
pub mod resources;
pub mod runs;
pub mod secrets;
pub mod sessions;
pub mod state_stores;
pub mod tasks;
pub mod text;
pub mod tfstates;
pub mod users;
pub mod variables;
pub mod workspaces;

#[cfg(feature = "store")]
pub mod adapters;
#[cfg(feature = "store")]
pub mod callers;
#[cfg(feature = "store")]
pub mod db;
#[cfg(feature = "store")]
pub mod deps;
#[cfg(feature = "store")]
pub mod dispatch;
#[cfg(feature = "store")]
pub mod ports;
#[cfg(feature = "store")]
pub mod sweeps;

#[cfg(feature = "store")]
pub use deps::{Deps, Endpoints};
