//! Replacing the root key while everything runs: each sealed value is opened with the root that it names and sealed again
//! with the current one.
//!
//! Invariants: a value is written only over the very ciphertext that was opened, so a newer one is never lost. Progress and
//! values commit together, so a killed sweep goes on where it stopped. A job is done when no row names another root, seen
//! in one look that is later than any transaction which may still hold what it read before. A root key is not taken away
//! before that: a deploy without it is refused. Every column with sealed
//! values is in [`SEALED_COLUMNS`]; a test compares that list with the schema.

#[cfg(feature = "store")]
mod columns;
mod error;
mod model;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod sweeps;

#[cfg(feature = "store")]
pub use columns::{SEALED_COLUMNS, SealedColumn};
pub use error::RekeyError;
pub use model::{ColumnProgress, Rekey, RekeyStatus, Stranger};
