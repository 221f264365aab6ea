//! Terraform state: versions, the lock, uploads, quarantine.
//!
//! Invariants: the lock is a row that is never deleted, with a generation that rises. Writes are fenced by lock id and
//! generation. The live holder's write is always accepted; a write with a lost lock is quarantined, never dropped.
//! Versions of a workspace have one lineage and rising serials.

mod model;
#[cfg(feature = "store")]
pub mod service;

pub use model::StateHead;
