//! Settings that people change while the system runs: tunables of the platform, and what each business unit says about
//! its integrations.
//!
//! The registry is the one list of what can be set: name, type, bounds, default, and whether the value belongs to the
//! platform or to a unit. Invariants: a unit's value comes from that unit's own row or from the registry, never from
//! another unit or the platform, and the two kinds lie in tables of their own. A secret is sealed for its row, read back
//! only as its last characters, and leaves nothing of itself in the history. Whoever edits says which version they saw.

mod error;
mod integrations;
mod model;
mod overrides;
pub mod registry;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
mod values;
mod views;

pub use error::ConfigError;
pub use integrations::{INTEGRATIONS, Integration};
pub use model::{Fallback, Kind, Level, SecretShape, Setting, TextShape, TimeUnit, Value};
pub use overrides::{OverrideError, Overrides};
#[cfg(feature = "store")]
pub use values::Values;
pub use views::{
    Changed, FieldView, HistoryEntry, InfracostTest, IntegrationView, SecretView, SettingView, SlackTest,
};
