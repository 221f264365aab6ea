//! Signed URLs of the directory store: who has one may do exactly that one request until it expires.
//!
//! Expiry is by this machine's clock, not by the database's: the URL is only a capability to move bytes that are
//! checked against a digest. What becomes of them is decided later, in the database.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;
use url::form_urlencoded;

use crate::digest::Sha256Digest;
use crate::ports::BlobError;

/// What a signed URL lets its holder do.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Grant {
    /// Length of the bytes that may be written; 0 in a GET.
    pub size_bytes: u64,
    /// Digest of the bytes that may be written; `None` in a GET.
    pub sha256: Option<Sha256Digest>,
    /// Seconds since 1970.
    pub expires_at_unix: i64,
}

/// Why a signed request was refused.
#[derive(Debug, thiserror::Error)]
pub enum GrantError {
    /// The query is not one that we made for this method and object.
    #[error("the signature does not fit this request")]
    BadSignature,
    /// Too late.
    #[error("the signed URL has expired")]
    Expired,
    /// The bytes are not the ones that were signed.
    #[error("the bytes are not the ones that this URL was made for")]
    OtherBytes,
    /// The store.
    #[error(transparent)]
    Store(#[from] BlobError),
}

pub(super) fn now_unix() -> i64 {
    chrono::Utc::now().timestamp()
}

pub(super) fn expiry(age: Duration) -> i64 {
    now_unix().saturating_add(i64::try_from(age.as_secs()).unwrap_or(i64::MAX))
}

pub(super) fn query(secret: &[u8; 32], method: &str, key: &str, grant: &Grant) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    query.append_pair("expires", &grant.expires_at_unix.to_string());
    if let Some(sha256) = grant.sha256 {
        query.append_pair("size", &grant.size_bytes.to_string());
        query.append_pair("sha256", &sha256.to_string());
    }
    query.append_pair("signature", &hex::encode(mac(secret, method, key, grant).finalize().into_bytes()));
    query.finish()
}

pub(super) fn verify(
    secret: &[u8; 32],
    method: &str,
    key: &str,
    query: &str,
    now_unix: i64,
) -> Result<Grant, GrantError> {
    let value_of = |name: &str| {
        form_urlencoded::parse(query.as_bytes()).find(|(key, _)| key == name).map(|(_, value)| value)
    };
    let number_of = |name: &str| value_of(name).and_then(|text| text.parse::<i64>().ok());
    let grant = Grant {
        size_bytes: number_of("size").and_then(|size| u64::try_from(size).ok()).unwrap_or(0),
        sha256: value_of("sha256").and_then(|text| text.parse().ok()),
        expires_at_unix: number_of("expires").ok_or(GrantError::BadSignature)?,
    };
    let signature = value_of("signature").and_then(|text| hex::decode(&*text).ok()).unwrap_or_default();
    mac(secret, method, key, &grant).verify_slice(&signature).map_err(|_| GrantError::BadSignature)?;
    if grant.expires_at_unix <= now_unix {
        return Err(GrantError::Expired);
    }
    Ok(grant)
}

fn mac(secret: &[u8; 32], method: &str, key: &str, grant: &Grant) -> Hmac<Sha256> {
    let mut mac = <Hmac<Sha256> as hmac::Mac>::new_from_slice(secret).expect("HMAC takes keys of any length");
    let sha256 = grant.sha256.map(|digest| digest.to_string()).unwrap_or_default();
    let (size, expires) = (grant.size_bytes.to_string(), grant.expires_at_unix.to_string());
    // No part can contain a line break, so parts cannot run into each other.
    mac.update(["plumbline-blob-v1", method, key, &size, &sha256, &expires].join("\n").as_bytes());
    mac
}
