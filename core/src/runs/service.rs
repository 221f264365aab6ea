//! Use cases of people: trigger, look, cancel, promote.

use std::time::Duration;

use serde_json::json;

use super::ending::{self, Ending};
use super::store::{self, InsertRun, StoredRun};
use super::{EndReason, NewRun, Run, RunError, RunFilter, RunStatus, Step, rules, variables, waiting};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission, Scope, TraceParent};
use crate::audit::{self, Action};
use crate::business_units;
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::protocol::RunCommand;
use crate::tasks::{self, FinishedOutcome, Lease, TaskError, TaskKind};
use crate::workspaces;

/// Asks for a run: run, steps, task and audit entry in the caller's transaction. A run that can change its workspace
/// waits while another holds it or a person has locked it. Wake the worker after the commit.
pub async fn trigger(tx: &Tx<'_>, deps: &Deps, ctx: &Ctx, new: &NewRun) -> Result<Run, RunError> {
    ctx.require(permission_for(new.command))?;
    validate(new)?;
    create(tx, deps, ctx, new, "user", None).await
}

/// Turns a finished plan-only run into a run that can be applied: the same branch and variables, planned anew on
/// today's state.
pub async fn promote(tx: &Tx<'_>, deps: &Deps, ctx: &Ctx, id: RunId) -> Result<Run, RunError> {
    ctx.require(Permission::ApplyRuns)?;
    let from = store::lock(tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    if from.run.command != RunCommand::Plan || from.run.status != RunStatus::Planned {
        return Err(RunError::IllegalMove { from: from.run.status, to: RunStatus::AwaitingApproval });
    }
    // It would be another run without the values that it was given.
    if variables::removed_at(tx, id).await?.is_some() {
        return Err(RunError::PlanExpired);
    }
    let new = NewRun {
        workspace_id: from.run.workspace_id,
        command: RunCommand::Apply,
        branch: Some(from.run.branch.clone()),
        message: from.run.message.clone(),
        variables: variables::open_own(tx, deps, id).await?,
        auto_approve_if_no_changes: false,
        auto_approve_skip_apply: false,
        allow_destroy: false,
    };
    create(tx, deps, ctx, &new, "promotion", Some(id)).await
}

async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: &NewRun,
    source: &str,
    promoted_from: Option<RunId>,
) -> Result<Run, RunError> {
    // The workspace's row lock serialises this with the end of the run that holds it: no wake-up is lost.
    let workspace = workspaces::service::lock(tx, ctx.scope, new.workspace_id)
        .await?
        .ok_or(RunError::NotFound("workspace"))?;
    business_units::service::require_in_use::<RunError>(tx, ctx, workspace.business_unit_id).await?;
    let mutates = new.command.mutates();
    if let Some(blocked) = workspace.blocked.as_ref().filter(|_| mutates) {
        return Err(RunError::WorkspaceBlocked { reason: blocked.reason.clone() });
    }
    let waiting = mutates && !workspace.takes_next_run();
    if waiting {
        let already = waiting::count_waiting(tx, workspace.id).await?;
        if already >= deps.limits.waiting_runs_max {
            return Err(RunError::TooManyWaiting { waiting: already });
        }
    }
    let unit = workspace.business_unit_id;
    crate::variables::effective::measure(tx, unit, workspace.id, &new.variables).await?;
    let id: RunId = deps.ids.mint();
    let sealed = variables::seal_own(deps, id, &new.variables)?;
    let insert = InsertRun {
        id,
        unit,
        workspace_id: workspace.id,
        command: new.command,
        waiting,
        branch: new.branch.as_deref().unwrap_or(&workspace.repo_ref),
        message: new.message.as_deref(),
        variables_sealed: sealed.as_deref(),
        auto_approve_if_no_changes: mutates && new.auto_approve_if_no_changes,
        auto_approve_skip_apply: mutates && new.auto_approve_if_no_changes && new.auto_approve_skip_apply,
        allow_destroy: new.allow_destroy,
        triggered_by: ctx.actor.user_id(),
        trigger_source: source,
        promoted_from,
        traceparent: ctx.traceparent.as_ref().map(TraceParent::as_str),
    };
    store::insert(tx, &insert).await?;
    if mutates && !waiting {
        workspaces::service::set_active_run(tx, workspace.id, Some(id)).await?;
    }
    if !waiting {
        let trace = ctx.traceparent.clone();
        ending::enqueue(tx, deps.ids, TaskKind::RunPlan, unit, id, trace).await?;
    }
    let run = store::find(tx, None, id).await?.ok_or(RunError::NotFound("run"))?.run;
    let details = json!({"command": run.command, "branch": run.branch, "waiting": waiting, "source": source});
    audit::service::record(tx, &ending::entry(&run, ctx.actor.clone(), Action::RunTrigger, details)).await?;
    Ok(run)
}

fn validate(new: &NewRun) -> Result<(), RunError> {
    let invalid =
        |field: &str, reason: &str| Err(RunError::Invalid { field: field.into(), reason: reason.into() });
    if let Some(branch) = &new.branch {
        workspaces::check_branch(branch)
            .map_err(|reason| RunError::Invalid { field: "branch".into(), reason: reason.to_string() })?;
    }
    check_words("message", new.message.as_deref())?;
    if new.auto_approve_skip_apply && !new.auto_approve_if_no_changes {
        return invalid("auto_approve_skip_apply", "needs auto_approve_if_no_changes");
    }
    variables::check_own(&new.variables)
}

