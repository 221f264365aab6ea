//! Use cases of the queue. The functions that take a transaction are what other features call.

use std::time::Duration;

use serde_json::Value;

use super::rules::{after_failure, attempts_max, backoff};
use super::store::{self, Claim, ClaimTerms, Leaving};
use super::{
    Backoff, ClaimedTask, Enqueued, FailedAttempt, FinishedOutcome, Lease, LeasePhase, LiveLease, NewTask,
    TaskClass, TaskError,
};
use crate::db::{Db, DbError, Query, Tx};
use crate::ids::{IdSource, TaskId};
use crate::limits::Limits;

/// Adds a task in the caller's transaction. A queued task with the same dedupe key is returned instead; it cannot be
/// claimed before the caller commits.
pub async fn enqueue(tx: &Tx<'_>, ids: IdSource, task: &NewTask) -> Result<Enqueued, DbError> {
    let id: TaskId = ids.mint();
    let found = store::insert(tx, id, task, attempts_max(task.kind), None).await?;
    Ok(if found == id { Enqueued::New(id) } else { Enqueued::Existing(found) })
}

/// Claims up to `batch` due tasks of one business unit: the least recently served one that has room. An empty answer
/// means that there is nothing to claim now.
pub async fn claim(
    db: &Db,
    class: TaskClass,
    claimed_by: &str,
    batch: i32,
    limits: &Limits,
) -> Result<Vec<ClaimedTask>, DbError> {
    let terms = claim_terms(class, claimed_by, batch, limits);
    let conn = db.conn().await?;
    let mut locked = Vec::new();
    loop {
        match store::claim(&conn, &terms).await? {
            Claim::Nothing => return Ok(Vec::new()),
            Claim::Tasks(tasks) => return Ok(tasks),
            // Looked at, a unit goes to the end of the line: meeting it twice means that a whole round gave nothing.
            Claim::AllLocked(unit) if locked.contains(&unit) => return Ok(Vec::new()),
            Claim::AllLocked(unit) => locked.push(unit),
        }
    }
}

fn claim_terms<'a>(class: TaskClass, claimed_by: &'a str, batch: i32, limits: &Limits) -> ClaimTerms<'a> {
    let (phase, lease, wall_clock) = match class {
        TaskClass::Executor => (LeasePhase::Launching, limits.launch_lease, None),
        TaskClass::Short => (LeasePhase::Live, limits.lease, Some(limits.short_wall_clock)),
    };
    ClaimTerms {
        class,
        claimed_by,
        batch,
        phase,
        lease,
        wall_clock,
        unit_max: unit_max(class, limits),
        executors_max: limits.executors_max,
        launches_per_second: limits.launches_per_second,
    }
}

fn unit_max(class: TaskClass, limits: &Limits) -> i32 {
    match class {
        TaskClass::Executor => limits.unit_executors_max,
        TaskClass::Short => limits.unit_short_tasks_max,
    }
}

/// How long until a task of the class could be claimed: zero if one is due now. `None` means that there is none, or
/// that only the end of a running one makes room; whoever ends it wakes the worker.
pub async fn next_due(
    query: &impl Query,
    class: TaskClass,
    limits: &Limits,
) -> Result<Option<Duration>, DbError> {
    store::next_due(query, class, unit_max(class, limits), limits.executors_max).await
}

/// Refuses unless the lease is still held, and locks the task's row until the transaction ends.
pub async fn lock_held(tx: &Tx<'_>, lease: Lease) -> Result<ClaimedTask, TaskError> {
    store::lock_held(tx, lease).await?.ok_or(TaskError::LeaseLost)
}

/// The task of an attempt, if the lease is still held. Takes no lock: use it where the run's row is locked later.
pub async fn find_held(query: &impl Query, lease: Lease) -> Result<Option<ClaimedTask>, DbError> {
    store::find_held(query, lease).await
}

/// The lease, if it is more than held: renewed in time, within the attempt's time, and not asked to stop.
pub async fn find_live(query: &impl Query, lease: Lease) -> Result<Option<LiveLease>, DbError> {
    store::find_live(query, lease).await
}

/// The same, and nothing changes it until the transaction ends.
pub async fn lock_live(tx: &Tx<'_>, lease: Lease) -> Result<Option<LiveLease>, DbError> {
    store::lock_live(tx, lease).await
}

