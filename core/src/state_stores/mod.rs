//! Where states lie: in the platform's own store, or in a bucket or container of one of the unit's accounts.
//!
//! Invariants: a row of `state_stores` names one place for ever, and every version names the row of the place where its body
//! is; an account that is edited moves only what is written from then on. A place is reached with the credentials of its own
//! account and of no other, and an account of another unit is not found. A place that cannot be used is an error with a
//! reason: never "no state", and never the platform's store instead.

mod model;
mod rules;
#[cfg(test)]
mod tests;

#[cfg(feature = "store")]
mod described;
#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
mod open;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

#[cfg(feature = "store")]
pub use error::StateStoreError;
pub use model::{StateAccess, StateBackend, StatePlace, StoreAccount};
#[cfg(feature = "store")]
pub use open::OpenStores;
pub use rules::{Chosen, Offer, Offers, choose};