/// Refuses a person's words that are too long to be kept.
pub(super) fn check_words(field: &str, words: Option<&str>) -> Result<(), RunError> {
    rules::fits_history(words)
        .map_err(|reason| RunError::Invalid { field: field.into(), reason: reason.into() })
}

/// What triggering a run of the command takes, and cancelling one.
fn permission_for(command: RunCommand) -> Permission {
    if command.mutates() { Permission::ApplyRuns } else { Permission::PlanRuns }
}

/// One run.
pub async fn get(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<Run, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let found = store::find(&conn, ctx.scope.unit(), id).await?;
    Ok(found.ok_or(RunError::NotFound("run"))?.run)
}

/// The workspace of a run of the unit.
pub async fn find_workspace_of(
    query: &impl Query,
    unit: BusinessUnitId,
    id: RunId,
) -> Result<Option<WorkspaceId>, DbError> {
    Ok(store::find(query, Some(unit), id).await?.map(|run| run.run.workspace_id))
}

/// The branch of a run of the unit.
pub async fn find_branch(
    query: &impl Query,
    unit: BusinessUnitId,
    id: RunId,
) -> Result<Option<String>, DbError> {
    Ok(store::find(query, Some(unit), id).await?.map(|run| run.run.branch))
}

/// The same for a task that may be about no run.
pub async fn find_workspace_of_task(
    query: &impl Query,
    unit: BusinessUnitId,
    run: Option<RunId>,
) -> Result<Option<WorkspaceId>, DbError> {
    match run {
        Some(run) => find_workspace_of(query, unit, run).await,
        None => Ok(None),
    }
}

/// Runs, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    filter: &RunFilter,
    page: PageRequest,
) -> Result<Page<Run>, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.scope.unit(), ctx.workspaces_param(), filter, page).await?;
    Ok(Page::from_rows(rows, page.limit, |run| run.id.0))
}

/// The steps of a run, in order.
pub async fn steps(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<Vec<Step>, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    Ok(store::steps(&conn, id).await?)
}

/// Stops a run. Before its apply has begun it is over at once; a begun apply is asked to stop and ends as failed,
/// with the reason `cancelled`, when Terraform has put down what it holds.
pub async fn cancel(deps: &Deps, ctx: &Ctx, id: RunId, reason: Option<&str>) -> Result<Run, RunError> {
    ctx.require(Permission::PlanRuns)?;
    check_words("reason", reason)?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let peek = store::find(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    ctx.require(permission_for(peek.run.command))?;
    workspaces::service::lock(&tx, ctx.scope, peek.run.workspace_id).await?;
    let run = store::lock(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    if run.run.completed_at.is_some() {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Cancelled });
    }
    cancel_in(&tx, deps, &run, ctx.actor.clone(), EndReason::Cancelled, reason).await?;
    tx.commit().await?;
    // Given back before the next one is taken: a function has one connection.
    drop(conn);
    deps.waker.wake(Duration::ZERO).await;
    get(deps, ctx, id).await
}

/// Stops a run that has not ended. The caller has locked workspace and run, in this order, and says what it read.
pub(super) async fn cancel_in(
    tx: &Tx<'_>,
    deps: &Deps,
    run: &StoredRun,
    actor: Actor,
    why: EndReason,
    sentence: Option<&str>,
) -> Result<(), RunError> {
    let id = run.run.id;
    store::request_cancel(tx, id, actor.user_id()).await?;
    let held = tasks::service::cancel_subject(tx, id.0).await?;
    if run.apply_begun_at.is_some() {
        let details = json!({"status": run.run.status, "asked_to_stop": true, "reason": sentence});
        let entry = ending::entry(&run.run, actor, Action::RunCancel, details);
        audit::service::record(tx, &entry).await?;
        return Ok(());
    }
    finish_cancelled(tx, held).await?;
    let to = rules::cancelled_from(run.run.status);
    let ending = Ending { to, reason: Some(why), error: sentence, actor, action: Action::RunCancel };
    ending::end(tx, deps.ids, run, &ending).await
}

/// Finishes tasks that were cancelled while somebody held them. An executor learns of it at its next call, which is refused;
/// the sweep stops it in any case.
pub(super) async fn finish_cancelled(tx: &Tx<'_>, held: Vec<Lease>) -> Result<(), RunError> {
    for lease in held {
        match tasks::service::finish(tx, lease, FinishedOutcome::Cancelled, None, None).await {
            Ok(()) | Err(TaskError::LeaseLost) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// A blocked workspace was released: the next waiting run may begin. Call it in the transaction that unblocked.
pub async fn start_waiting(tx: &Tx<'_>, deps: &Deps, workspace_id: WorkspaceId) -> Result<(), RunError> {
    let workspace = workspaces::service::lock(tx, Scope::All, workspace_id).await?;
    if workspace.is_some_and(|workspace| workspace.takes_next_run()) {
        ending::start_next_waiting(tx, deps.ids, workspace_id).await?;
    }
    Ok(())
}
