//! What is in a state, read as a stream: little of it is in memory at a time, however large it is or one value in it.
//!
//! [`walk`] goes through a state once and shows a [`Visitor`] what it asks for; the modules below are the visitors. Names,
//! addresses and counts are kept, values are hashed, copied up to a limit, or passed over.

mod addresses;
mod compare;
mod facts;
mod fingerprint;
mod index;
mod outputs;
mod scanner;
mod shared;
#[cfg(test)]
mod tests;
mod walk;

pub use addresses::Addresses;
#[cfg(any(feature = "store", test))]
pub(super) use addresses::addresses;
#[cfg(feature = "store")]
pub(super) use compare::Comparison;
pub use compare::StateDiff;
pub use facts::Says;
#[cfg(feature = "store")]
pub(super) use facts::{Beginning, read_facts};
#[cfg(feature = "store")]
pub(super) use index::index;
#[cfg(any(feature = "store", test))]
pub(super) use outputs::outputs;
pub use outputs::{StateOutput, StateOutputs, Withheld};
#[cfg(any(feature = "store", test))]
pub(super) use shared::{Shared, shared};

/// Resources that are told apart in one state, the same address once: more are not compared or listed.
pub(super) const ADDRESSES_MAX: usize = 100_000;

/// Why a state's content cannot be told.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unreadable {
    /// Cut off, or never JSON.
    #[error("the state is not JSON, or was cut off")]
    Broken,
    /// JSON of another shape.
    #[error("the content is not that of a Terraform state")]
    NoState,
    /// OpenTofu encrypts on the client.
    #[error("the state is encrypted by its client")]
    Encrypted,
    /// More than [`ADDRESSES_MAX`].
    #[error("the state has more than 100,000 resources")]
    TooMany,
}
