//! Tokens of the installation's own issuer, which clouds trust instead of a stored key.

use serde::{Deserialize, Serialize};

/// Whose account a token is for. Never an audience: that says the account.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TokenFor {
    /// The workspace's AWS account.
    Aws,
    /// The AWS account of the workspace's cluster.
    Cluster,
    /// The workspace's Azure subscription.
    Azure,
    /// The workspace's GCP project.
    Gcp,
}

/// A token that lies in a file while plan or apply runs, renewed before it is over: the cloud's own libraries read it again
/// whenever they need to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "cloud", rename_all = "snake_case")]
pub enum TokenFile {
    /// The rest of Azure's settings is in the environment.
    Azure,
    /// Google's libraries read the rest beside it.
    Gcp {
        /// The provider of the pool that trusts the issuer, by its full name.
        workload_identity_provider: String,
        /// The service account that the phase acts as.
        client_email: String,
    },
}

impl TokenFile {
    /// Whose token it is.
    pub fn wanted(&self) -> TokenFor {
        match self {
            Self::Azure => TokenFor::Azure,
            Self::Gcp { .. } => TokenFor::Gcp,
        }
    }
}

/// `POST /executor/v1/identity-token`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct IdentityTokenRequest {
    /// Whose.
    #[serde(rename = "for")]
    pub wanted: TokenFor,
}

/// The answer.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct IdentityToken {
    /// A JWT.
    pub token: String,
    /// How long it is good for from now.
    pub expires_in_seconds: u64,
}

impl std::fmt::Debug for IdentityToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("IdentityToken")
            .field("expires_in_seconds", &self.expires_in_seconds)
            .finish_non_exhaustive()
    }
}
