//! How a run ends, and how the next one begins: always in one transaction, with the workspace's row locked first.

use serde_json::json;

use super::store::{self, StoredRun};
use super::{EndReason, RunError, RunStatus, waiting};
use crate::access::{Actor, Scope, TraceParent};
use crate::audit::{self, Action, Entry};
use crate::db::Tx;
use crate::ids::{BusinessUnitId, IdSource, RunId, WorkspaceId};
use crate::protocol::StepStatus;
use crate::resources;
use crate::tasks::{self, NewTask, TaskKind};
use crate::workspaces;

/// How a run is to end.
pub(super) struct Ending<'a> {
    /// A terminal status; `planned` for a plan-only run goes another way.
    pub(super) to: RunStatus,
    /// One word for programs.
    pub(super) reason: Option<EndReason>,
    /// One sentence for people.
    pub(super) error: Option<&'a str>,
    /// Who made it end.
    pub(super) actor: Actor,
    /// What goes into the audit log.
    pub(super) action: Action,
}

/// Ends a run, frees its workspace and starts the next waiting run. The caller has locked workspace and run, in this
/// order, and says what it read.
pub(super) async fn end(
    tx: &Tx<'_>,
    ids: IdSource,
    run: &StoredRun,
    ending: &Ending<'_>,
) -> Result<(), RunError> {
    let id = run.run.id;
    if !store::end(tx, id, ending.to, ending.reason, ending.error).await? {
        return Err(RunError::IllegalMove { from: run.run.status, to: ending.to });
    }
    let left_open = match ending.to {
        RunStatus::Applied => StepStatus::Succeeded,
        RunStatus::Cancelled => StepStatus::Skipped,
        _ => StepStatus::Failed,
    };
    store::close_steps(tx, id, left_open).await?;
    release_workspace(tx, ids, run.run.workspace_id, id).await?;
    // What it applied can be searched at once; whatever else writes states is found by a sweep.
    if ending.to == RunStatus::Applied {
        let (unit, workspace_id) = (run.run.business_unit_id, run.run.workspace_id);
        resources::tasks::enqueue(tx, ids, unit, workspace_id).await?;
    }
    let details = json!({
        "from": run.run.status, "to": ending.to, "reason": ending.reason, "error": ending.error,
    });
    audit::service::record(tx, &entry(&run.run, ending.actor.clone(), ending.action, details)).await?;
    Ok(())
}

/// An audit entry about a run.
pub(super) fn entry(run: &super::Run, actor: Actor, action: Action, details: serde_json::Value) -> Entry {
    Entry {
        business_unit_id: Some(run.business_unit_id),
        actor,
        action,
        resource_type: "run",
        resource_id: run.id.to_string(),
        workspace_id: Some(run.workspace_id),
        run_id: Some(run.id),
        details,
    }
}

/// Frees the workspace if this run holds it, and gives it to the next waiting run.
pub(super) async fn release_workspace(
    tx: &Tx<'_>,
    ids: IdSource,
    workspace_id: WorkspaceId,
    run_id: RunId,
) -> Result<(), RunError> {
    let Some(workspace) = workspaces::service::lock(tx, Scope::All, workspace_id).await? else {
        return Ok(());
    };
    if workspace.active_run_id.is_some_and(|active| active != run_id) {
        return Ok(());
    }
    workspaces::service::set_active_run(tx, workspace_id, None).await?;
    if workspace.blocked.is_none() && workspace.locked.is_none() {
        start_next_waiting(tx, ids, workspace_id).await?;
    }
    Ok(())
}

/// Gives a free workspace to the run that has waited longest. The caller has locked the workspace and knows that it
/// is free. Returns the run that was started.
pub(super) async fn start_next_waiting(
    tx: &Tx<'_>,
    ids: IdSource,
    workspace_id: WorkspaceId,
) -> Result<Option<RunId>, RunError> {
    let Some(next) = waiting::lock_next_waiting(tx, workspace_id).await? else { return Ok(None) };
    waiting::stop_waiting(tx, next.id).await?;
    workspaces::service::set_active_run(tx, workspace_id, Some(next.id)).await?;
    enqueue(tx, ids, TaskKind::RunPlan, next.unit, next.id, next.traceparent).await?;
    Ok(Some(next.id))
}

/// Queues a phase of a run.
pub(super) async fn enqueue(
    tx: &Tx<'_>,
    ids: IdSource,
    kind: TaskKind,
    unit: BusinessUnitId,
    run: RunId,
    traceparent: Option<TraceParent>,
) -> Result<(), RunError> {
    let mut task = NewTask::new(kind, unit, run, format!("{}:{run}", kind.as_str()));
    task.traceparent = traceparent;
    tasks::service::enqueue(tx, ids, &task).await?;
    Ok(())
}
