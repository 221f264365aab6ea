//! Kubernetes clusters, reached by a kubeconfig that was taken apart and written anew.

#[cfg(feature = "store")]
mod exec_plugin;
#[cfg(feature = "store")]
mod kubeconfig;
mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub(super) mod store;
#[cfg(test)]
mod tests;

#[cfg(feature = "store")]
pub use kubeconfig::Kubeconfig;
pub use model::{Cluster, ClusterChange, ClusterFields, ClusterTest, NewCluster};
pub use rules::ClusterSettings;
