//! Sign-in, access tokens, rotating refresh tokens.
//!
//! Invariants: an access token says who, never what they may do: power is read from the database at each request, in
//! one round trip. Every token ends with its session, with the user's generation and with the installation's epoch.
//! A refresh token is good once; using an old one ends the session. A session that was opened with a password which
//! must be changed can do nothing but that. Access tokens name the secret that signed them, which superadmins replace while
//! people work.

mod error;
#[cfg(feature = "store")]
pub mod jwt_secrets;
#[cfg(feature = "store")]
mod jwt_secrets_store;
mod model;
#[cfg(feature = "store")]
pub mod own;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
pub mod throttle;
#[cfg(feature = "store")]
mod tokens;
#[cfg(feature = "store")]
mod tunables;

pub use error::SessionError;
pub use model::{Bearer, Claims, NamedUnit, Origin, Place, SessionView, Standing, TokenPair};
pub use rules::{Requested, resolve_scope};
