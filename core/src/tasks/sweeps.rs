//! What the reconciler does for the queue. Each sweep is a claim of its own and safe at any parallelism.

use std::time::Duration;

use serde_json::json;

use super::rules::{Verdict, backoff, on_silence};
use super::sweeps_store::{self as store, Judged, Suspect};
use super::{FailedAttempt, FinishedOutcome, LeasePhase, TaskError, service};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Tx};
use crate::dispatch;
use crate::executors;
use crate::ids::TaskId;
use crate::{config, runs};

const BATCH: i64 = 200;
/// Batches of finished tasks that one sweep deletes at most.
const FORGET_BATCHES_MAX: usize = 20;
const FORGET_BATCH: i64 = 1_000;

/// Looks at every attempt that fell silent, overran its wall clock, or lost its executor, and does what
/// [`on_silence`] says. After an outage no lease expires for a whole lease period.
pub async fn judge_silent(deps: &Deps) -> Result<usize, TaskError> {
    let limits = &deps.limits;
    let pause = limits.lease.max(limits.sweep_period.mul_f64(1.5));
    let in_grace = store::tick(&deps.db.conn().await?, pause, limits.lease).await?;
    let mut after = TaskId(uuid::Uuid::nil());
    let mut acted = 0;
    loop {
        let suspects = store::suspects(&deps.db.conn().await?, after, in_grace, BATCH).await?;
        let Some(last) = suspects.last() else { break };
        after = last.lease.task_id;
        for suspect in &suspects {
            match judge(deps, suspect, in_grace).await {
                Ok(verdict) => acted += usize::from(verdict != Verdict::Leave),
                Err(TaskError::Db(error)) if error.is_transient() => return Err(error.into()),
                // One broken task must not keep the others waiting.
                Err(error) => {
                    tracing::error!(task.id = %suspect.lease.task_id, %error, "a silent task could not be judged");
                }
            }
        }
    }
    if acted > 0 {
        deps.waker.wake(Duration::ZERO).await;
    }
    Ok(acted)
}

async fn judge(deps: &Deps, suspect: &Suspect, in_grace: bool) -> Result<Verdict, TaskError> {
    let Some(kind) = suspect.kind else { return Ok(Verdict::Leave) };
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    // The task's own rows are locked before the task, as everywhere else.
    dispatch::lock_subject(&tx, kind, suspect.subject_id).await?;
    let Some(judged) = store::lock_silent(&tx, suspect.lease, in_grace).await? else {
        return Ok(Verdict::Leave);
    };
    let verdict = on_silence(&judged.silent);
    match verdict {
        Verdict::Leave => return Ok(verdict),
        Verdict::GiveBack | Verdict::GiveUp => {
            if !end_unstarted(&tx, deps, &judged, verdict == Verdict::GiveUp).await? {
                return Ok(Verdict::Leave);
            }
        }
        Verdict::StopFirst => {
            request_stop(&tx, &judged, "it is to stop before its task is tried again").await?
        }
        Verdict::Fail => fail(&tx, deps, &judged).await?,
        Verdict::MarkUnresponsive => store::mark_unresponsive(&tx, judged.task.lease).await?,
        Verdict::Lost => lose(&tx, deps, &judged).await?,
    }
    tx.commit().await?;
    tracing::warn!(
        task.id = %judged.task.lease.task_id, task.kind = kind.as_str(), task.attempt = judged.task.attempts,
        ?verdict, "an attempt fell silent"
    );
    Ok(verdict)
}

/// The attempt provably never began: it is given back, or was one too many. `false` if its ticket is being traded right
/// now.
async fn end_unstarted(
    tx: &Tx<'_>,
    deps: &Deps,
    judged: &Judged,
    is_hopeless: bool,
) -> Result<bool, TaskError> {
    if !void(tx, judged).await? {
        return Ok(false);
    }
    let (why, launches) = ("its executor never reported for work", judged.silent.unstarted);
    if judged.cancelled {
        // Queued again it would only be refused at its trade, for ever.
        end_cancelled(tx, deps, judged, why).await?;
    } else if is_hopeless {
        let why = format!(
            "none of {launches} launched executors reported for work: look at their image, and at their way to the \
             callback address"
        );
        dispatch::fail_attempt(tx, deps, &judged.task, &FailedAttempt::Permanent(why)).await?;
    } else {
        let launches = i32::try_from(launches).unwrap_or(i32::MAX);
        let wait = backoff(launches, deps.limits.backoff_base, deps.limits.backoff_max, rand::random());
        service::give_back(tx, judged.task.lease, wait, why).await?;
    }
    Ok(true)
}

