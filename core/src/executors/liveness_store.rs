//! SQL about which executors may still act.

use std::time::Duration;

use crate::db::{DbError, Query};
use crate::ids::{ExecutorId, TaskId};

// SKIP LOCKED: a ticket that is locked is being traded right now. Waiting for it while the task is locked would be a
// deadlock, for the trade locks the ticket before the task.
const VOID: &str = "
    UPDATE tickets SET voided_at = coalesce(voided_at, plumbline_now())
    WHERE ticket_hash = ANY(ARRAY(
        SELECT ticket_hash FROM tickets WHERE executor_id = $1 AND traded_at IS NULL FOR UPDATE SKIP LOCKED))";

/// Voids a ticket that was not traded; `false` if it was, or is being traded.
pub(super) async fn void_ticket(query: &impl Query, id: ExecutorId) -> Result<bool, DbError> {
    Ok(query.execute(VOID, &[&id]).await? == 1)
}

const ALIVE: &str = "
    SELECT id, handle FROM executors
    WHERE status <> 'stopped' AND launcher = $1 AND handle IS NOT NULL AND id > $2
    ORDER BY id LIMIT $3";

/// Executors that may act, with what the platform calls them, after the given one.
pub(super) async fn alive(
    query: &impl Query,
    launcher: &str,
    after: ExecutorId,
    limit: i64,
) -> Result<Vec<(ExecutorId, String)>, DbError> {
    let rows = query.query(ALIVE, &[&launcher, &after, &limit]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("handle"))).collect())
}

const UNRECORDED: &str = "
    SELECT x.id, x.task_id, x.lease_token,
           EXISTS (SELECT 1 FROM tasks t WHERE t.id = x.task_id AND t.lease_token = x.lease_token
                   AND t.status = 'running') AS wanted
    FROM executors x
    WHERE x.status <> 'stopped' AND x.launcher = $1 AND x.handle IS NULL
      AND x.launched_at <= plumbline_now() - make_interval(secs => $2)
    ORDER BY x.id LIMIT $3";

/// An executor whose launch was not recorded.
#[derive(Debug)]
pub(super) struct Unrecorded {
    pub(super) id: ExecutorId,
    pub(super) task_id: TaskId,
    pub(super) lease_token: i64,
    /// Whether its attempt still holds the task.
    pub(super) wanted: bool,
}

/// Executors without a handle that were prepared at least that long ago.
pub(super) async fn unrecorded(
    query: &impl Query,
    launcher: &str,
    age: Duration,
    limit: i64,
) -> Result<Vec<Unrecorded>, DbError> {
    let rows = query.query(UNRECORDED, &[&launcher, &age.as_secs_f64(), &limit]).await?;
    Ok(rows
        .iter()
        .map(|row| Unrecorded {
            id: row.get("id"),
            task_id: row.get("task_id"),
            lease_token: row.get("lease_token"),
            wanted: row.get("wanted"),
        })
        .collect())
}

// Unwanted: asked to stop a while ago and still there, or without a running task. One whose task was just done gets a
// moment to leave by itself. Those asked for the first time come first, so that stubborn ones cannot crowd them out.
const TAKE_UNWANTED: &str = "
    WITH unwanted AS MATERIALIZED (
        SELECT x.id FROM executors x
        WHERE x.status <> 'stopped' AND x.launcher = $1 AND x.handle IS NOT NULL
          AND (x.stop_requested_at <= plumbline_now() - make_interval(secs => $2)
               OR (NOT EXISTS (SELECT 1 FROM tasks t WHERE t.id = x.task_id AND t.lease_token = x.lease_token
                               AND t.status = 'running')
                   AND NOT EXISTS (SELECT 1 FROM finished_tasks f WHERE f.id = x.task_id AND f.outcome = 'done'
                                   AND f.finished_at > plumbline_now() - make_interval(secs => $2))))
        ORDER BY x.status = 'stopping', x.id LIMIT $3
        FOR NO KEY UPDATE OF x SKIP LOCKED
    )
    UPDATE executors x
    SET status = 'stopping', stop_requested_at = coalesce(x.stop_requested_at, plumbline_now()),
        stop_reason = coalesce(x.stop_reason, 'its attempt is over')
    FROM unwanted WHERE x.id = unwanted.id
    RETURNING x.handle, x.stop_reason";

/// Takes executors that should not be there, with the reason.
pub(super) async fn take_unwanted(
    query: &impl Query,
    launcher: &str,
    leave_alone: Duration,
    limit: i64,
) -> Result<Vec<(String, String)>, DbError> {
    let rows = query.query(TAKE_UNWANTED, &[&launcher, &leave_alone.as_secs_f64(), &limit]).await?;
    Ok(rows.iter().map(|row| (row.get("handle"), row.get("stop_reason"))).collect())
}
