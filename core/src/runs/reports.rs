//! Use cases of executors: the ends of phases.
//!
//! Each is refused once the lease is lost. What moves a run along from one phase to the next stands here, each in one
//! transaction with the task's end and the audit entry.

use std::time::Duration;

use serde_json::json;

use super::approvals::{approve_as, check_not_stale};
use super::ending::{self, Ending};
use super::store::{self, StoredRun};
use super::{EndReason, RunError, RunStatus, artifacts, rules};
use crate::Deps;
use crate::access::{Actor, Scope};
use crate::audit::{self, Action};
use crate::db::{DbError, Query, Tx};
use crate::digest::Sha256Digest;
use crate::executors::ExecutorCaller;
use crate::ids::RunId;
use crate::protocol::{
    ApplyBegun, ApplyDone, ArtifactKind, AttemptFailed, FailureKind, PlanDone, RunPhase, StepStatus,
};
use crate::tasks::{self, FailedAttempt, FinishedOutcome, TaskKind};
use crate::workspaces::Locked;
use crate::{dispatch, executors, workspaces};

const ERROR_CHARS_MAX: usize = 2_000;

/// Refuses an attempt that does not hold its task any more.
pub(super) fn require_lease(caller: &ExecutorCaller) -> Result<(), RunError> {
    if caller.lease_held { Ok(()) } else { Err(RunError::LeaseLost) }
}

/// Locks workspace, run and the right to write, in this order.
async fn lock(tx: &Tx<'_>, caller: &ExecutorCaller) -> Result<StoredRun, RunError> {
    Ok(lock_both(tx, caller).await?.0)
}

/// The same, with who has locked the workspace.
async fn lock_both(tx: &Tx<'_>, caller: &ExecutorCaller) -> Result<(StoredRun, Option<Locked>), RunError> {
    require_lease(caller)?;
    let workspace = workspaces::service::lock(tx, Scope::All, caller.workspace_id).await?;
    let run = store::lock(tx, Some(caller.business_unit_id), caller.run_id).await?;
    Ok((run.ok_or(RunError::LeaseLost)?, workspace.and_then(|workspace| workspace.locked)))
}

const PLAN_DONE: &str = "
    UPDATE runs
    SET status = $2, plan_sha256 = $3, plan_json_sha256 = $4, lock_file_sha256 = $5, plan_summary = $6,
        has_changes = $7, planned_at = plumbline_now(),
        plan_expires_at = CASE WHEN $2 = 'awaiting_approval' THEN plumbline_now() + make_interval(secs => $8) END,
        completed_at = CASE WHEN $2 = 'planned' THEN plumbline_now() END
    WHERE id = $1 AND status = ANY($9)";

/// The plan is there: writes it and the next status, ends the task, and approves a provably empty plan if the run was
/// asked to.
pub async fn plan_done(deps: &Deps, caller: &ExecutorCaller, done: &PlanDone) -> Result<(), RunError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let (run, locked) = lock_both(&tx, caller).await?;
    if caller.phase != RunPhase::Plan {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Planned });
    }
    check_plan(&tx, caller, &run, done).await?;
    let to = if run.run.command.mutates() { RunStatus::AwaitingApproval } else { RunStatus::Planned };
    write_plan(&tx, deps, &run, done, to).await?;
    close_phase(&tx, caller).await?;
    tasks::service::finish(&tx, caller.lease, FinishedOutcome::Done, None, None).await?;
    let planned = store::lock(&tx, None, caller.run_id).await?.ok_or(RunError::NotFound("run"))?;
    let details = json!({
        "status": to, "plan_sha256": done.plan_sha256, "summary": done.summary, "commit": planned.run.commit_sha,
    });
    audit::service::record(&tx, &ending::entry(&planned.run, Actor::System, Action::RunPlanned, details))
        .await?;
    if to == RunStatus::AwaitingApproval {
        store::set_approval_step(&tx, caller.run_id, StepStatus::Running).await?;
        // Under a lock it waits; the unlock asks again.
        if locked.is_none() {
            auto_approve(&tx, deps, &planned).await?;
        }
    }
    tx.commit().await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(())
}

