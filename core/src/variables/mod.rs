//! Terraform variables of business units, variable sets and workspaces, and what of them a run gets.
//!
//! Invariants: every value is sealed for its row, secret or not. A secret is replaced or deleted, never shown and never
//! turned into something that is shown. What wins is decided by [`merge`] alone. A run's variables are merged when it
//! first begins and pinned with it: a retry and the apply get exactly what the first plan got. A value that cannot be
//! opened fails the run; none is ever left out.

#[cfg(feature = "store")]
mod error;
pub mod hcl;
mod model;
mod rules;

#[cfg(feature = "store")]
pub mod effective;
#[cfg(feature = "store")]
pub mod pins;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod sets;
#[cfg(feature = "store")]
mod sets_store;
#[cfg(feature = "store")]
mod store;
#[cfg(test)]
mod tests;

#[cfg(feature = "store")]
pub use error::VariableError;
pub use model::{
    Attachment, EffectiveVariable, EffectiveVariables, NewVariable, NewVariableSet, Origin, Owner, Pin,
    RunVariable, Variable, VariableChange, VariableScope, VariableSet, VariableSetChange, VariableValue,
};
pub use rules::{InvalidVariable, Merged, check_key, check_total, check_value, masked_tail, merge, size_of};
