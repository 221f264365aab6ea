//! Reading the identity tokens of CI systems.

use jsonwebtoken::jwk::{Jwk, JwkSet, KeyOperations, PublicKeyUse};
use jsonwebtoken::{Algorithm, DecodingKey, Validation};
use serde::Deserialize;

use super::CiLoginError;
use super::model::CiClaims;

/// Longest token that is looked at, in bytes. Those of forges have one to four kilobytes.
const TOKEN_BYTES_MAX: usize = 16 << 10;

/// Said of every token before its signature was found good: a stranger learns nothing about whom a unit trusts.
pub(super) const UNPROVEN: CiLoginError =
    CiLoginError::Refused("no trust rule there names its issuer, or its signature is not that of its issuer");

/// Algorithms with a public key. One with a shared secret would let whoever knows the public key sign.
const ALGORITHMS: [Algorithm; 9] = [
    Algorithm::RS256,
    Algorithm::RS384,
    Algorithm::RS512,
    Algorithm::PS256,
    Algorithm::PS384,
    Algorithm::PS512,
    Algorithm::ES256,
    Algorithm::ES384,
    Algorithm::EdDSA,
];

/// What a token says about where its key is. Nothing of it is believed yet.
#[derive(Clone, Debug)]
pub(super) struct Presented {
    pub issuer: String,
    pub key_id: String,
    pub algorithm: Algorithm,
}

#[derive(Deserialize)]
struct Issued {
    iss: String,
}

/// Reads what a token says of itself.
pub(super) fn presented(token: &str) -> Result<Presented, CiLoginError> {
    let malformed = CiLoginError::Refused("it is not a signed JWT");
    if token.len() > TOKEN_BYTES_MAX {
        return Err(CiLoginError::Refused("it is longer than 16 KiB"));
    }
    let Ok(header) = jsonwebtoken::decode_header(token) else { return Err(malformed) };
    if !ALGORITHMS.contains(&header.alg) {
        return Err(CiLoginError::Refused("its algorithm has no public key"));
    }
    let Ok(unverified) = jsonwebtoken::dangerous::insecure_decode::<Issued>(token) else {
        return Err(malformed);
    };
    if unverified.claims.iss.chars().any(char::is_control) {
        return Err(malformed);
    }
    let key_id = header.kid.ok_or(CiLoginError::Refused("it names no key"))?;
    Ok(Presented { issuer: unverified.claims.iss, key_id, algorithm: header.alg })
}

/// The key with an id among published ones; `None` if it is not there, or cannot be one that signs.
pub(super) fn find_key<'k>(keys: &'k JwkSet, presented: &Presented) -> Option<&'k Jwk> {
    keys.find(&presented.key_id).filter(|key| {
        let common = &key.common;
        let signs = !matches!(common.public_key_use, Some(PublicKeyUse::Encryption | PublicKeyUse::Other(_)))
            && common.key_operations.as_ref().is_none_or(|may| may.contains(&KeyOperations::Verify));
        let algorithm = common.key_algorithm.map(|algorithm| algorithm.to_string());
        signs && algorithm.is_none_or(|named| named == format!("{:?}", presented.algorithm))
    })
}

/// What a token says, if the key signed it.
pub(super) fn read(token: &str, presented: &Presented, key: &Jwk) -> Result<CiClaims, CiLoginError> {
    let refused = UNPROVEN;
    let Ok(decoding) = DecodingKey::from_jwk(key) else { return Err(refused) };
    let mut validation = Validation::new(presented.algorithm);
    // Times are judged by the database's clock, audiences by the rules.
    validation.validate_exp = false;
    validation.validate_aud = false;
    validation.set_required_spec_claims(&["exp", "iss", "sub", "aud"]);
    validation.set_issuer(&[&presented.issuer]);
    match jsonwebtoken::decode::<CiClaims>(token, &decoding, &validation) {
        Ok(data) if !data.claims.sub.chars().any(char::is_control) => Ok(data.claims),
        Ok(_) | Err(_) => Err(refused),
    }
}
