//! Use cases of approval: a person, or Plumbline itself for a plan that is provably empty.

use std::time::Duration;

use serde_json::json;

use super::ending::{self, Ending};
use super::service::check_words;
use super::store::{self, StoredRun};
use super::{EndReason, Run, RunError, RunStatus};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action};
use crate::db::{Query, Tx};
use crate::digest::Sha256Digest;
use crate::ids::RunId;
use crate::protocol::StepStatus;
use crate::tasks::TaskKind;
use crate::{business_units, tfstates, workspaces};

/// Approves exactly the plan that is there. `seen` is the digest that the caller was shown, if it says.
pub async fn approve(
    deps: &Deps,
    ctx: &Ctx,
    id: RunId,
    comment: Option<&str>,
    seen: Option<Sha256Digest>,
) -> Result<Run, RunError> {
    ctx.require(Permission::ApplyRuns)?;
    check_words("comment", comment)?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let peek = store::find(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    // A lock and an approval at once: whoever is second sees the first.
    let workspace = workspaces::service::lock(&tx, ctx.scope, peek.run.workspace_id).await?;
    // Two approvals at once: the second waits above and then finds the run applying.
    let run = store::lock(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    business_units::service::require_in_use::<RunError>(&tx, ctx, run.run.business_unit_id).await?;
    if !run.run.status.may_become(RunStatus::Applying) {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Applying });
    }
    if let Some(locked) = workspace.and_then(|workspace| workspace.locked) {
        return Err(RunError::WorkspaceLocked(locked));
    }
    if run.plan_expired {
        return Err(RunError::PlanExpired);
    }
    let actual = run.run.approval_digest.ok_or(RunError::NotFound("plan"))?;
    if seen.is_some_and(|seen| seen != actual) {
        return Err(RunError::DigestMismatch { actual });
    }
    check_not_stale(&tx, &run).await?;
    ending::enqueue(&tx, deps.ids, TaskKind::RunApply, run.run.business_unit_id, id, ctx.traceparent.clone())
        .await?;
    // Last, for it ends with the audit entry, which locks the chain.
    approve_as(&tx, &run, ctx.actor.clone(), comment, Action::RunApprove).await?;
    tx.commit().await?;
    // Given back before the next one is taken: a function has one connection.
    drop(conn);
    deps.waker.wake(Duration::ZERO).await;
    super::service::get(deps, ctx, id).await
}

/// Refuses the plan; the run is over.
pub async fn reject(deps: &Deps, ctx: &Ctx, id: RunId, comment: Option<&str>) -> Result<Run, RunError> {
    ctx.require(Permission::ApplyRuns)?;
    check_words("comment", comment)?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let peek = store::find(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    workspaces::service::lock(&tx, ctx.scope, peek.run.workspace_id).await?;
    let run = store::lock(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    if run.run.status != RunStatus::AwaitingApproval {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Cancelled });
    }
    let ending = Ending {
        to: RunStatus::Cancelled,
        reason: Some(EndReason::Rejected),
        error: comment,
        actor: ctx.actor.clone(),
        action: Action::RunReject,
    };
    ending::end(&tx, deps.ids, &run, &ending).await?;
    tx.commit().await?;
    // Given back before the next one is taken: a function has one connection.
    drop(conn);
    deps.waker.wake(Duration::ZERO).await;
    super::service::get(deps, ctx, id).await
}

/// Stores the approval and its audit entry; the run is `applying` afterwards.
pub(super) async fn approve_as(
    tx: &Tx<'_>,
    run: &StoredRun,
    actor: Actor,
    comment: Option<&str>,
    action: Action,
) -> Result<(), RunError> {
    let digest = run.run.approval_digest.ok_or(RunError::NotFound("plan"))?;
    if !store::approve(tx, run.run.id, actor.user_id(), comment, digest).await? {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Applying });
    }
    store::set_approval_step(tx, run.run.id, StepStatus::Succeeded).await?;
    let details = json!({"digest": digest, "comment": comment, "summary": run.run.plan_summary});
    audit::service::record(tx, &ending::entry(&run.run, actor, action, details)).await?;
    Ok(())
}

/// Refuses if the workspace's state is not the one that was planned on.
pub(super) async fn check_not_stale(query: &impl Query, run: &StoredRun) -> Result<(), RunError> {
    let head = tfstates::service::find_head(query, run.run.workspace_id).await?;
    let now = head.as_ref().map(|head| (head.lineage.as_str(), head.serial));
    if now == run.base() {
        return Ok(());
    }
    let describe = |state: Option<(&str, i64)>| match state {
        Some((lineage, serial)) => format!("serial {serial} of lineage {lineage}"),
        None => "no state".to_owned(),
    };
    Err(RunError::StalePlan { planned: describe(run.base()), now: describe(now) })
}
