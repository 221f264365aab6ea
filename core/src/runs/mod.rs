//! Runs: one pass of a command over a workspace.

pub mod redaction;
