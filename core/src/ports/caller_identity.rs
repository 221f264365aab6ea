//! Who signed a request to the cloud.

use async_trait::async_trait;

use crate::digest::Sha256Digest;
use crate::protocol::IdentityProof;

/// What the cloud calls whoever signed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CallerArn(pub String);

/// Why nobody was identified.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum IdentityError {
    /// The proof is no good, now or later. Holds nothing of the proof.
    #[error("{0}")]
    Refused(String),
    /// Passes by itself.
    #[error("the cloud's identity service cannot be asked: {0}")]
    Unavailable(String),
}

/// Tells who made a proof. The proof comes from a stranger: whatever it says, the answer comes from the cloud.
#[async_trait]
pub trait CallerIdentity: Send + Sync + std::fmt::Debug {
    /// Who signed this proof for the ticket with this digest. A proof that was made for another ticket is refused.
    async fn identify(&self, proof: &IdentityProof, ticket: Sha256Digest)
    -> Result<CallerArn, IdentityError>;
}
