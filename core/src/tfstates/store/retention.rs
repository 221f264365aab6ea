//! SQL of retention.

use crate::db::{DbError, Query, Tx};
use crate::ids::{
    BusinessUnitId, QuarantinedStateId, StateStoreId, StateUploadId, StateVersionId, WorkspaceId,
};
use crate::tfstates::Retention;

// The claim: of two sweeps one gets the workspace, and a write of the state waits no longer than this transaction.
const CLAIM: &str = "
    SELECT workspace_id, business_unit_id FROM tfstates
    WHERE retention_checked_at IS NULL OR retention_checked_at < (SELECT plumbline_now()) - interval '1 day'
    ORDER BY retention_checked_at NULLS FIRST LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED";

/// A workspace whose history nobody has looked at for a day, locked until the transaction ends.
pub(in crate::tfstates) async fn claim_unchecked(
    tx: &Tx<'_>,
) -> Result<Option<(WorkspaceId, BusinessUnitId)>, DbError> {
    Ok(tx.query_opt(CLAIM, &[]).await?.map(|row| (row.get(0), row.get(1))))
}

const CHECKED: &str = "UPDATE tfstates SET retention_checked_at = plumbline_now() WHERE workspace_id = $1";

pub(in crate::tfstates) async fn set_checked(tx: &Tx<'_>, workspace: WorkspaceId) -> Result<(), DbError> {
    tx.execute(CHECKED, &[&workspace]).await?;
    Ok(())
}

/// What one statement marked as expired.
#[derive(Clone, Copy, Debug)]
pub(in crate::tfstates) struct Marked {
    pub count: i64,
    pub serial_min: Option<i64>,
    pub serial_max: Option<i64>,
    pub bytes: i64,
}

const EXPIRE_VERSIONS: &str = include_str!("../sql/expire_versions.sql");

pub(in crate::tfstates) async fn expire_versions(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    rule: Retention,
    limit: i64,
) -> Result<Marked, DbError> {
    let row = tx.query_one(EXPIRE_VERSIONS, &[&workspace, &rule.newest, &rule.days, &limit]).await?;
    Ok(Marked {
        count: row.get(0),
        serial_min: row.get("serial_min"),
        serial_max: row.get("serial_max"),
        bytes: row.get("bytes"),
    })
}

// What waits for a person waits for ever.
const EXPIRE_QUARANTINED: &str = "
    UPDATE quarantined_states SET expired_at = plumbline_now()
    WHERE id = ANY (ARRAY(
        SELECT id FROM quarantined_states
        WHERE workspace_id = $1 AND expired_at IS NULL
          AND resolved_at < (SELECT plumbline_now()) - $2 * interval '1 day'
        ORDER BY id LIMIT $3))";

/// Marks decided states by the age of the decision; returns how many.
pub(in crate::tfstates) async fn expire_quarantined(
    tx: &Tx<'_>,
    workspace: WorkspaceId,
    rule: Retention,
    limit: i64,
) -> Result<i64, DbError> {
    let marked = tx.execute(EXPIRE_QUARANTINED, &[&workspace, &rule.days, &limit]).await?;
    Ok(i64::try_from(marked).unwrap_or(i64::MAX))
}

/// A row to remove, and its body unless another row has the same one.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct Removal<Id> {
    pub id: Id,
    pub key: String,
    /// Where the body lies; `None`: in the platform's own store.
    pub store_id: Option<StateStoreId>,
    pub is_shared: bool,
    /// The body also came to the platform's store, under the same key, and was copied from there.
    pub is_staged: bool,
}

// A promoted body has two rows. Whichever goes last takes it along.
const EXPIRED_VERSIONS: &str = "
    SELECT v.id, v.key, v.store_id, false AS is_staged, EXISTS (SELECT 1 FROM quarantined_states q
        WHERE q.workspace_id = v.workspace_id AND q.key = v.key AND q.expired_at IS NULL) AS is_shared
    FROM state_versions v WHERE v.expired_at IS NOT NULL AND ($1::uuid IS NULL OR v.id > $1)
      AND (v.store_id IS NULL OR v.store_id <> ALL ($3))
    ORDER BY v.id LIMIT $2";
const EXPIRED_QUARANTINED: &str = "
    SELECT q.id, q.key, q.store_id, false AS is_staged, EXISTS (SELECT 1 FROM state_versions v
        WHERE v.workspace_id = q.workspace_id AND v.key = q.key) AS is_shared
    FROM quarantined_states q WHERE q.expired_at IS NOT NULL AND ($1::uuid IS NULL OR q.id > $1)
      AND (q.store_id IS NULL OR q.store_id <> ALL ($3))
    ORDER BY q.id LIMIT $2";
// The body of an upload that became a version, or went to quarantine, is that row's.
const SETTLED_UPLOADS: &str = "
    SELECT id, key, store_id, status <> 'abandoned' AS is_shared, store_id IS NOT NULL AS is_staged FROM state_uploads
    WHERE status <> 'pending' AND created_at < (SELECT plumbline_now()) - $4 * interval '1 second'
      AND ($1::uuid IS NULL OR id > $1)
      AND (store_id IS NULL OR store_id <> ALL ($3))
    ORDER BY id LIMIT $2";

const REMOVE_VERSIONS: &str = "DELETE FROM state_versions WHERE id = ANY ($1) AND expired_at IS NOT NULL";
const REMOVE_QUARANTINED: &str =
    "DELETE FROM quarantined_states WHERE id = ANY ($1) AND expired_at IS NOT NULL";
const REMOVE_UPLOADS: &str = "DELETE FROM state_uploads WHERE id = ANY ($1) AND status <> 'pending'";

macro_rules! removals {
    ($list:ident, $remove:ident, $id:ty, $found:ident, $gone:ident $(, $age:ident)?) => {
        /// Rows to remove, after one of them, without those whose bodies lie in certain stores.
        pub(in crate::tfstates) async fn $list(
            query: &impl Query,
            after: Option<$id>,
            limit: i64,
            without: &[StateStoreId],
            $($age: f64,)?
        ) -> Result<Vec<Removal<$id>>, DbError> {
            let without: Vec<uuid::Uuid> = without.iter().map(|id| id.0).collect();
            let rows = query.query($found, &[&after, &limit, &without $(, &$age)?]).await?;
            let removal = |row: &crate::db::Row| Removal {
                id: row.get("id"),
                key: row.get("key"),
                store_id: row.get("store_id"),
                is_shared: row.get("is_shared"),
                is_staged: row.get("is_staged"),
            };
            Ok(rows.iter().map(removal).collect())
        }

        /// Removes rows whose bodies are gone; returns how many were left.
        pub(in crate::tfstates) async fn $remove(query: &impl Query, ids: &[$id]) -> Result<u64, DbError> {
            let ids: Vec<uuid::Uuid> = ids.iter().map(|id| id.0).collect();
            query.execute($gone, &[&ids]).await
        }
    };
}

removals!(list_expired_versions, remove_versions, StateVersionId, EXPIRED_VERSIONS, REMOVE_VERSIONS);
removals!(
    list_expired_quarantined,
    remove_quarantined,
    QuarantinedStateId,
    EXPIRED_QUARANTINED,
    REMOVE_QUARANTINED
);
removals!(list_settled_uploads, remove_uploads, StateUploadId, SETTLED_UPLOADS, REMOVE_UPLOADS, age_seconds);
