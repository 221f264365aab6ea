//! What a person's lock of a workspace does to its runs, in the transaction that locks or unlocks.

use super::{RunError, RunStatus, approvals, reports, service, store, waiting};
use crate::Deps;
use crate::db::Tx;
use crate::ids::{RunId, WorkspaceId};
use crate::tasks;
use crate::workspaces;

/// The workspace was locked: its run waits again if it has not begun. The caller has locked the workspace.
pub async fn put_back(tx: &Tx<'_>, id: RunId) -> Result<(), RunError> {
    let Some(run) = store::lock(tx, None, id).await? else { return Ok(()) };
    if run.run.status != RunStatus::Pending {
        return Ok(());
    }
    // Its executor has not traded its ticket, or the run would be running.
    service::finish_cancelled(tx, tasks::service::cancel_subject(tx, id.0).await?).await?;
    waiting::wait_again(tx, id).await?;
    workspaces::service::set_active_run(tx, run.run.workspace_id, None).await?;
    Ok(())
}

/// The workspace was unlocked: without a run that goes on the next waiting one begins, and a provably empty plan is approved
/// that was to be. The caller has locked the workspace.
pub async fn resume(
    tx: &Tx<'_>,
    deps: &Deps,
    workspace_id: WorkspaceId,
    active: Option<RunId>,
) -> Result<(), RunError> {
    let Some(active) = active else { return service::start_waiting(tx, deps, workspace_id).await };
    let Some(run) = store::lock(tx, None, active).await? else { return Ok(()) };
    let is_due =
        run.run.status == RunStatus::AwaitingApproval && !run.plan_expired && !run.run.cancel_requested;
    if !is_due {
        return Ok(());
    }
    match approvals::check_not_stale(tx, &run).await {
        Ok(()) => reports::auto_approve(tx, deps, &run).await,
        // Whoever had locked has changed the state: a person decides, or the plan expires.
        Err(RunError::StalePlan { .. }) => Ok(()),
        Err(error) => Err(error),
    }
}
