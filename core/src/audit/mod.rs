//! The audit log: one hash chain per business unit and one for the platform.
//!
//! Invariants: an entry is written by the last statements of the transaction it tells about, so a rolled-back action
//! leaves none. `hash = sha256(previous_hash || canonical)`; the database re-derives it and refuses UPDATE, DELETE and
//! TRUNCATE.

mod model;
#[cfg(feature = "store")]
pub mod service;

pub use model::{Action, Entry};
