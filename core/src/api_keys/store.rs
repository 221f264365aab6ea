//! SQL of API keys.

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::model::{ApiKeyView, KeyOfRule, Life, NewApiKey, Standing};
use crate::access::{Capability, Role};
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{ApiKeyId, BusinessUnitId, UserId, WorkspaceId};

macro_rules! columns {
    () => {
        "key.id, key.name, key.token_prefix, key.capability, key.business_unit_id, key.user_id, key.trust_rule_id,
         key.created_by, key.created_at, key.last_used_at, key.expires_at, key.revoked_at, key.rotated_at, key.superseded_by_id,
         CASE WHEN key.confined
              THEN ARRAY(SELECT workspace_id FROM api_key_workspaces
                         WHERE api_key_id = key.id ORDER BY workspace_id) END AS workspaces"
    };
}

fn view(row: &Row) -> ApiKeyView {
    ApiKeyView {
        id: row.get("id"),
        name: row.get("name"),
        token_prefix: row.get("token_prefix"),
        capability: capability(row),
        workspace_ids: row.get("workspaces"),
        business_unit_id: row.get("business_unit_id"),
        user_id: row.get("user_id"),
        trust_rule_id: row.get("trust_rule_id"),
        created_by: row.get("created_by"),
        created_at: row.get("created_at"),
        last_used_at: row.get("last_used_at"),
        expires_at: row.get("expires_at"),
        revoked_at: row.get("revoked_at"),
        rotated_at: row.get("rotated_at"),
        superseded_by_id: row.get("superseded_by_id"),
    }
}

/// The table knows no other words; the least stands for one that it should have.
fn capability(row: &Row) -> Capability {
    Capability::parse(row.get("capability")).unwrap_or(Capability::Read)
}

/// What the database says about a token's bearer, in one round trip, which also notes that it was used.
pub(super) async fn standing(query: &impl Query, token: Sha256Digest) -> Result<Option<Standing>, DbError> {
    let row = query.query_opt(include_str!("sql/standing.sql"), &[&&token.0[..]]).await?;
    Ok(row.map(|row| Standing {
        id: row.get("id"),
        name: row.get("name"),
        business_unit_id: row.get("business_unit_id"),
        capability: capability(&row),
        workspaces: row.get::<_, Option<Vec<WorkspaceId>>>("workspaces").map(Into::into),
        revoked: row.get("revoked"),
        expired: row.get("expired"),
        outdated: row.get("outdated"),
        unit_archived: row.get("unit_archived"),
        owner: row.get("user_id"),
        owner_role: row.get::<_, Option<&str>>("owner_role").and_then(Role::parse),
        at: row.get("at"),
    }))
}

/// A key's secret as it is kept.
#[derive(Clone, Debug)]
pub(super) struct Secret {
    pub prefix: String,
    pub hash: Sha256Digest,
}

// No row if it would be void at once: only the database's clock can say.
const INSERT: &str = "
    INSERT INTO api_keys (id, business_unit_id, name, token_prefix, token_hash, capability, confined, user_id,
                          created_by, expires_at, epoch)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, $8, $9, epoch FROM installation
    WHERE $9::timestamptz IS NULL OR $9 > plumbline_now()";

/// Makes a key of the owner. Whether it could be: it must not expire in the past.
pub(super) async fn insert(
    tx: &Tx<'_>,
    id: ApiKeyId,
    unit: BusinessUnitId,
    new: &NewApiKey,
    secret: &Secret,
    owner: UserId,
) -> Result<bool, DbError> {
    let made = tx
        .execute(
            INSERT,
            &[
                &id,
                &unit,
                &new.name,
                &secret.prefix,
                &&secret.hash.0[..],
                &new.capability.as_str(),
                &new.workspace_ids.is_some(),
                &owner,
                &new.expires_at,
            ],
        )
        .await?;
    Ok(made == 1)
}

// Only what is the unit's own; the caller compares how many there were.
const CONFINE: &str = "
    INSERT INTO api_key_workspaces (business_unit_id, api_key_id, workspace_id)
    SELECT $1, $2, id FROM workspaces WHERE business_unit_id = $1 AND id = ANY ($3)";

/// Confines a key to the workspaces that are the unit's. How many those were.
pub(super) async fn confine(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    key: ApiKeyId,
    workspaces: Vec<Uuid>,
) -> Result<u64, DbError> {
    tx.execute(CONFINE, &[&unit, &key, &workspaces]).await
}

const INSERT_OF_RULE: &str = "
    INSERT INTO api_keys (id, business_unit_id, name, token_prefix, token_hash, capability, confined, trust_rule_id,
                          expires_at, epoch)
    SELECT $1, $2, $3, $4, $5, $6, $7, $8, plumbline_now() + $9 * interval '1 minute', epoch FROM installation
    RETURNING expires_at";

