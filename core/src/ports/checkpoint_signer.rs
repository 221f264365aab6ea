//! Who signs audit checkpoints.

use async_trait::async_trait;

use crate::audit::PublicKey;

/// Why there is no signature.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum SignerError {
    /// Passes by itself.
    #[error("the signing service cannot be asked: {0}")]
    Unavailable(String),
    /// It will not sign, now or later, until somebody changes its settings.
    #[error("the signing service refuses: {0}")]
    Refused(String),
}

/// Signs audit checkpoints. Where a KMS does it the key cannot be stolen from a process that signs.
#[async_trait]
pub trait CheckpointSigner: Send + Sync + std::fmt::Debug {
    /// The key that signatures are checked with; it names their algorithm.
    async fn public_key(&self) -> Result<PublicKey, SignerError>;

    /// The signature of a message of any length.
    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError>;
}
