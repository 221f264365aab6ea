//! Use cases of idempotency keys.

use std::time::Duration;

use super::model::{Answer, Begun, Key};
use super::{IdempotencyError, store};
use crate::Deps;
use crate::db::{DbError, Tx};

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