async fn check_plan(
    tx: &Tx<'_>,
    caller: &ExecutorCaller,
    run: &StoredRun,
    done: &PlanDone,
) -> Result<(), RunError> {
    let mut wanted = vec![
        (ArtifactKind::PlanFile, Some(done.plan_sha256)),
        (ArtifactKind::PlanJson, Some(done.plan_json_sha256)),
        (ArtifactKind::PlanJsonRedacted, None),
        (ArtifactKind::PlanText, None),
    ];
    if let Some(digest) = done.lock_file_sha256 {
        wanted.push((ArtifactKind::LockFile, Some(digest)));
    }
    for (kind, digest) in wanted {
        artifacts::require_committed(tx, caller, kind, digest).await?;
    }
    let base = done.base_lineage.as_deref().zip(done.base_serial);
    if base != run.base() {
        return Err(RunError::Artifact { kind: "plan_file", reason: "it was made on another state" });
    }
    if run.run.commit_sha.is_none() || run.run.tool_version.is_none() {
        return Err(RunError::Artifact {
            kind: "plan_file",
            reason: "commit and tool version were not reported",
        });
    }
    Ok(())
}

async fn write_plan(
    tx: &Tx<'_>,
    deps: &Deps,
    run: &StoredRun,
    done: &PlanDone,
    to: RunStatus,
) -> Result<(), RunError> {
    let bytes = |digest: Sha256Digest| digest.0.to_vec();
    let summary = done.summary.as_ref().and_then(|summary| serde_json::to_value(summary).ok());
    let written = tx
        .execute(
            PLAN_DONE,
            &[
                &run.run.id,
                &to.as_str(),
                &bytes(done.plan_sha256),
                &bytes(done.plan_json_sha256),
                &done.lock_file_sha256.map(bytes),
                &summary,
                &rules::has_changes(done.summary.as_ref()),
                &deps.limits.plan_age.as_secs_f64(),
                &to.sources(),
            ],
        )
        .await?;
    if written == 0 {
        return Err(RunError::IllegalMove { from: run.run.status, to });
    }
    Ok(())
}

const CLOSE_PHASE: &str = "
    UPDATE run_steps
    SET status = CASE WHEN status = 'running' THEN 'succeeded' ELSE 'skipped' END, completed_at = plumbline_now()
    WHERE run_id = $1 AND phase = $2 AND status IN ('pending', 'running')";

async fn close_phase(tx: &Tx<'_>, caller: &ExecutorCaller) -> Result<(), RunError> {
    tx.execute(CLOSE_PHASE, &[&caller.run_id, &super::tasks::step_phase(caller.phase).as_str()]).await?;
    Ok(())
}

/// Approves a plan that is provably empty, if the run was asked to. The caller knows that nobody has locked the workspace.
pub(super) async fn auto_approve(tx: &Tx<'_>, deps: &Deps, run: &StoredRun) -> Result<(), RunError> {
    if !run.run.auto_approve_if_no_changes || run.run.has_changes != Some(false) {
        return Ok(());
    }
    approve_as(tx, run, Actor::System, None, Action::RunAutoApprove).await?;
    let unit = run.run.business_unit_id;
    if !run.run.auto_approve_skip_apply {
        let trace = run.traceparent.clone();
        return ending::enqueue(tx, deps.ids, TaskKind::RunApply, unit, run.run.id, trace).await;
    }
    // Through `applying` and out again in this one transaction: nobody ever sees it there.
    let approved = store::lock(tx, None, run.run.id).await?.ok_or(RunError::NotFound("run"))?;
    let ending = Ending {
        to: RunStatus::Applied,
        reason: Some(EndReason::NoChanges),
        error: None,
        actor: Actor::System,
        action: Action::RunApplySkipped,
    };
    ending::end(tx, deps.ids, &approved, &ending).await
}

