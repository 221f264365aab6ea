//! Tests of api, one file per feature.

mod api_keys;
mod audit;
mod auth;
mod business_units;
mod config;
mod integrations;
mod jwt_secrets;
mod permissions;
mod repeated;
mod repositories;
mod runs;
mod shell;
mod smart_http;
mod state;
mod tenants;
mod traces;
mod wakes;
mod workspaces;
