//! Business units: the tenants. Everything a tenant has names its unit, and a unit is never deleted.

mod error;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use error::BusinessUnitError;
pub use model::{BusinessUnitView, NewBusinessUnit};
pub use rules::{check_name, check_slug};
