//! Public halves of RSA keys, as a KMS gives them and as verifiers read them.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use rsa::PublicKey;
use rsa::pkcs8::DecodePublicKey as _;
use rsa::traits::PublicKeyParts;

/// Clouds take no shorter keys, and AWS no longer ones.
const KEY_BITS: std::ops::RangeInclusive<usize> = 2048..=4096;

/// Some bytes are no RSA key that we publish.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("this is not an RSA key (SubjectPublicKeyInfo) of 2,048 to 4,096 bits")]
pub struct RsaKeyError;

/// A public key: modulus and exponent in base64url without padding.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RsaPublicKey {
    /// `n` of a JWK.
    pub modulus: String,
    /// `e` of a JWK.
    pub exponent: String,
}

impl RsaPublicKey {
    /// From a SubjectPublicKeyInfo in DER.
    pub fn from_spki(spki: &[u8]) -> Result<Self, RsaKeyError> {
        let key = PublicKey::from_public_key_der(spki).map_err(|_| RsaKeyError)?;
        let is_fit = KEY_BITS.contains(&(key.size() * 8));
        if is_fit { Ok(Self::of(&key)) } else { Err(RsaKeyError) }
    }

    /// Of a key of ours.
    pub(super) fn of(key: &impl PublicKeyParts) -> Self {
        Self {
            modulus: URL_SAFE_NO_PAD.encode(key.n_bytes()),
            exponent: URL_SAFE_NO_PAD.encode(key.e_bytes()),
        }
    }
}
