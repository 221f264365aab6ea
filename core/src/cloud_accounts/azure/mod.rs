//! Azure subscriptions, reached by a service principal with a client secret.

mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub(super) mod store;

pub use model::{AzureFields, AzureSubscription, AzureSubscriptionChange, AzureTest, NewAzureSubscription};
pub use rules::AzureSettings;
