//! AWS's security token service, as far as executors and the control plane need it.
//!
//! Who an executor on ECS is: it signs a request that asks AWS "who am I" and hands the signature over instead of sending it
//! ([`Credentials::prove`]). The control plane puts the same request together from parts of its own, adds the signature
//! and sends it (`StsCallers`): AWS names whoever signed. A signature made for somebody else is worth nothing here,
//! because it must cover a header with the digest of this very ticket.
//!
//! What a run may do in an account: the executor asks for the session of a role ([`Sts::assume`]), with keys from its bundle
//! or its own role's.
//!
//! No SDK: these are three small requests, and an executor that links one would take a minute longer to build.

#[cfg(feature = "verify")]
mod callers;
mod credentials;
mod eks;
mod endpoint;
mod request;
mod sessions;
mod signature;
mod xml;

#[cfg(feature = "verify")]
pub use callers::StsCallers;
pub use credentials::{Credentials, CredentialsError, SECRET_VARIABLES, TaskRole, VariableError};
pub use eks::eks_token;
pub use endpoint::EndpointError;
pub use sessions::{Caller, RoleSession, Sts, StsError};
