//! SQL of invitations.

use std::time::Duration;

use chrono::{DateTime, Utc};

use crate::db::{DbError, Query, Tx};
use crate::digest::Sha256Digest;
use crate::ids::UserId;

const PUT: &str = "
    INSERT INTO invites (user_id, token_hash, created_by, expires_at)
    VALUES ($1, $2, $3, plumbline_now() + $4 * interval '1 microsecond')
    ON CONFLICT (user_id) DO UPDATE SET token_hash = excluded.token_hash, created_by = excluded.created_by,
        expires_at = excluded.expires_at, created_at = plumbline_now()
    RETURNING expires_at";

/// Stores a person's invitation, in place of an older one. Until when it is good.
pub(super) async fn put(
    tx: &Tx<'_>,
    user: UserId,
    kept: Sha256Digest,
    by: Option<UserId>,
    age: Duration,
) -> Result<DateTime<Utc>, DbError> {
    let micros = i64::try_from(age.as_micros()).unwrap_or(i64::MAX);
    Ok(tx.query_one(PUT, &[&user, &&kept.0[..], &by, &micros]).await?.get("expires_at"))
}

const FIND: &str = "
    SELECT users.id, users.email FROM invites JOIN users ON users.id = invites.user_id
    WHERE invites.token_hash = $1 AND invites.expires_at > plumbline_now() AND users.disabled_at IS NULL";

/// Whom an invitation is for.
pub(super) async fn find(
    query: &impl Query,
    kept: Sha256Digest,
) -> Result<Option<(UserId, String)>, DbError> {
    let row = query.query_opt(FIND, &[&&kept.0[..]]).await?;
    Ok(row.map(|row| (row.get("id"), row.get("email"))))
}

const USE: &str = "
    DELETE FROM invites WHERE user_id = $1 AND token_hash = $2 AND expires_at > plumbline_now()
    RETURNING created_by";

/// Uses an invitation up, and says who made it, if they are still there. `None`: somebody was faster.
pub(super) async fn use_up(
    tx: &Tx<'_>,
    user: UserId,
    kept: Sha256Digest,
) -> Result<Option<Option<UserId>>, DbError> {
    Ok(tx.query_opt(USE, &[&user, &&kept.0[..]]).await?.map(|row| row.get("created_by")))
}

const REVOKE: &str = "DELETE FROM invites WHERE user_id = $1";

/// Removes a person's invitation. Whether there was one.
pub(super) async fn revoke(tx: &Tx<'_>, user: UserId) -> Result<bool, DbError> {
    Ok(tx.execute(REVOKE, &[&user]).await? == 1)
}
