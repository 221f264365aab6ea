//! Looking into a repository for directories that could become workspaces, and importing them.
//!
//! The algorithm ([`discover`]) is pure: paths of files in, candidates and oddities out. What looks like a mistake is
//! reported, never dropped. Invariant: a login that comes with a request is sealed into its task and goes nowhere
//! else: not in clear into the database, not into logs, addresses or arguments.

mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;

pub use model::{
    Candidate, DiscoverRequest, Discovered, ImportEntry, ImportRequest, ImportResult, ImportedWorkspace,
    Oddity, SkippedEntry,
};
pub use rules::{CANDIDATES_MAX, Found, candidate_at, discover, repository_name};
