//! The audit log: one hash chain per business unit and one for the platform.
//!
//! Invariants: an entry is written by the last statement of the transaction it tells about, so a rolled-back action
//! leaves none. `hash = sha256(previous_hash || canonical)`; the database re-derives it, moves the chain's head, and
//! refuses UPDATE, DELETE and TRUNCATE. Each minute, if a head moved, a signed checkpoint of all heads is stored and
//! copied to the object store: what was cut off a chain's end after that is seen.
//!
//! Not covered: entries cut off within the minute before their first checkpoint, by someone who owns the database.

#[cfg(feature = "store")]
mod checkpoints;
mod error;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod signing;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
mod verification;
mod views;

pub use error::AuditError;
pub use model::{Action, ChainId, Cursor, Entry, Filter};
pub use rules::{ChainWalk, Draft, Fault, Fields, Link, link_hash};
pub use views::{
    Broken, CheckpointBody, CheckpointView, EntryPage, EntryView, Export, ExportedEntry, HeadView,
    SignedCheckpoint, Verification,
};
