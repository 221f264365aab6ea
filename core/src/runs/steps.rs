//! What executors report of single steps. Refused once the lease is lost; steps only go forward.

use super::reports::require_lease;
use super::{RunError, RunStatus, rules, store};
use crate::Deps;
use crate::db::Query;
use crate::executors::{self, ExecutorCaller};
use crate::protocol::{StepReport, StepStatus};
use crate::workspaces::{Tool, check_version};

/// A step's new status. Steps only go forward; repeating a report is fine.
pub async fn report(
    deps: &Deps,
    caller: &ExecutorCaller,
    position: i16,
    report: &StepReport,
) -> Result<(), RunError> {
    require_lease(caller)?;
    if report.summary.as_ref().is_some_and(|summary| !rules::fits_a_row(summary)) {
        return Err(RunError::Step { position, reason: "the summary is longer than 4 KiB" });
    }
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    // The run before its steps, as whoever ends a run locks them: the other way round would be a deadlock.
    if report.commit.is_some() || report.tool.is_some() || report.tool_version.is_some() {
        pin(&tx, caller, position, report).await?;
    }
    if rules::is_plan_step(position) && report.status == StepStatus::Running {
        store::advance(&tx, caller.run_id, RunStatus::Planning).await?;
    }
    set_step(&tx, caller, position, report).await?;
    tx.commit().await?;
    Ok(())
}

const SET_STEP: &str = include_str!("sql/set_step.sql");
const STEP_EXISTS: &str = "SELECT 1 FROM run_steps WHERE run_id = $1 AND position = $2 AND phase = $3";

async fn set_step(
    query: &impl Query,
    caller: &ExecutorCaller,
    position: i16,
    report: &StepReport,
) -> Result<(), RunError> {
    let phase = super::tasks::step_phase(caller.phase).as_str();
    let written = query
        .execute(
            SET_STEP,
            &[
                &caller.run_id,
                &position,
                &phase,
                &report.status.as_str(),
                &report.summary,
                &caller.lease.task_id,
                &caller.lease.token,
            ],
        )
        .await?;
    if written > 0 {
        return Ok(());
    }
    if query.query_opt(STEP_EXISTS, &[&caller.run_id, &position, &phase]).await?.is_none() {
        return Err(RunError::NotFound("step of this phase"));
    }
    if !executors::service::still_holds(query, caller).await? {
        return Err(RunError::LeaseLost);
    }
    Err(RunError::Step { position, reason: "a step only goes forward" })
}

const PIN: &str = "
    UPDATE runs
    SET commit_sha = coalesce(commit_sha, $2), tool_version = coalesce(tool_version, $3), tool = coalesce(tool, $4)
    WHERE id = $1 AND coalesce(commit_sha = $2, true) AND coalesce(tool_version = $3, true)
      AND coalesce(tool = $4, true)";

/// Pins the commit and the tool at the first report; later attempts must report the same.
async fn pin(
    query: &impl Query,
    caller: &ExecutorCaller,
    position: i16,
    report: &StepReport,
) -> Result<(), RunError> {
    let well_formed = report.commit.as_ref().is_none_or(|commit| {
        matches!(commit.len(), 40 | 64) && commit.bytes().all(|b| b.is_ascii_hexdigit())
    });
    if !well_formed {
        return Err(RunError::Step { position, reason: "a commit is 40 or 64 hex digits" });
    }
    if report.tool.as_deref().is_some_and(|tool| Tool::parse(tool).is_none()) {
        return Err(RunError::Step { position, reason: "the tool is terraform or tofu" });
    }
    if report.tool_version.as_deref().is_some_and(|version| check_version(version).is_err()) {
        return Err(RunError::Step { position, reason: "the tool's version is one exact version" });
    }
    let pinned = [&report.commit, &report.tool_version, &report.tool];
    if query.execute(PIN, &[&caller.run_id, pinned[0], pinned[1], pinned[2]]).await? == 0 {
        return Err(RunError::Step { position, reason: "the run is pinned to another commit or tool" });
    }
    Ok(())
}
