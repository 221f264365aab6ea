//! SQL of the sweeps over runs.

use std::time::Duration;

use super::RunStatus;
use crate::db::{DbError, Query};
use crate::ids::{RunId, WorkspaceId};

const EXPIRED: &str = "
    SELECT id, workspace_id FROM runs
    WHERE status = 'awaiting_approval' AND plan_expires_at <= (SELECT plumbline_now())
    ORDER BY plan_expires_at LIMIT $1";

pub(super) async fn expired_plans(
    query: &impl Query,
    limit: i64,
) -> Result<Vec<(RunId, WorkspaceId)>, DbError> {
    Ok(query.query(EXPIRED, &[&limit]).await?.iter().map(|row| (row.get(0), row.get(1))).collect())
}

// Nothing begins or goes on in a run that has ended; a promotion of it asks for the values and is refused then.
const REMOVE_VALUES: &str = "
    UPDATE runs SET variables_sealed = NULL, pinned_variables_sealed = NULL, variables_removed_at = plumbline_now()
    WHERE id = ANY(ARRAY(
        SELECT id FROM runs
        WHERE completed_at <= (SELECT plumbline_now()) - make_interval(secs => $1)
          AND (variables_sealed IS NOT NULL OR pinned_variables_sealed IS NOT NULL)
        ORDER BY completed_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED))";

/// Removes the values of variables of runs that ended that long ago; returns of how many.
pub(super) async fn remove_values(query: &impl Query, age: Duration, limit: i64) -> Result<u64, DbError> {
    query.execute(REMOVE_VALUES, &[&age.as_secs_f64(), &limit]).await
}

// A begun apply is left alone: it is finished.
const OF_ARCHIVED_UNITS: &str = "
    SELECT r.id, r.workspace_id FROM business_units unit JOIN runs r ON r.business_unit_id = unit.id
    WHERE unit.archived_at IS NOT NULL AND r.status = ANY ($1) AND r.completed_at IS NULL
      AND r.apply_begun_at IS NULL
    ORDER BY r.id LIMIT $2";

/// Runs of archived units that can still be stopped without leaving something half-made.
pub(super) async fn of_archived_units(
    query: &impl Query,
    limit: i64,
) -> Result<Vec<(RunId, WorkspaceId)>, DbError> {
    // A plan-only run has ended when it is planned.
    let is_live = |status: &RunStatus| !status.is_terminal() && *status != RunStatus::Planned;
    let live: Vec<&str> = RunStatus::ALL.into_iter().filter(is_live).map(RunStatus::as_str).collect();
    let rows = query.query(OF_ARCHIVED_UNITS, &[&live, &limit]).await?;
    Ok(rows.iter().map(|row| (row.get(0), row.get(1))).collect())
}
