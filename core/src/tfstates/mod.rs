//! Terraform state: versions, the lock, uploads, quarantine.
//!
//! Invariants: the lock is a row that is never deleted, with a generation that rises. Writes are fenced by lock id and
//! generation. The live holder's write is always accepted; a write with a lost lock is quarantined, never dropped.
//! Versions of a workspace have one lineage and rising serials; only `accept_next_lineage` lets another lineage in.
//! Bytes are in the object store before the row that names them commits, under a key that contains the workspace's id.

mod body;
mod contents;
mod counted;
mod model;
mod rules;
#[cfg(test)]
mod tests;

#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use body::{BadState, SERIAL_MAX, StateFacts, parse_state};
pub use contents::{Addresses, Says, StateDiff, StateOutput, StateOutputs, Unreadable, Withheld};
#[cfg(feature = "store")]
pub use error::StateError;
pub use model::{
    BadLock, LockInfo, LockView, LockWaiter, QuarantinedStateView, Retention, StateConsumer, StateHead,
    StateVersionView, StateWrites,
};
pub use rules::{
    HeldBy, Lock, QuarantineReason, RefuseReason, Verdict, Write, WriteFence, judge_content, judge_write,
};
