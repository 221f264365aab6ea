//! Public keys that checkpoints are checked with, and what their signatures mean. The same code runs in the service and in
//! an offline verifier.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{ECDSA_P256_SHA256_ASN1, ED25519, UnparsedPublicKey};

use super::checkpoint_walk::Signed;
use super::views::{CheckpointBody, SignatureAlgorithm, SignedCheckpoint};
use crate::digest::Sha256Digest;

/// SubjectPublicKeyInfo of an Ed25519 key up to the 32 bytes of the key.
const ED25519_PREFIX: [u8; 12] = [0x30, 0x2a, 0x30, 0x05, 0x06, 0x03, 0x2b, 0x65, 0x70, 0x03, 0x21, 0x00];
/// The same for a point of the curve P-256, uncompressed: 65 bytes.
const P256_PREFIX: [u8; 26] = [
    0x30, 0x59, 0x30, 0x13, 0x06, 0x07, 0x2a, 0x86, 0x48, 0xce, 0x3d, 0x02, 0x01, 0x06, 0x08, 0x2a, 0x86,
    0x48, 0xce, 0x3d, 0x03, 0x01, 0x07, 0x03, 0x42, 0x00,
];
const PEM_BEGIN: &str = "-----BEGIN PUBLIC KEY-----";
const PEM_END: &str = "-----END PUBLIC KEY-----";

/// A text or some bytes are no public key that we know.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not a public key (SubjectPublicKeyInfo) of Ed25519 or ECDSA P-256")]
pub struct PublicKeyError;

/// A public key. Its form names its algorithm.
#[derive(Clone, PartialEq, Eq)]
pub struct PublicKey {
    algorithm: SignatureAlgorithm,
    spki: Vec<u8>,
}

impl std::fmt::Debug for PublicKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "PublicKey({} {})", self.algorithm.as_str(), self.key_id())
    }
}

impl PublicKey {
    /// From a SubjectPublicKeyInfo in DER, as a KMS gives it.
    pub fn from_spki(spki: &[u8]) -> Result<Self, PublicKeyError> {
        let is = |prefix: &[u8], bytes: usize| spki.starts_with(prefix) && spki.len() == prefix.len() + bytes;
        let algorithm = if is(&ED25519_PREFIX, 32) {
            SignatureAlgorithm::Ed25519
        } else if is(&P256_PREFIX, 65) {
            SignatureAlgorithm::EcdsaP256Sha256
        } else {
            return Err(PublicKeyError);
        };
        Ok(Self { algorithm, spki: spki.to_vec() })
    }

    /// From the 32 bytes of an Ed25519 key.
    pub fn from_ed25519(key: &[u8]) -> Result<Self, PublicKeyError> {
        Self::from_spki(&[&ED25519_PREFIX[..], key].concat())
    }

    /// From what people keep: base64 of a SubjectPublicKeyInfo, in a PEM or alone.
    pub fn parse(text: &str) -> Result<Self, PublicKeyError> {
        let text = text.trim();
        let inside = match text.strip_prefix(PEM_BEGIN) {
            Some(rest) => rest.strip_suffix(PEM_END).ok_or(PublicKeyError)?,
            None => text,
        };
        let inside: String = inside.split_whitespace().collect();
        Self::from_spki(&STANDARD.decode(inside).map_err(|_| PublicKeyError)?)
    }

    /// How it verifies.
    pub fn algorithm(&self) -> SignatureAlgorithm {
        self.algorithm
    }

    /// The SubjectPublicKeyInfo in DER.
    pub fn spki(&self) -> &[u8] {
        &self.spki
    }

    /// The SubjectPublicKeyInfo in base64.
    pub fn to_base64(&self) -> String {
        STANDARD.encode(&self.spki)
    }

    /// Names it: the first 16 hex digits of a digest of it.
    pub fn key_id(&self) -> String {
        Sha256Digest::of(&self.spki).to_string()[..16].to_owned()
    }

    /// Whether its owner has signed the message. An ECDSA signature is in DER.
    pub fn verifies(&self, message: &[u8], signature: &[u8]) -> bool {
        match self.algorithm {
            SignatureAlgorithm::Ed25519 => {
                let key = &self.spki[ED25519_PREFIX.len()..];
                UnparsedPublicKey::new(&ED25519, key).verify(message, signature).is_ok()
            }
            SignatureAlgorithm::EcdsaP256Sha256 => {
                let key = &self.spki[P256_PREFIX.len()..];
                UnparsedPublicKey::new(&ECDSA_P256_SHA256_ASN1, key).verify(message, signature).is_ok()
            }
        }
    }
}

/// What the named signer of a checkpoint says about its body. The body names the signer, too: a signature of one
/// algorithm must not pass as one of another.
pub(super) fn judge(trusted: &[PublicKey], key_id: &str, body: &[u8], signature: &[u8]) -> Signed {
    let Some(key) = trusted.iter().find(|key| key.key_id() == key_id) else { return Signed::ByUnknown };
    let names_it = serde_json::from_slice::<CheckpointBody>(body)
        .is_ok_and(|body| body.key_id == key_id && body.algorithm == key.algorithm());
    if names_it && key.verifies(body, signature) { Signed::ByTrusted } else { Signed::Falsely }
}

impl SignedCheckpoint {
    /// Whether one of the keys has signed it. For verifiers that have nothing but an export and the keys.
    pub fn signed(&self, trusted: &[PublicKey]) -> Signed {
        let Ok(signature) = STANDARD.decode(&self.signature) else { return Signed::Falsely };
        judge(trusted, &self.key_id, self.body.as_bytes(), &signature)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// How every key of the curve P-256 begins in base64.
    const P256: &str = "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQcDQgAE";

    #[test]
    fn a_key_is_read_alone_and_from_a_pem_and_names_its_algorithm() {
        let key = PublicKey::from_ed25519(&[7; 32]).expect("a key");
        assert_eq!(key.algorithm(), SignatureAlgorithm::Ed25519);
        let text = key.to_base64();
        assert_eq!(PublicKey::parse(&text), Ok(key.clone()));
        let pem = format!("{PEM_BEGIN}\n{}\n{}\n{PEM_END}\n", &text[..20], &text[20..]);
        assert_eq!(PublicKey::parse(&pem), Ok(key));
        let point = STANDARD.encode([&P256_PREFIX[..], &[4; 65]].concat());
        assert!(point.starts_with(P256));
        assert_eq!(
            PublicKey::parse(&point).map(|key| key.algorithm()),
            Ok(SignatureAlgorithm::EcdsaP256Sha256)
        );
        for wrong in ["", "x", P256, "-----BEGIN PUBLIC KEY-----", &text[4..]] {
            assert_eq!(PublicKey::parse(wrong), Err(PublicKeyError), "{wrong}");
        }
    }
}
