//! Sign-in of CI systems: a job trades the identity token of its own system for a short API key. Nothing secret is kept
//! in CI.
//!
//! A business unit says by rules whom it trusts: issuer, audience and subject of the token, and what the key may do.
//! Invariants: a token is believed only if one of its issuer's published keys signed it and its time is not over by the
//! database's clock; its algorithm is one with a public key; one rule, and no more, says what the key may do. Keys of an
//! issuer are fetched by a short task, never by the request: whoever sends us tokens decides nothing about where we go.

mod error;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
mod tokens;

pub use error::CiLoginError;
pub use model::{CiKey, CiLogin, NewTrustRule, TrustRuleView};
