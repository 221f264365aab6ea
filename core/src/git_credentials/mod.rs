//! How Git is let into the repositories of a business unit: tokens, SSH keys with pinned host keys, GitHub Apps.
//!
//! A credential belongs to one unit and one host, and covers the repositories below its path prefix; the longest prefix
//! wins. Invariants: it is used for no other unit and sent to no other host; there is none for the whole platform to
//! fall back to; a secret can be replaced or deleted and never read; where it would go changes only together with
//! the secret itself; every use is recorded. It reaches Git through files and environments that Git alone reads.

mod app_keys;
#[cfg(feature = "git-client")]
pub mod app_tokens;
#[cfg(feature = "store")]
mod error;
mod model;
mod pem;
mod places;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "git-client")]
pub mod ssh;
mod ssh_keys;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
pub mod uses;

#[cfg(feature = "store")]
pub use error::GitCredentialError;
pub use model::{
    AppKey, GitCredential, GitCredentialChange, GitCredentialKind, GitCredentialUsage, GitSecret,
    MaskedSecret, NewGitCredential, TestGitCredential, TestOutcome, TestResult, UsingWorkspace,
};
pub use places::{Place, best, covers};
pub use rules::Settings;