/// Makes sure that an attempt which has not begun cannot begin any more. `false` if it is beginning right now.
async fn void(tx: &Tx<'_>, judged: &Judged) -> Result<bool, TaskError> {
    let Some(executor) = judged.executor else { return Ok(true) };
    if !executors::liveness::void_ticket(tx, executor).await? {
        return Ok(false);
    }
    executors::service::request_stop(tx, executor, "it never traded its ticket").await?;
    Ok(true)
}

async fn request_stop(tx: &Tx<'_>, judged: &Judged, reason: &str) -> Result<(), TaskError> {
    if let Some(executor) = judged.executor {
        executors::service::request_stop(tx, executor, reason).await?;
    }
    Ok(())
}

async fn fail(tx: &Tx<'_>, deps: &Deps, judged: &Judged) -> Result<(), TaskError> {
    let why = silence(judged);
    if judged.cancelled {
        return end_cancelled(tx, deps, judged, why).await;
    }
    dispatch::fail_attempt(tx, deps, &judged.task, &FailedAttempt::Retry(why.into())).await
}

/// Somebody asked for the attempt's end, and nothing was changed under it.
async fn end_cancelled(tx: &Tx<'_>, deps: &Deps, judged: &Judged, why: &str) -> Result<(), TaskError> {
    service::finish(tx, judged.task.lease, FinishedOutcome::Cancelled, Some(why), None).await?;
    dispatch::dead_lettered(tx, deps.ids, &judged.task, why).await?;
    Ok(())
}

/// A begun apply that will not answer any more.
async fn lose(tx: &Tx<'_>, deps: &Deps, judged: &Judged) -> Result<(), TaskError> {
    let why = silence(judged);
    service::finish(tx, judged.task.lease, FinishedOutcome::Dead, Some(why), None).await?;
    request_stop(tx, judged, why).await?;
    dispatch::dead_lettered(tx, deps.ids, &judged.task, why).await?;
    let (unit, run_id) =
        (judged.task.business_unit_id, runs::tasks::run_of(judged.task.kind, judged.task.subject_id));
    let entry = Entry {
        business_unit_id: Some(unit),
        actor: Actor::System,
        action: Action::ExecutorLost,
        resource_type: "executor",
        resource_id: judged.executor.map(|id| id.to_string()).unwrap_or_default(),
        workspace_id: runs::service::find_workspace_of_task(tx, unit, run_id).await?,
        run_id,
        details: json!({ "task_id": judged.task.lease.task_id, "reason": why }),
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}

fn silence(judged: &Judged) -> &'static str {
    match (judged.silent.wall_clock_passed, judged.silent.phase) {
        (true, _) => "the attempt took longer than its wall-clock limit",
        (false, LeasePhase::Unresponsive) => "the executor stopped while it did not answer",
        (false, _) => "the attempt ended without a report",
    }
}

/// Puts wrong counters right. There is none unless somebody changed rows by hand, so a repair is worth a warning.
pub async fn repair_counters(deps: &Deps) -> Result<usize, DbError> {
    let mut conn = deps.db.conn().await?;
    let units = store::miscounted(&conn).await?;
    for (unit, class) in &units {
        let tx = conn.begin().await?;
        store::recount_unit(&tx, *unit, *class).await?;
        tx.commit().await?;
        tracing::warn!(business_unit.id = %unit, class = class.as_str(), "a queue counter was repaired");
    }
    let budget = store::budget_miscounted(&conn).await?;
    if budget {
        let tx = conn.begin().await?;
        store::recount_budget(&tx).await?;
        tx.commit().await?;
        tracing::warn!("the count of running executors was repaired");
    }
    let repaired = units.len() + usize::from(budget);
    if repaired > 0 {
        deps.waker.wake(Duration::ZERO).await;
    }
    Ok(repaired)
}

/// Removes the logins that came with tasks, some time after these have finished.
pub async fn forget_logins(deps: &Deps) -> Result<usize, DbError> {
    let conn = deps.db.conn().await?;
    let age = config::service::run_secret_age(&conn, &deps.limits).await?;
    let mut forgotten = 0;
    for _ in 0..FORGET_BATCHES_MAX {
        let batch = store::remove_logins(&conn, age, FORGET_BATCH).await?;
        forgotten += usize::try_from(batch).unwrap_or(usize::MAX);
        if batch == 0 {
            break;
        }
    }
    Ok(forgotten)
}

/// Deletes finished tasks that are old enough.
pub async fn forget_finished(deps: &Deps) -> Result<usize, DbError> {
    let conn = deps.db.conn().await?;
    let mut forgotten = 0;
    for _ in 0..FORGET_BATCHES_MAX {
        let batch = store::forget(&conn, deps.limits.finished_task_age, FORGET_BATCH).await?;
        forgotten += usize::try_from(batch).unwrap_or(usize::MAX);
        if batch == 0 {
            break;
        }
    }
    Ok(forgotten)
}
