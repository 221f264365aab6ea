//! AWS accounts: static keys, or roles that are assumed with an external id of ours, one for plans and one for applies.

mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub(super) mod store;

pub use model::{AwsAccount, AwsAccountChange, AwsFields, AwsTest, NewAwsAccount};
pub use rules::{AwsSettings, is_region};
