//! SQL of the secrets that access tokens are signed with.

use std::time::Duration;

use uuid::Uuid;

use super::jwt_secrets::JwtSecretView;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{JwtSecretId, UserId};

const FIND_SIGNING: &str = "SELECT id, sealed FROM jwt_secrets WHERE retired_at IS NULL";

/// The secret that signs, as it is stored.
pub(super) async fn find_signing(query: &impl Query) -> Result<Option<(JwtSecretId, String)>, DbError> {
    Ok(query.query_opt(FIND_SIGNING, &[]).await?.map(|row| (row.get("id"), row.get("sealed"))))
}

const FIND: &str = "SELECT sealed FROM jwt_secrets WHERE id = $1";

/// A secret as it is stored, also one whose tokens are accepted no more.
pub(super) async fn find(query: &impl Query, id: JwtSecretId) -> Result<Option<String>, DbError> {
    Ok(query.query_opt(FIND, &[&id]).await?.map(|row| row.get("sealed")))
}

const INSERT_FIRST: &str = "INSERT INTO jwt_secrets (id, sealed) VALUES ($1, $2) ON CONFLICT DO NOTHING";

/// Whether there was none that signs.
pub(super) async fn insert_first(tx: &Tx<'_>, id: JwtSecretId, sealed: &str) -> Result<bool, DbError> {
    Ok(tx.execute(INSERT_FIRST, &[&id, &sealed]).await? == 1)
}

const LOCK: &str = "LOCK TABLE jwt_secrets IN SHARE ROW EXCLUSIVE MODE";

/// Keeps other rotations away until the transaction ends. Readers do not wait.
pub(super) async fn lock(tx: &Tx<'_>) -> Result<(), DbError> {
    tx.execute(LOCK, &[]).await?;
    Ok(())
}

// Those that were retired before are accepted no longer than the one that is retired now: with no overlap at all, the
// tokens of none of them are.
const RETIRE: &str = "
    UPDATE jwt_secrets SET retired_at = coalesce(retired_at, clock.at),
        accepted_until = least(accepted_until, clock.at + $1 * interval '1 microsecond')
    FROM (SELECT plumbline_now() AS at) AS clock
    WHERE retired_at IS NULL OR accepted_until > clock.at + $1 * interval '1 microsecond'
    RETURNING id";

/// Lets the one that signs sign no more, and none of the older ones be accepted for longer. Their ids.
pub(super) async fn retire(tx: &Tx<'_>, overlap: Duration) -> Result<Vec<JwtSecretId>, DbError> {
    let micros = i64::try_from(overlap.as_micros()).unwrap_or(i64::MAX);
    Ok(tx.query(RETIRE, &[&micros]).await?.iter().map(|row| row.get("id")).collect())
}

fn view(row: &Row) -> JwtSecretView {
    JwtSecretView {
        kid: row.get("id"),
        created_by: row.get("created_by"),
        created_at: row.get("created_at"),
        retired_at: row.get("retired_at"),
        accepted_until: row.get("accepted_until"),
    }
}

const INSERT: &str = "
    INSERT INTO jwt_secrets (id, sealed, created_by) VALUES ($1, $2, $3)
    RETURNING id, created_by, created_at, retired_at, accepted_until";

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: JwtSecretId,
    sealed: &str,
    created_by: Option<UserId>,
) -> Result<JwtSecretView, DbError> {
    Ok(view(&tx.query_one(INSERT, &[&id, &sealed, &created_by]).await?))
}

const LIST: &str = "
    SELECT id, created_by, created_at, retired_at, accepted_until FROM jwt_secrets
    WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2";

pub(super) async fn list(
    query: &impl Query,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<JwtSecretView>, DbError> {
    Ok(query.query(LIST, &[&before, &limit]).await?.iter().map(view).collect())
}

const FORGET: &str =
    "DELETE FROM jwt_secrets WHERE accepted_until < (SELECT plumbline_now()) - interval '7 days'";

/// Removes those whose tokens have long been refused.
pub(super) async fn forget(query: &impl Query) -> Result<u64, DbError> {
    query.execute(FORGET, &[]).await
}
