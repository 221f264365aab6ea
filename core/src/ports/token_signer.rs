//! Who signs tokens of our own issuer.

use async_trait::async_trait;

use super::SignerError;
use crate::issuer_keys::RsaPublicKey;

/// Signs with one RSA key, as RS256 says (PKCS #1 v1.5, SHA-256). Where a KMS does it the key cannot be stolen from a
/// process that signs.
#[async_trait]
pub trait TokenSigner: Send + Sync + std::fmt::Debug {
    /// The key that signatures are checked with.
    async fn public_key(&self) -> Result<RsaPublicKey, SignerError>;

    /// The signature of a message of any length.
    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError>;
}

/// A key of a KMS, and the name that people gave it to us by.
#[derive(Clone, Debug)]
pub struct NamedSigner {
    /// Its id or ARN.
    pub name: String,
    /// Signs with it.
    pub signer: std::sync::Arc<dyn TokenSigner>,
}
