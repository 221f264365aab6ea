//! SQL of idempotency keys.

use std::time::Duration;

use super::model::{Answer, Key};
use crate::db::{DbError, Query, Tx};
use crate::digest::Sha256Digest;

/// What is stored under a key.
pub(super) struct Stored {
    pub request: Option<Sha256Digest>,
    /// `None` while the first request is under way.
    pub answer: Option<Answer>,
}

// While another transaction has inserted the same key and not yet ended, this waits for it: then either that one's
// answer is there, or, if it rolled back, this one is the first. An expired key is taken over.
const BEGIN: &str = "
    INSERT INTO idempotency_keys AS known (principal, key, request_hash, expires_at)
    VALUES ($1, $2, $3, plumbline_now() + $4 * interval '1 microsecond')
    ON CONFLICT (principal, key) DO UPDATE SET
        request_hash = excluded.request_hash, status = NULL, response = NULL, location = NULL,
        expires_at = excluded.expires_at, created_at = plumbline_now()
    WHERE known.expires_at <= plumbline_now()";

/// Whether the key is now this request's.
pub(super) async fn begin(tx: &Tx<'_>, key: &Key, age: Duration) -> Result<bool, DbError> {
    let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    let rows = tx.execute(BEGIN, &[&key.principal, &key.key, &&key.request.0[..], &micros]).await?;
    Ok(rows == 1)
}

const FIND: &str = "
    SELECT request_hash, status, location, response FROM idempotency_keys WHERE principal = $1 AND key = $2";

pub(super) async fn find(query: &impl Query, key: &Key) -> Result<Option<Stored>, DbError> {
    let row = query.query_opt(FIND, &[&key.principal, &key.key]).await?;
    Ok(row.map(|row| Stored {
        request: Sha256Digest::from_slice(row.get("request_hash")),
        answer: row.get::<_, Option<i32>>("status").map(|status| Answer {
            status: u16::try_from(status).unwrap_or(200),
            location: row.get("location"),
            body: row.get::<_, Option<_>>("response").unwrap_or_default(),
        }),
    }))
}

const STORE: &str = "
    UPDATE idempotency_keys SET status = $3, location = $4, response = $5 WHERE principal = $1 AND key = $2";

pub(super) async fn store(tx: &Tx<'_>, key: &Key, answer: &Answer) -> Result<(), DbError> {
    let status = i32::from(answer.status);
    tx.execute(STORE, &[&key.principal, &key.key, &status, &answer.location, &answer.body]).await?;
    Ok(())
}

const FORGET: &str = "DELETE FROM idempotency_keys WHERE expires_at <= (SELECT plumbline_now())";

pub(super) async fn forget(query: &impl Query) -> Result<u64, DbError> {
    query.execute(FORGET, &[]).await
}
