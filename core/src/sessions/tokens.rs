//! Making and reading tokens: access tokens are HS256 JWTs whose header names the secret that signed them, refresh
//! tokens are opaque.
//!
//! A refresh token names its session and its place in it, and ends with a MAC of its own: an old one is told from an
//! invented one, so that nobody can end a session by guessing.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, Mac as _};
use jsonwebtoken::{Algorithm, DecodingKey, EncodingKey, Header, Validation};
use sha2::Sha256;
use uuid::Uuid;

use super::SessionError;
use super::jwt_secrets::JwtSecret;
use super::model::Claims;
use crate::digest::Sha256Digest;
use crate::ids::{JwtSecretId, SessionId, UserId};
use crate::secrets::{Domain, Keyring};

pub(super) const ISSUER: &str = "plumbline";
pub(super) const AUDIENCE: &str = "plumbline-api";
pub(super) const ACCESS: &str = "access";
const REFRESH_PREFIX: &str = "plr_";
pub(super) const INVALID: SessionError = SessionError::Unauthenticated("the token is not valid");

/// What a refresh token says.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) struct RefreshToken {
    pub session: SessionId,
    pub sequence: i32,
    pub generation: i32,
    pub epoch: i32,
    pub secret: [u8; 32],
}

impl std::fmt::Debug for RefreshToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("RefreshToken")
            .field("session", &self.session)
            .field("sequence", &self.sequence)
            .finish_non_exhaustive()
    }
}

const SIGNED_BYTES: usize = 16 + 4 + 4 + 4 + 32;
const TOKEN_BYTES: usize = SIGNED_BYTES + 32;

/// What an access token says of itself before anybody has checked it: where to look for what proves it, and nothing
/// else.
#[derive(Clone, Copy, Debug)]
pub(super) struct Presented {
    pub secret: JwtSecretId,
    pub session: SessionId,
    pub user: UserId,
}

/// Signs an access token.
pub(super) fn sign_access(secret: &JwtSecret, claims: &Claims) -> Result<String, SessionError> {
    let key = EncodingKey::from_secret(&secret.bytes).map_err(SessionError::Sign)?;
    let header = Header { kid: Some(secret.id.to_string()), ..Header::new(Algorithm::HS256) };
    jsonwebtoken::encode(&header, claims, &key).map_err(SessionError::Sign)
}

/// Reads what a token that could be one of ours names.
pub(super) fn presented(token: &str) -> Result<Presented, SessionError> {
    let read = jsonwebtoken::dangerous::insecure_decode::<Claims>(token).map_err(|_| INVALID)?;
    let secret = read.header.kid.and_then(|kid| kid.parse().ok()).ok_or(INVALID)?;
    Ok(Presented { secret, session: read.claims.jti, user: read.claims.sub })
}

/// Reads an access token that we signed. Its times are not checked here: the database's clock does that.
pub(super) fn read_access(secret: &JwtSecret, token: &str) -> Result<Claims, SessionError> {
    let key = DecodingKey::from_secret(&secret.bytes).map_err(|_| INVALID)?;
    let mut validation = Validation::new(Algorithm::HS256);
    validation.validate_exp = false;
    validation.set_required_spec_claims(&["exp", "iss", "aud", "sub"]);
    validation.set_issuer(&[ISSUER]);
    validation.set_audience(&[AUDIENCE]);
    let claims = jsonwebtoken::decode::<Claims>(token, &key, &validation).map_err(|_| INVALID)?.claims;
    if claims.kind == ACCESS { Ok(claims) } else { Err(INVALID) }
}

impl RefreshToken {
    /// The token's text.
    pub(super) fn encode(&self, keys: &Keyring) -> Result<String, SessionError> {
        let mut bytes = Vec::with_capacity(TOKEN_BYTES);
        bytes.extend(Uuid::from(self.session).as_bytes());
        bytes.extend(self.sequence.to_be_bytes());
        bytes.extend(self.generation.to_be_bytes());
        bytes.extend(self.epoch.to_be_bytes());
        bytes.extend(self.secret);
        let mac = mac(keys.key(Domain::Sessions)?, &bytes).finalize().into_bytes();
        bytes.extend(mac);
        Ok([REFRESH_PREFIX, &URL_SAFE_NO_PAD.encode(bytes)].concat())
    }

    /// Reads a token that we made.
    pub(super) fn decode(keys: &Keyring, text: &str) -> Result<Self, SessionError> {
        let bytes = text
            .strip_prefix(REFRESH_PREFIX)
            .and_then(|text| URL_SAFE_NO_PAD.decode(text).ok())
            .filter(|bytes| bytes.len() == TOKEN_BYTES)
            .ok_or(INVALID)?;
        let (signed, given) = bytes.split_at(SIGNED_BYTES);
        let mut keys = keys.every_key(Domain::Sessions)?;
        if !keys.any(|key| mac(key, signed).verify_slice(given).is_ok()) {
            return Err(INVALID);
        }
        let number = |at: usize| i32::from_be_bytes(signed[at..at + 4].try_into().expect("four bytes"));
        Ok(Self {
            session: SessionId(Uuid::from_slice(&signed[..16]).expect("sixteen bytes")),
            sequence: number(16),
            generation: number(20),
            epoch: number(24),
            secret: signed[28..].try_into().expect("thirty-two bytes"),
        })
    }
}

/// What is stored of a refresh token.
pub(super) fn at_rest(token: &str) -> Sha256Digest {
    Sha256Digest::of(token.as_bytes())
}

fn mac(key: &[u8; 32], bytes: &[u8]) -> Hmac<Sha256> {
    let mut mac = Hmac::<Sha256>::new_from_slice(key).expect("any length will do");
    // The same key seals the secrets of access tokens; the label keeps one use from being taken for the other.
    mac.update(b"plumbline refresh token 1\n");
    mac.update(bytes);
    mac
}