/// Makes a key of a trust rule; gives when it ends.
pub(super) async fn insert_of_rule(
    tx: &Tx<'_>,
    id: ApiKeyId,
    new: &KeyOfRule<'_>,
    secret: &Secret,
) -> Result<DateTime<Utc>, DbError> {
    let row = tx
        .query_one(
            INSERT_OF_RULE,
            &[
                &id,
                &new.unit,
                &new.name,
                &secret.prefix,
                &&secret.hash.0[..],
                &new.capability.as_str(),
                &new.workspace_ids.is_some(),
                &new.rule,
                &new.minutes,
            ],
        )
        .await?;
    Ok(row.get("expires_at"))
}

const FORGET: &str = "
    DELETE FROM api_keys
    WHERE trust_rule_id IS NOT NULL AND expires_at < (SELECT plumbline_now()) - interval '1 day'";

/// Removes the keys of trust rules that are over for good. How many there were.
pub(super) async fn forget(query: &impl Query) -> Result<u64, DbError> {
    query.execute(FORGET, &[]).await
}

const FIND: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM api_keys key WHERE key.id = $2 AND ($1::uuid IS NULL OR key.business_unit_id = $1)"
);

pub(super) async fn find(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: ApiKeyId,
) -> Result<Option<ApiKeyView>, DbError> {
    Ok(query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(view))
}

const LIST: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM api_keys key
      WHERE key.business_unit_id = $1 AND key.trust_rule_id IS NULL AND ($2::uuid IS NULL OR key.id < $2)
      ORDER BY key.id DESC LIMIT $3"
);

pub(super) async fn list(
    query: &impl Query,
    unit: BusinessUnitId,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<ApiKeyView>, DbError> {
    Ok(query.query(LIST, &[&unit, &before, &limit]).await?.iter().map(view).collect())
}

// Two rotations of one key meet at this lock: the second one sees what the first did.
const LOCK: &str = "
    SELECT revoked_at IS NOT NULL AS revoked, coalesce(expires_at <= plumbline_now(), false) AS expired,
           rotated_at IS NOT NULL AS rotated
    FROM api_keys WHERE id = $2 AND ($1::uuid IS NULL OR business_unit_id = $1) FOR UPDATE";

pub(super) async fn lock(
    tx: &Tx<'_>,
    unit: Option<BusinessUnitId>,
    id: ApiKeyId,
) -> Result<Option<Life>, DbError> {
    let row = tx.query_opt(LOCK, &[&unit, &id]).await?;
    Ok(row.map(|row| Life {
        revoked: row.get("revoked"),
        expired: row.get("expired"),
        rotated: row.get("rotated"),
    }))
}

const REGENERATE: &str = "
    UPDATE api_keys SET user_id = $3, token_prefix = $4, token_hash = $5, last_used_at = NULL,
        epoch = (SELECT epoch FROM installation)
    WHERE id = $2 AND business_unit_id = $1";

/// Gives a locked key another token and owner; the old token is dead.
pub(super) async fn regenerate(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    id: ApiKeyId,
    owner: UserId,
    secret: &Secret,
) -> Result<(), DbError> {
    tx.execute(REGENERATE, &[&unit, &id, &owner, &secret.prefix, &&secret.hash.0[..]]).await?;
    Ok(())
}

// least() ignores NULL: a key without an expiry gets one, and no expiry moves further away.
const SUPERSEDE: &str = "
    UPDATE api_keys SET rotated_at = plumbline_now(), superseded_by_id = $3,
        expires_at = least(expires_at, plumbline_now() + $4 * interval '1 hour')
    WHERE id = $2 AND business_unit_id = $1";

/// Links a locked key to its successor and ends it after the overlap.
pub(super) async fn supersede(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    id: ApiKeyId,
    successor: ApiKeyId,
    overlap_hours: i64,
) -> Result<(), DbError> {
    tx.execute(SUPERSEDE, &[&unit, &id, &successor, &overlap_hours]).await?;
    Ok(())
}

const REVOKE: &str = "
    UPDATE api_keys SET revoked_at = plumbline_now(), revoked_reason = $3
    WHERE id = $2 AND business_unit_id = $1 AND revoked_at IS NULL";

/// Whether it had not been revoked before.
pub(super) async fn revoke(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    id: ApiKeyId,
    reason: &str,
) -> Result<bool, DbError> {
    Ok(tx.execute(REVOKE, &[&unit, &id, &reason]).await? == 1)
}

const REVOKE_ELSEWHERE: &str = "
    UPDATE api_keys SET revoked_at = plumbline_now(), revoked_reason = $3
    WHERE user_id = $1 AND business_unit_id <> ALL ($2) AND revoked_at IS NULL
    RETURNING id, business_unit_id";

/// Revokes every key of an owner but those in the given units.
pub(super) async fn revoke_elsewhere(
    tx: &Tx<'_>,
    owner: UserId,
    units: &[BusinessUnitId],
    reason: &str,
) -> Result<Vec<(ApiKeyId, BusinessUnitId)>, DbError> {
    let units: Vec<uuid::Uuid> = units.iter().map(|unit| unit.0).collect();
    let rows = tx.query(REVOKE_ELSEWHERE, &[&owner, &units, &reason]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("business_unit_id"))).collect())
}
