//! The audit log: one hash chain per business unit and one for the platform.
//!
//! Invariants: an entry is written by the last statement of the transaction it tells about, so a rolled-back action
//! leaves none. `hash = sha256(previous_hash || canonical)`; the database re-derives it, moves the chain's head, and
//! refuses UPDATE, DELETE and TRUNCATE. Each minute, if a head moved, a signed checkpoint of all heads is stored and
//! copied to the object store: what was cut off a chain's end after that is seen. A checkpoint names who signed it and by
//! which algorithm; its signature vouches for all checkpoints before it, so a signing key can be replaced.
//!
//! Not covered: entries cut off within the minute before their first checkpoint, by someone who owns the database.

mod checkpoint_walk;
#[cfg(feature = "store")]
mod checkpoints;
mod error;
#[cfg(feature = "signatures")]
mod export_walk;
#[cfg(feature = "signatures")]
mod keys;
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

pub use checkpoint_walk::{CheckpointFault, CheckpointLink, CheckpointWalk, Signed};
pub use error::AuditError;
#[cfg(feature = "signatures")]
pub use export_walk::{EXPORT_FORMAT, ExportError, ExportLine, ExportWalk};
#[cfg(feature = "signatures")]
pub use keys::{PublicKey, PublicKeyError};
pub use model::{Action, ChainId, Cursor, Entry, Filter};
pub use rules::{ChainWalk, Draft, Fault, Fields, Link, link_hash};
#[cfg(feature = "store")]
pub use signing::LocalSigner;
pub use views::{
    Broken, BrokenCheckpoint, Chains, CheckpointBody, CheckpointView, EntryPage, EntryView, Export,
    ExportedEntry, HeadView, SignatureAlgorithm, SignedCheckpoint, Verification,
};
