//! Tests of cli, one file per feature: the real program against a small scripted server.

mod answers;
mod approvals;
mod audit;
mod contract;
mod downloads;
mod problems;
mod runs;
mod server;
mod sessions;
mod variables;
mod workspaces;
