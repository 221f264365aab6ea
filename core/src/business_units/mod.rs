//! Business units: the tenants. Everything a tenant has names its unit, and a unit is never deleted.
//!
//! Invariants: a slug never changes. In an archived unit nothing new is done: its members get no further than to be told
//! so, superadmins read what is there, and what was under way ends: runs that wait or plan are cancelled by the next
//! sweep, a begun apply is finished, short tasks give their result. Unarchiving brings nothing of that back.

mod error;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::BusinessUnitError;
pub use model::{BusinessUnitChange, BusinessUnitView, NewBusinessUnit};
pub use rules::{check_name, check_slug};
