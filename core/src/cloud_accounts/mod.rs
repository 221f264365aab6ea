//! Where runs get their rights: AWS accounts, Azure subscriptions, GCP projects, Kubernetes clusters of a business unit.
//!
//! Invariants: a secret is sealed in the domain of its kind, bound to its row, and no way leads back to it but the bundle
//! of a run in the same unit. What is sealed is what was checked: keys of service accounts and kubeconfigs are written
//! anew from what was understood of them, so that nobody reads something else into them later. Every look-up is by unit, so
//! a workspace that names another unit's account finds nothing.

pub mod aws;
pub mod azure;
pub mod clusters;
pub mod gcp;
mod model;
mod rules;

#[cfg(feature = "store")]
pub mod credentials;
#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(feature = "store")]
pub mod trusting;

#[cfg(feature = "store")]
pub use error::{CloudAccountError, CredentialsError};
pub use model::{Cloud, MaskedSecret, UsedBy, UsedCredential};
