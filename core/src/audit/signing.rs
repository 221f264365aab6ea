//! Signing and checking checkpoints: Ed25519 under a key made of the audit domain's key.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair as _, UnparsedPublicKey};

use super::store::CheckpointRow;
use super::views::SignedCheckpoint;
use crate::digest::Sha256Digest;
use crate::secrets::{Domain, Keyring, KeyringError};

/// The pair that signs checkpoints.
pub(super) struct Signer {
    pair: Ed25519KeyPair,
}

impl Signer {
    pub(super) fn new(keys: &Keyring) -> Result<Self, KeyringError> {
        let seed = keys.key(Domain::Audit)?;
        let pair = Ed25519KeyPair::from_seed_unchecked(seed).expect("a seed is any 32 bytes");
        Ok(Self { pair })
    }

    /// Names the public key: the first 16 hex digits of its digest.
    pub(super) fn key_id(&self) -> String {
        Sha256Digest::of(self.pair.public_key().as_ref()).to_string()[..16].to_owned()
    }

    pub(super) fn seal(&self, sequence: i64, body: Vec<u8>) -> CheckpointRow {
        let signature = self.pair.sign(&body).as_ref().to_vec();
        CheckpointRow { sequence, hash: Sha256Digest::of(&body), signature, key_id: self.key_id(), body }
    }

    /// Whether the checkpoint is one of this key's.
    pub(super) fn holds(&self, row: &CheckpointRow) -> bool {
        let public = UnparsedPublicKey::new(&ED25519, self.pair.public_key().as_ref());
        row.key_id == self.key_id()
            && row.hash == Sha256Digest::of(&row.body)
            && public.verify(&row.body, &row.signature).is_ok()
    }

    /// The checkpoint as it lies in the object store.
    pub(super) fn export(&self, row: &CheckpointRow) -> SignedCheckpoint {
        SignedCheckpoint {
            body: String::from_utf8_lossy(&row.body).into_owned(),
            hash: row.hash,
            signature: STANDARD.encode(&row.signature),
            key_id: row.key_id.clone(),
            public_key: STANDARD.encode(self.pair.public_key().as_ref()),
        }
    }
}

impl SignedCheckpoint {
    /// Whether the signature holds under the given public key, in base64, and digest and body belong together. For
    /// verifiers that have nothing but an export and the key.
    pub fn holds(&self, public_key: &str) -> bool {
        let (Ok(key), Ok(signature)) = (STANDARD.decode(public_key), STANDARD.decode(&self.signature)) else {
            return false;
        };
        let body = self.body.as_bytes();
        Sha256Digest::of(body) == self.hash
            && UnparsedPublicKey::new(&ED25519, key).verify(body, &signature).is_ok()
    }
}
