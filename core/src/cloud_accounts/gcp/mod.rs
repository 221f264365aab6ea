//! GCP projects, reached by the key of a service account.

mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
mod service_account;
#[cfg(feature = "store")]
pub(super) mod store;

pub use model::{GcpFields, GcpProject, GcpProjectChange, NewGcpProject};
pub use rules::GcpSettings;
pub use service_account::ServiceAccount;
