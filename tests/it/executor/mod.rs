//! The real `executor-task` with the real git and terraform, against a small `callback` in this process.

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod apply;
mod clone;
pub(crate) mod confinement;
mod credentials;
pub(crate) mod fake_callback;
pub(crate) mod fake_tool;
mod floods;
mod foreign_code;
mod git_access;
mod hostile;
mod identity;
mod identity_tokens;
mod launcher;
mod plan;
mod stopping;
pub(crate) mod tools;
mod variables;
pub(crate) mod world;