/// The executor has traded its ticket: from now on the lease is short and renewed by heartbeats. Refused for an
/// attempt that somebody asked to stop.
pub async fn go_live(
    tx: &Tx<'_>,
    lease: Lease,
    wall_clock: Duration,
    limits: &Limits,
) -> Result<(), TaskError> {
    held(store::go_live(tx, lease, limits.lease, wall_clock).await?)
}

/// Renews the lease. Returns whether the attempt should stop: somebody asked for it, or its wall clock has passed.
pub async fn heartbeat(query: &impl Query, lease: Lease, limits: &Limits) -> Result<bool, TaskError> {
    store::heartbeat(query, lease, limits.lease).await?.ok_or(TaskError::LeaseLost)
}

/// Moves a held task to the history and lowers the unit's counter.
pub async fn finish(
    query: &impl Query,
    lease: Lease,
    outcome: FinishedOutcome,
    error: Option<&str>,
    result: Option<&Value>,
) -> Result<(), TaskError> {
    let outcome = Some(outcome);
    leave(query, Leaving { lease, outcome, error, result, delay: Duration::ZERO, unburned: false }).await
}

/// Moves tasks that were claimed together to the history, all as done, each with its result. Returns the leases that
/// were lost meanwhile: of those nothing is recorded.
pub async fn finish_together(
    query: &impl Query,
    done: &[(&ClaimedTask, Option<&Value>)],
) -> Result<Vec<Lease>, DbError> {
    debug_assert!(
        done.iter().all(|(task, _)| task.business_unit_id == done[0].0.business_unit_id),
        "a claim gives tasks of one unit"
    );
    let leaving: Vec<Leaving<'_>> = done
        .iter()
        .map(|(task, result)| Leaving {
            lease: task.lease,
            outcome: Some(FinishedOutcome::Done),
            error: None,
            result: *result,
            delay: Duration::ZERO,
            unburned: false,
        })
        .collect();
    let held = store::leave(query, &leaving).await?;
    Ok(done.iter().map(|(task, _)| task.lease).filter(|lease| !held.contains(&lease.task_id)).collect())
}

/// An attempt failed: queues the task again, or moves it to the history as a dead letter, of which the task's feature must
/// learn: [`crate::dispatch::fail_attempt`] does both. `jitter` is in `0.0..1.0`.
pub async fn fail(
    tx: &Tx<'_>,
    lease: Lease,
    failure: &FailedAttempt,
    jitter: f64,
    limits: &Limits,
) -> Result<Backoff, TaskError> {
    let task = lock_held(tx, lease).await?;
    let error = failure.why();
    let wait = backoff(task.attempts, limits.backoff_base, limits.backoff_max, jitter);
    let next = after_failure(failure, task.attempts, task.attempts_max, wait);
    match next {
        Backoff::Requeued(delay) => requeue(tx, lease, delay, error, false).await?,
        Backoff::GivenBack(delay) => give_back(tx, lease, delay, error).await?,
        Backoff::DeadLettered => {
            finish(tx, lease, FinishedOutcome::Dead, Some(error), None).await?;
        }
    }
    Ok(next)
}

/// Gives an attempt back: the task is queued again and the attempt does not count.
pub async fn give_back(tx: &Tx<'_>, lease: Lease, delay: Duration, why: &str) -> Result<(), TaskError> {
    requeue(tx, lease, delay, why, true).await
}

async fn requeue(
    tx: &Tx<'_>,
    lease: Lease,
    delay: Duration,
    error: &str,
    unburned: bool,
) -> Result<(), TaskError> {
    leave(tx, Leaving { lease, outcome: None, error: Some(error), result: None, delay, unburned }).await
}

async fn leave(query: &impl Query, leaving: Leaving<'_>) -> Result<(), TaskError> {
    held(!store::leave(query, &[leaving]).await?.is_empty())
}

/// Withdraws the subject's queued tasks and asks the running ones to stop. Returns the leases of the running ones.
pub async fn cancel_subject(tx: &Tx<'_>, subject_id: uuid::Uuid) -> Result<Vec<Lease>, DbError> {
    store::cancel_subject(tx, subject_id).await
}

fn held(still: bool) -> Result<(), TaskError> {
    if still { Ok(()) } else { Err(TaskError::LeaseLost) }
}
