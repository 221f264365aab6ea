//! GCP projects, reached by the key of a service account.

#[cfg(feature = "store")]
mod assertion;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
mod service_account;
#[cfg(feature = "store")]
pub(super) mod store;

#[cfg(feature = "store")]
pub(super) use assertion::assertion;
pub use model::{GcpFields, GcpProject, GcpProjectChange, GcpTest, NewGcpProject};
pub use rules::GcpSettings;
pub use service_account::ServiceAccount;
