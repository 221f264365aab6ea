//! Sign-in through the identity provider that the installation named.
//!
//! The function `signin` speaks with the provider; what its answer means is decided here. Invariants: a person is found
//! by issuer and subject, and by a *verified* e-mail only while nobody is known by those; a return from the provider is
//! good once, and so is the code that follows from it; the code is kept as a digest, lives a minute, and one that was
//! made for a command line is worth nothing without that program's secret. What groups give is decided anew at every
//! sign-in, and what a person gave is left alone.

mod claims;
mod error;
mod mapping;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod settings;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
pub mod trade;

pub use claims::{ClaimsError, Identity};
pub use error::{OidcError, Refusal};
pub use mapping::{Granted, MappingError, RoleMapping};
pub use rules::{CLI_PORT_MIN, COOKIE_AGE, Cli, CliError, is_over};
