//! Tests of api, one file per feature.

mod api_keys;
mod archived;
mod audit;
mod auth;
mod business_units;
pub mod ci_logins;
pub(crate) mod cloud_accounts;
mod config;
mod git_credentials;
mod integrations;
mod jwt_secrets;
mod permissions;
mod presence;
mod rekeys;
mod repeated;
mod repositories;
mod runs;
mod sessions;
mod shell;
mod smart_http;
mod state;
mod tenants;
mod traces;
mod users;
mod variables;
mod wakes;
mod workspaces;
