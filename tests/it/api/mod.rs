//! Tests of api, one file per feature.

mod audit;
mod auth;
mod business_units;
mod repositories;
mod runs;
mod shell;
mod smart_http;
mod tenants;
mod workspaces;
