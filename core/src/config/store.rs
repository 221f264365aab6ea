//! SQL of settings. The platform's and the units' lie in tables of their own, so every statement is there twice: none can
//! read the one for the other.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value as Json;
use uuid::Uuid;

use super::views::{Changed, HistoryEntry};
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, UserId};

/// Whose values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Owner {
    /// The platform's.
    Platform,
    /// One unit's.
    Unit(BusinessUnitId),
}

impl Owner {
    /// The table that a sealed value is bound to.
    pub(super) fn table(self) -> &'static str {
        match self {
            Self::Platform => "platform_config",
            Self::Unit(_) => "unit_config",
        }
    }
}

/// One value as stored.
#[derive(Clone, Debug)]
pub(super) struct Stored {
    pub id: Uuid,
    pub value: Option<Json>,
    pub sealed: Option<String>,
    pub version: i32,
    pub updated_by: Option<UserId>,
    pub updated_at: DateTime<Utc>,
}

/// Stored values by key.
pub(super) type Rows = BTreeMap<String, Stored>;

fn rows(rows: &[Row]) -> Rows {
    let stored = |row: &Row| Stored {
        id: row.get("id"),
        value: row.get("value"),
        sealed: row.get("sealed"),
        version: row.get("version"),
        updated_by: row.get("updated_by"),
        updated_at: row.get("updated_at"),
    };
    rows.iter().map(|row| (row.get("key"), stored(row))).collect()
}

const FIND_PLATFORM: &str = "
    SELECT key, id, value, sealed, version, updated_by, updated_at FROM platform_config WHERE key = ANY ($1)";
const FIND_UNIT: &str = "
    SELECT key, id, value, sealed, version, updated_by, updated_at FROM unit_config
    WHERE business_unit_id = $1 AND key = ANY ($2)";

/// Those of the named values that somebody has set once.
pub(super) async fn find(query: &impl Query, owner: Owner, keys: &[&str]) -> Result<Rows, DbError> {
    Ok(rows(&match owner {
        Owner::Platform => query.query(FIND_PLATFORM, &[&keys]).await?,
        Owner::Unit(unit) => query.query(FIND_UNIT, &[&unit, &keys]).await?,
    }))
}

// Ordered, so that two writers of several keys wait for each other in one order.
const ENSURE_PLATFORM: &str = "
    INSERT INTO platform_config (key, id)
    SELECT key, id FROM unnest($1::text[], $2::uuid[]) AS wanted (key, id) ORDER BY key
    ON CONFLICT (key) DO NOTHING";
const ENSURE_UNIT: &str = "
    INSERT INTO unit_config (business_unit_id, key, id)
    SELECT $1, key, id FROM unnest($2::text[], $3::uuid[]) AS wanted (key, id) ORDER BY key
    ON CONFLICT (business_unit_id, key) DO NOTHING";
const LOCK_PLATFORM: &str = "
    SELECT key, id, value, sealed, version, updated_by, updated_at FROM platform_config
    WHERE key = ANY ($1) ORDER BY key FOR NO KEY UPDATE";
const LOCK_UNIT: &str = "
    SELECT key, id, value, sealed, version, updated_by, updated_at FROM unit_config
    WHERE business_unit_id = $1 AND key = ANY ($2) ORDER BY key FOR NO KEY UPDATE";

/// The rows of the keys, made if they are missing, and locked: whoever else edits one of them waits.
pub(super) async fn lock(tx: &Tx<'_>, owner: Owner, keys: &[&str], ids: Vec<Uuid>) -> Result<Rows, DbError> {
    Ok(rows(&match owner {
        Owner::Platform => {
            tx.execute(ENSURE_PLATFORM, &[&keys, &ids]).await?;
            tx.query(LOCK_PLATFORM, &[&keys]).await?
        }
        Owner::Unit(unit) => {
            tx.execute(ENSURE_UNIT, &[&unit, &keys, &ids]).await?;
            tx.query(LOCK_UNIT, &[&unit, &keys]).await?
        }
    }))
}

/// What is written to one locked row, and told of it.
#[derive(Debug)]
pub(super) struct Write {
    pub key: &'static str,
    pub value: Option<Json>,
    pub sealed: Option<String>,
    pub history_id: Uuid,
    pub change: Changed,
    pub is_secret: bool,
    pub old_value: Option<Json>,
}

// The history is written from the row as it now is: a secret leaves no value in either.
const WRITE_PLATFORM: &str = "
    WITH written AS (
        UPDATE platform_config SET value = $2, sealed = $3, version = version + 1, updated_by = $4,
            updated_at = plumbline_now()
        WHERE key = $1 RETURNING key, version, value, updated_by, updated_at
    )
    INSERT INTO platform_config_history
        (id, key, version, change, is_secret, old_value, new_value, changed_by, changed_at)
    SELECT $5, key, version, $6, $7, $8, value, updated_by, updated_at FROM written";
const WRITE_UNIT: &str = "
    WITH written AS (
        UPDATE unit_config SET value = $2, sealed = $3, version = version + 1, updated_by = $4,
            updated_at = plumbline_now()
        WHERE key = $1 AND business_unit_id = $9
        RETURNING business_unit_id, key, version, value, updated_by, updated_at
    )
    INSERT INTO unit_config_history
        (id, business_unit_id, key, version, change, is_secret, old_value, new_value, changed_by, changed_at)
    SELECT $5, business_unit_id, key, version, $6, $7, $8, value, updated_by, updated_at FROM written";

/// Writes one locked row and its history.
pub(super) async fn write(
    tx: &Tx<'_>,
    owner: Owner,
    by: Option<UserId>,
    write: &Write,
) -> Result<(), DbError> {
    let change = write.change.as_str();
    let Write { key, value, sealed, history_id, is_secret, old_value, .. } = write;
    match owner {
        Owner::Platform => {
            tx.execute(WRITE_PLATFORM, &[key, value, sealed, &by, history_id, &change, is_secret, old_value])
                .await?
        }
        Owner::Unit(unit) => {
            tx.execute(
                WRITE_UNIT,
                &[key, value, sealed, &by, history_id, &change, is_secret, old_value, &unit],
            )
            .await?
        }
    };
    Ok(())
}

const HISTORY_PLATFORM: &str = "
    SELECT id, key, version, change, old_value, new_value, changed_by, changed_at FROM platform_config_history
    WHERE key = ANY ($1) AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3";
const HISTORY_UNIT: &str = "
    SELECT id, key, version, change, old_value, new_value, changed_by, changed_at FROM unit_config_history
    WHERE business_unit_id = $4 AND key = ANY ($1) AND ($2::uuid IS NULL OR id < $2) ORDER BY id DESC LIMIT $3";

/// Changes of the keys, newest first.
pub(super) async fn history(
    query: &impl Query,
    owner: Owner,
    keys: &[&str],
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<HistoryEntry>, DbError> {
    let rows = match owner {
        Owner::Platform => query.query(HISTORY_PLATFORM, &[&keys, &before, &limit]).await?,
        Owner::Unit(unit) => query.query(HISTORY_UNIT, &[&keys, &before, &limit, &unit]).await?,
    };
    rows.iter().map(entry).collect()
}

fn entry(row: &Row) -> Result<HistoryEntry, DbError> {
    Ok(HistoryEntry {
        id: row.get("id"),
        key: row.get("key"),
        change: Changed::parse(row.get("change")).ok_or_else(|| DbError::Row("an unknown change".into()))?,
        old_value: row.get("old_value"),
        new_value: row.get("new_value"),
        version: row.get("version"),
        changed_by: row.get("changed_by"),
        changed_at: row.get("changed_at"),
    })
}
