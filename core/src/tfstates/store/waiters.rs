//! SQL of `state_lock_waiters`.

use super::StateRow;
use crate::db::{DbError, Query};
use crate::ids::WorkspaceId;
use crate::tfstates::{LockInfo, LockWaiter};

// Who has not tried for a while has given up and makes room; a crowd beyond the limit is not counted.
const RECORD: &str = "
    WITH gone AS (
        DELETE FROM state_lock_waiters
        WHERE workspace_id = $2 AND lock_id <> $3
          AND last_tried_at < (SELECT plumbline_now()) - $5 * interval '1 second'
    )
    INSERT INTO state_lock_waiters AS w (business_unit_id, workspace_id, lock_id, lock_info)
    SELECT $1, $2, $3, $4
    WHERE (SELECT count(*) FROM state_lock_waiters WHERE workspace_id = $2 AND lock_id <> $3
           AND last_tried_at >= (SELECT plumbline_now()) - $5 * interval '1 second') < $6
    ON CONFLICT (workspace_id, lock_id) DO UPDATE SET tries = w.tries + 1, last_tried_at = plumbline_now()";

/// Remembers that somebody asked for a lock that another holds.
pub(in crate::tfstates) async fn record_waiter(
    query: &impl Query,
    row: &StateRow,
    info: &LockInfo,
    patience_seconds: f64,
    limit: i64,
) -> Result<(), DbError> {
    let (unit, workspace) = (&row.business_unit_id, &row.workspace_id);
    query.execute(RECORD, &[unit, workspace, &info.id(), &info.as_str(), &patience_seconds, &limit]).await?;
    Ok(())
}

const LIST: &str = "
    SELECT lock_id, lock_info, tries, first_tried_at, last_tried_at FROM state_lock_waiters
    WHERE workspace_id = $1 AND lock_id IS DISTINCT FROM $2 AND tries > 1
      AND last_tried_at >= (SELECT plumbline_now()) - $3 * interval '1 second'
    ORDER BY first_tried_at, lock_id";

/// Who has asked more than once, and lately, the longest first; not the one that has the lock by now.
pub(in crate::tfstates) async fn list_waiters(
    query: &impl Query,
    workspace: WorkspaceId,
    holder: Option<&str>,
    patience_seconds: f64,
) -> Result<Vec<LockWaiter>, DbError> {
    let rows = query.query(LIST, &[&workspace, &holder, &patience_seconds]).await?;
    let waiter = |row: &crate::db::Row| {
        let info = serde_json::from_str(row.get("lock_info")).ok();
        LockWaiter {
            lock_id: row.get("lock_id"),
            who: super::said(info.as_ref(), "Who"),
            operation: super::said(info.as_ref(), "Operation"),
            tries: row.get("tries"),
            first_tried_at: row.get("first_tried_at"),
            last_tried_at: row.get("last_tried_at"),
        }
    };
    Ok(rows.iter().map(waiter).collect())
}
