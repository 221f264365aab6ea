//! Who signs here: our own Ed25519 key, made of the audit domain's key, unless the function was given a KMS.

use std::sync::Arc;

use async_trait::async_trait;
use ring::signature::{Ed25519KeyPair, KeyPair as _};

use super::AuditError;
use super::keys::PublicKey;
use super::store::CheckpointRow;
use super::views::SignedCheckpoint;
use crate::Deps;
use crate::ports::{CheckpointSigner, SignerError};
use crate::secrets::Domain;

/// Signs with a key of this process.
pub struct LocalSigner {
    pair: Ed25519KeyPair,
}

impl std::fmt::Debug for LocalSigner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LocalSigner").field("public_key", &self.public()).finish_non_exhaustive()
    }
}

impl LocalSigner {
    /// The signer of an audit domain's key.
    pub fn new(seed: &[u8; 32]) -> Self {
        Self { pair: Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed is any 32 bytes") }
    }

    fn public(&self) -> PublicKey {
        PublicKey::from_ed25519(self.pair.public_key().as_ref()).expect("a public key has 32 bytes")
    }
}

#[async_trait]
impl CheckpointSigner for LocalSigner {
    async fn public_key(&self) -> Result<PublicKey, SignerError> {
        Ok(self.public())
    }

    async fn sign(&self, message: &[u8]) -> Result<Vec<u8>, SignerError> {
        Ok(self.pair.sign(message).as_ref().to_vec())
    }
}

/// Who signs checkpoints here.
pub(super) fn signer(deps: &Deps) -> Result<Arc<dyn CheckpointSigner>, AuditError> {
    match &deps.audit_signer {
        Some(signer) => Ok(Arc::clone(signer)),
        None => Ok(Arc::new(LocalSigner::new(deps.keys.key(Domain::Audit)?))),
    }
}

/// The keys whose signatures are ours: the KMS's, and those made of every root key in the ring.
pub(super) async fn trusted(deps: &Deps) -> Result<Vec<PublicKey>, AuditError> {
    let mut keys = Vec::new();
    if let Some(signer) = &deps.audit_signer {
        keys.push(signer.public_key().await?);
    }
    match deps.keys.every_key(Domain::Audit) {
        Ok(seeds) => keys.extend(seeds.map(|seed| LocalSigner::new(seed).public())),
        Err(error) if keys.is_empty() => return Err(error.into()),
        Err(_) => {}
    }
    Ok(keys)
}

/// The checkpoint as it lies in the object store.
pub(super) fn export(row: &CheckpointRow) -> SignedCheckpoint {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    SignedCheckpoint {
        body: String::from_utf8_lossy(&row.body).into_owned(),
        hash: row.hash,
        signature: STANDARD.encode(&row.signature),
        key_id: row.key_id.clone(),
        public_key: STANDARD.encode(&row.public_key),
    }
}
