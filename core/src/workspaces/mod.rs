//! Workspaces: one Terraform directory (or Helm chart) of one repository, in one account, region and environment.
//!
//! Invariants: the identity (account, region, environment, repository, directory) is unique in a business unit. At
//! most one run that can change a workspace is active in it (`active_run_id`). A blocked workspace takes no such run
//! until a person has resolved it, and a locked one none until its holder or an admin unlocks it. Settings are validated where they are made ([`Settings::validate`]); only a
//! validated value can be stored.

mod addresses;
mod model;
mod refs;
mod repo_url;
mod rules;

#[cfg(feature = "store")]
pub mod deletion;
#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
pub mod imports;
#[cfg(feature = "store")]
pub mod locks;
#[cfg(feature = "store")]
mod locks_store;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;

pub use addresses::may_reach;
#[cfg(feature = "store")]
pub use error::WorkspaceError;
pub(crate) use model::present;
pub use model::{
    Blocked, DriftStatus, Locked, NewWorkspace, PathStatus, StateWrites, Tool, Workspace, WorkspaceChange,
    WorkspaceFilter, WorkspaceKind,
};
pub use refs::check_branch;
pub use repo_url::{RepoUrl, Transport};
pub use rules::{InvalidField, Links, LocalRepos, Settings, TagFilter, check_version, check_working_dir};
