//! API keys: credentials of programs.
//!
//! Invariants: a key belongs to one business unit, whatever a request's header names. It acts with the lesser of what its
//! owner may do there today and its capability; it is dead once the owner cannot act in the unit. Only the digest of a
//! token is stored. A rotated key never lives longer than it would have, and is rotated once. A key with a list of
//! workspaces reaches nothing else, also when all of them are gone.
//!
//! Minting takes no idempotency key: the answer holds a secret, which is stored nowhere.

mod error;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;

pub use error::ApiKeyError;
pub use model::{ApiKeyView, MintedKey, NewApiKey, Rotation};
pub use rules::TOKEN_PREFIX;
