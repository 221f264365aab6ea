//! SQL of runs that wait for their workspace.

use crate::access::TraceParent;
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};

const NEXT_WAITING: &str = "
    SELECT id, business_unit_id, traceparent FROM runs WHERE workspace_id = $1 AND waiting
    ORDER BY id LIMIT 1 FOR NO KEY UPDATE SKIP LOCKED";
const STOP_WAITING: &str = "UPDATE runs SET waiting = false WHERE id = $1 AND waiting";

/// What is needed to start a run that has waited.
pub(super) struct NextWaiting {
    pub(super) id: RunId,
    pub(super) unit: BusinessUnitId,
    pub(super) traceparent: Option<TraceParent>,
}

/// The run that has waited longest for a workspace, locked. The caller holds the workspace's row.
pub(super) async fn lock_next_waiting(
    query: &impl Query,
    workspace: WorkspaceId,
) -> Result<Option<NextWaiting>, DbError> {
    let row = query.query_opt(NEXT_WAITING, &[&workspace]).await?;
    Ok(row.map(|row| NextWaiting {
        id: row.get("id"),
        unit: row.get("business_unit_id"),
        traceparent: row.get::<_, Option<&str>>("traceparent").and_then(TraceParent::parse),
    }))
}

pub(super) async fn stop_waiting(query: &impl Query, id: RunId) -> Result<bool, DbError> {
    Ok(query.execute(STOP_WAITING, &[&id]).await? == 1)
}

const WAIT_AGAIN: &str = "UPDATE runs SET waiting = true WHERE id = $1 AND status = 'pending'";

/// A run that has not begun waits once more, at the place that its age gives it.
pub(super) async fn wait_again(query: &impl Query, id: RunId) -> Result<(), DbError> {
    query.execute(WAIT_AGAIN, &[&id]).await?;
    Ok(())
}

const COUNT_WAITING: &str = "SELECT count(*) FROM runs WHERE workspace_id = $1 AND waiting";

pub(super) async fn count_waiting(query: &impl Query, workspace: WorkspaceId) -> Result<i64, DbError> {
    Ok(query.query_one(COUNT_WAITING, &[&workspace]).await?.get(0))
}

const WORKSPACES_WITH_WAITING: &str = "
    SELECT DISTINCT r.workspace_id FROM runs r JOIN workspaces w ON w.id = r.workspace_id
    WHERE r.waiting AND w.active_run_id IS NULL AND w.blocked_at IS NULL AND w.locked_at IS NULL
    LIMIT $1";

/// Free workspaces that runs wait for: only after a crash between two transactions is there any.
pub(super) async fn free_workspaces_with_waiting(
    query: &impl Query,
    limit: i64,
) -> Result<Vec<WorkspaceId>, DbError> {
    Ok(query.query(WORKSPACES_WITH_WAITING, &[&limit]).await?.iter().map(|row| row.get(0)).collect())
}
