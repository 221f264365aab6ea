//! Use cases of idempotency keys.

use std::time::Duration;

use hmac::{Hmac, Mac as _};
use sha2::Sha256;

use super::model::{Answer, Begun, Key};
use super::{IdempotencyError, store};
use crate::Deps;
use crate::db::{DbError, Tx};
use crate::digest::Sha256Digest;
use crate::secrets::{Domain, Keyring, KeyringError};

/// What is kept of a request, to know it again. Keyed: a request may hold a password, and a plain digest of it would be
/// something to try guesses on.
pub fn fingerprint(keys: &Keyring, request: &[u8]) -> Result<Sha256Digest, KeyringError> {
    let mut mac = Hmac::<Sha256>::new_from_slice(keys.key(Domain::Sessions)?).expect("any length will do");
    // The same key signs tokens; the label keeps one from being taken for the other.
    mac.update(b"plumbline idempotent request 1\n");
    mac.update(request);
    Ok(Sha256Digest(mac.finalize().into_bytes().into()))
}

/// Call first in the transaction that executes the request. Waits while another transaction holds the key.
pub async fn begin(tx: &Tx<'_>, key: &Key, age: Duration) -> Result<Begun, IdempotencyError> {
    let first = store::begin(tx, key, age).await.map_err(|error| match error {
        // The server gave up waiting for the request that holds the key.
        DbError::TryAgain(_) => IdempotencyError::InProgress,
        other => other.into(),
    })?;
    if first {
        return Ok(Begun::First);
    }
    match store::find(tx, key).await? {
        Some(stored) if stored.request != Some(key.request) => Err(IdempotencyError::OtherRequest),
        Some(store::Stored { answer: Some(answer), .. }) => Ok(Begun::Replay(answer)),
        // Removed as expired between the two statements, or begun without an answer: the next try is clear.
        Some(_) | None => Err(IdempotencyError::InProgress),
    }
}

/// Call last: what the request was answered.
pub async fn store(tx: &Tx<'_>, key: &Key, answer: &Answer) -> Result<(), DbError> {
    store::store(tx, key, answer).await
}

/// Removes expired keys. Returns how many went.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    store::forget(&deps.db.conn().await?).await
}
