//! The index of resources: what the newest states of all workspaces contain, to be searched.
//!
//! Invariants: the rows of a workspace are those of one version, written in one transaction; a version that is not the head
//! any more never replaces a newer one. A head that is not in the index is found by a sweep, so a state's write does
//! nothing for it. The index holds no attribute that could be a secret, so whoever may read a workspace may search it.

mod model;

#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod sweeps;
#[cfg(feature = "store")]
pub mod tasks;

#[cfg(feature = "store")]
pub use error::ResourceError;
pub use model::{BadSearch, ResourceView, Search};
