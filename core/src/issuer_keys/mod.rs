//! An OIDC issuer of our own: clouds trust its tokens, so that runs need no stored keys.
//!
//! Invariants: a private key is opened only by the function that signs; what is published of it is its public half. One
//! key signs at a time; the next one is published long before it does, and the one before it until its tokens are over.
//! A token names its subject by ids that never change and is made only for an attempt whose lease is live.

mod model;
mod rules;

#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
mod public_key;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod signing;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
pub mod tokens;

#[cfg(feature = "store")]
pub use error::IssuerError;
pub use model::{Discovery, IssuerKeyStatus, IssuerKeyView, Jwk, Jwks, RotateIssuerKey, RotatedIssuerKey};
#[cfg(feature = "store")]
pub use public_key::{RsaKeyError, RsaPublicKey};
pub use rules::{IssuerOff, TOKEN_AGE_MAX, check_audience, issuer, subject};
#[cfg(feature = "store")]
pub use signing::LocalTokenSigner;