const BEGIN_APPLY: &str = "
    UPDATE runs SET apply_begun_at = plumbline_now()
    WHERE id = $1 AND status = 'applying' AND apply_begun_at IS NULL AND cancel_requested_at IS NULL";

/// The executor asks to start changing things. A plan that was not approved so, or whose state has moved, ends the
/// run here, and so does a person's lock that came between approval and now.
pub async fn begin_apply(deps: &Deps, caller: &ExecutorCaller, begun: &ApplyBegun) -> Result<(), RunError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let (run, locked) = lock_both(&tx, caller).await?;
    if run.apply_begun_at.is_some() {
        return repeat_begin(&tx, caller, &run, begun).await;
    }
    let refused = match (may_begin(&tx, &run, begun).await, locked) {
        (Ok(()), None) => None,
        (Ok(()), Some(locked)) => Some((EndReason::WorkspaceLocked, RunError::WorkspaceLocked(locked))),
        (Err(error @ (RunError::StalePlan { .. } | RunError::DigestMismatch { .. })), _) => {
            Some((EndReason::StalePlan, error))
        }
        (Err(other), _) => return Err(other),
    };
    if let Some((reason, error)) = refused {
        let sentence = error.to_string();
        tasks::service::finish(&tx, caller.lease, FinishedOutcome::Done, Some(&sentence), None).await?;
        let ending = Ending {
            to: RunStatus::Failed,
            reason: Some(reason),
            error: Some(&sentence),
            actor: Actor::System,
            action: Action::RunEnd,
        };
        ending::end(&tx, deps.ids, &run, &ending).await?;
        tx.commit().await?;
        return Err(error);
    }
    // Whoever is to be stopped must not begin: the sweep would end it in the middle.
    if executors::service::is_to_stop(&tx, caller.executor_id).await?
        || tx.execute(BEGIN_APPLY, &[&caller.run_id]).await? == 0
    {
        return Err(RunError::LeaseLost);
    }
    // Last, so that a lease that was lost meanwhile undoes all of it.
    tasks::service::lock_held(&tx, caller.lease).await?;
    let details = json!({"plan_sha256": begun.plan_sha256, "executor_id": caller.executor_id});
    audit::service::record(&tx, &ending::entry(&run.run, Actor::System, Action::RunApplyBegin, details))
        .await?;
    tx.commit().await?;
    Ok(())
}

/// The answer was lost. A begun apply is never given to another attempt, so who holds the lease is who began it.
async fn repeat_begin(
    tx: &Tx<'_>,
    caller: &ExecutorCaller,
    run: &StoredRun,
    begun: &ApplyBegun,
) -> Result<(), RunError> {
    tasks::service::lock_held(tx, caller.lease).await?;
    if run.plan_sha256 != Some(begun.plan_sha256) {
        let actual = run.run.approval_digest.ok_or(RunError::NotFound("plan"))?;
        return Err(RunError::DigestMismatch { actual });
    }
    Ok(())
}

async fn may_begin(tx: &Tx<'_>, run: &StoredRun, begun: &ApplyBegun) -> Result<(), RunError> {
    let actual = run.run.approval_digest.ok_or(RunError::NotFound("plan"))?;
    if run.approved_digest != Some(actual) || run.plan_sha256 != Some(begun.plan_sha256) {
        return Err(RunError::DigestMismatch { actual });
    }
    check_not_stale(tx, run).await
}

