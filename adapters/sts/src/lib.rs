//! Who an executor on ECS is, in AWS's own words.
//!
//! The executor signs a request that asks AWS "who am I" and hands the signature over instead of sending it
//! ([`Credentials::prove`]). The control plane puts the same request together from parts of its own, adds the signature
//! and sends it (`StsCallers`): AWS names whoever signed. A signature made for somebody else is worth nothing here,
//! because it must cover a header with the digest of this very ticket.
//!
//! No SDK: both sides know one request, and an executor that links one would take a minute longer to build.

#[cfg(feature = "verify")]
mod callers;
mod credentials;
mod request;
mod signature;

#[cfg(feature = "verify")]
pub use callers::{EndpointError, StsCallers};
pub use credentials::{Credentials, CredentialsError, SECRET_VARIABLES, TaskRole, VariableError};
