//! Tests of cli, one file per feature: the real program against a small scripted server.

mod answers;
mod approvals;
mod audit;
mod audit_files;
mod cloud_accounts;
mod config;
mod contract;
mod downloads;
mod git_credentials;
mod logins;
mod problems;
mod runs;
pub mod server;
mod sessions;
mod users;
mod variables;
mod workspaces;