/// The apply is over and all of its state writes are committed.
pub async fn apply_done(deps: &Deps, caller: &ExecutorCaller, done: &ApplyDone) -> Result<(), RunError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let run = lock(&tx, caller).await?;
    if run.apply_begun_at.is_none() {
        return Err(RunError::IllegalMove { from: run.run.status, to: RunStatus::Applied });
    }
    close_phase(&tx, caller).await?;
    // An apply that is over is not refused for what it tells about itself.
    let summary = done.summary.as_ref().filter(|summary| rules::fits_a_row(summary));
    tasks::service::finish(&tx, caller.lease, FinishedOutcome::Done, None, summary).await?;
    let ending = Ending {
        to: RunStatus::Applied,
        reason: None,
        error: None,
        actor: Actor::System,
        action: Action::RunEnd,
    };
    ending::end(&tx, deps.ids, &run, &ending).await?;
    tx.commit().await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(())
}

/// The attempt did not work. What can be tried again is; everything else ends the run.
pub async fn attempt_failed(
    deps: &Deps,
    caller: &ExecutorCaller,
    failed: &AttemptFailed,
) -> Result<(), RunError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let run = lock(&tx, caller).await?;
    let error: String = failed.error.chars().take(ERROR_CHARS_MAX).collect();
    let begun = run.apply_begun_at.is_some();
    // An executor that was told to stop says `cancelled`, whoever told it. Without a person's word it was the sweep or
    // the platform, and the run has lost nothing but an attempt.
    let stopped_by_platform = failed.kind == FailureKind::Cancelled && !run.run.cancel_requested;
    if (failed.kind == FailureKind::Transient || stopped_by_platform) && !begun {
        let held = tasks::service::lock_held(&tx, caller.lease).await?;
        dispatch::fail_attempt(&tx, deps, &held, &FailedAttempt::Retry(error)).await?;
    } else {
        tasks::service::finish(&tx, caller.lease, FinishedOutcome::Done, Some(&error), None).await?;
        if begun {
            block_unless_whole(&tx, caller, &run, failed).await?;
        }
        end_failed(&tx, deps, &run, failed, &error).await?;
    }
    executors::service::request_stop(&tx, caller.executor_id, "its attempt has ended").await?;
    tx.commit().await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(())
}

/// An apply that ended in an orderly way may simply be planned again. Everything else left something that the state
/// does not tell, and the next run would make it twice.
async fn block_unless_whole(
    tx: &Tx<'_>,
    caller: &ExecutorCaller,
    run: &StoredRun,
    failed: &AttemptFailed,
) -> Result<(), RunError> {
    let reason = if artifacts::has(tx, caller.run_id, ArtifactKind::ErroredState).await? {
        "Terraform could not write its state: compare the artifact errored_state with the newest version"
    } else if failed.is_state_whole {
        return Ok(());
    } else {
        "Terraform was ended before it was done, or its last state did not arrive: compare the log with the state"
    };
    super::tasks::block(tx, run, reason).await
}

async fn end_failed(
    tx: &Tx<'_>,
    deps: &Deps,
    run: &StoredRun,
    failed: &AttemptFailed,
    error: &str,
) -> Result<(), RunError> {
    let reason = match failed.kind {
        FailureKind::Cancelled if run.run.cancel_requested => EndReason::Cancelled,
        FailureKind::Permanent | FailureKind::Transient | FailureKind::Cancelled => EndReason::Error,
        FailureKind::TimedOut => EndReason::TimedOut,
    };
    let cancelled = reason == EndReason::Cancelled;
    let ending = Ending {
        to: if cancelled { rules::cancelled_from(run.run.status) } else { RunStatus::Failed },
        reason: Some(reason),
        error: Some(error),
        actor: Actor::System,
        action: Action::RunEnd,
    };
    ending::end(tx, deps.ids, run, &ending).await
}

const BEGUN: &str = "SELECT apply_begun_at IS NOT NULL FROM runs WHERE id = $1";

/// Whether a run's apply has begun to change things.
pub async fn has_begun_apply(query: &impl Query, id: RunId) -> Result<bool, DbError> {
    Ok(query.query_opt(BEGUN, &[&id]).await?.is_some_and(|row| row.get(0)))
}
