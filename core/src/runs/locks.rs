//! What a person's lock of a workspace does to its runs, in the transaction that locks or unlocks.

use super::ending;
use super::{RunError, RunStatus, approvals, reports, store, waiting};
use crate::Deps;
use crate::access::Scope;
use crate::db::Tx;
use crate::ids::{RunId, WorkspaceId};
use crate::tasks::{self, FinishedOutcome, TaskError};
use crate::workspaces;

/// The workspace was locked: its run waits again if it has not begun. The caller has locked the workspace.
pub async fn put_back(tx: &Tx<'_>, id: RunId) -> Result<(), RunError> {
    let Some(run) = store::lock(tx, None, id).await? else { return Ok(()) };
    if run.run.status != RunStatus::Pending {
        return Ok(());
    }
    for lease in tasks::service::cancel_subject(tx, id.0).await? {
        // Its executor has not traded its ticket, or the run would be running; the sweep stops it.
        match tasks::service::finish(tx, lease, FinishedOutcome::Cancelled, None, None).await {
            Ok(()) | Err(TaskError::LeaseLost) => {}
            Err(error) => return Err(error.into()),
        }
    }
    waiting::wait_again(tx, id).await?;
    workspaces::service::set_active_run(tx, run.run.workspace_id, None).await?;
    Ok(())
}

/// The workspace was unlocked: the next waiting run begins, and a provably empty plan is approved that was to be.
pub async fn resume(tx: &Tx<'_>, deps: &Deps, workspace_id: WorkspaceId) -> Result<(), RunError> {
    let Some(workspace) = workspaces::service::lock(tx, Scope::All, workspace_id).await? else {
        return Ok(());
    };
    if workspace.takes_next_run() {
        ending::start_next_waiting(tx, deps.ids, workspace_id).await?;
    }
    let Some(active) = workspace.active_run_id else { return Ok(()) };
    let Some(run) = store::lock(tx, None, active).await? else { return Ok(()) };
    let is_due =
        run.run.status == RunStatus::AwaitingApproval && !run.plan_expired && !run.run.cancel_requested;
    // Whoever had locked may have changed the state: then a person decides, or the plan expires.
    if is_due && approvals::check_not_stale(tx, &run).await.is_ok() {
        reports::auto_approve(tx, deps, &run).await?;
    }
    Ok(())
}
