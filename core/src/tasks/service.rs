//! Use cases of the queue. The functions that take a transaction are what other features call.

use std::time::Duration;

use serde_json::Value;

use super::{
    Backoff, ClaimedTask, Enqueued, FailedAttempt, FinishedOutcome, Lease, NewTask, TaskClass, TaskError,
};
use crate::db::{Db, DbError, Query, Tx};
use crate::ids::{IdSource, TaskId};
use crate::limits::Limits;

/// Adds a task in the caller's transaction. A queued task with the same dedupe key is returned instead.
pub async fn enqueue(tx: &Tx<'_>, ids: IdSource, task: &NewTask) -> Result<Enqueued, DbError> {
    let _ = (tx, ids, task);
    todo!("queue")
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
    let _ = (db, class, claimed_by, batch, limits);
    todo!("queue")
}

/// Refuses unless the lease is still held, and locks the task's row until the transaction ends.
pub async fn lock_held(tx: &Tx<'_>, lease: Lease) -> Result<ClaimedTask, TaskError> {
    let _ = (tx, lease);
    todo!("queue")
}

/// The task of an attempt, if the lease is still held. Takes no lock: use it where the run's row is locked later.
pub async fn find_held(query: &impl Query, lease: Lease) -> Result<Option<ClaimedTask>, DbError> {
    let _ = (query, lease);
    todo!("queue")
}

/// The executor has traded its ticket: from now on the lease is short and renewed by heartbeats.
pub async fn go_live(
    tx: &Tx<'_>,
    lease: Lease,
    wall_clock: Duration,
    limits: &Limits,
) -> Result<(), TaskError> {
    let _ = (tx, lease, wall_clock, limits);
    todo!("queue")
}

/// Renews the lease. Returns whether somebody asked the attempt to stop.
pub async fn heartbeat(query: &impl Query, lease: Lease, limits: &Limits) -> Result<bool, TaskError> {
    let _ = (query, lease, limits);
    todo!("queue")
}

/// Moves a held task to the history and lowers the unit's counter.
pub async fn finish(
    tx: &Tx<'_>,
    lease: Lease,
    outcome: FinishedOutcome,
    error: Option<&str>,
    result: Option<&Value>,
) -> Result<(), TaskError> {
    let _ = (tx, lease, outcome, error, result);
    todo!("queue")
}

/// An attempt failed: queues the task again, or moves it to the history as a dead letter. `jitter` is in `0.0..1.0`.
pub async fn fail(
    tx: &Tx<'_>,
    lease: Lease,
    failure: &FailedAttempt,
    jitter: f64,
    limits: &Limits,
) -> Result<Backoff, TaskError> {
    let _ = (tx, lease, failure, jitter, limits);
    todo!("queue")
}

/// Gives an attempt back: the task is queued again and the attempt does not count.
pub async fn give_back(tx: &Tx<'_>, lease: Lease, delay: Duration, why: &str) -> Result<(), TaskError> {
    let _ = (tx, lease, delay, why);
    todo!("queue")
}

/// Withdraws the subject's queued tasks and asks the running ones to stop. Returns the leases of the running ones.
pub async fn cancel_subject(tx: &Tx<'_>, subject_id: uuid::Uuid) -> Result<Vec<Lease>, DbError> {
    let _ = (tx, subject_id);
    todo!("queue")
}

/// A dead letter's work once more: a new task, linked to the old one.
pub async fn replay(tx: &Tx<'_>, ids: IdSource, dead: TaskId) -> Result<TaskId, TaskError> {
    let _ = (tx, ids, dead);
    todo!("queue")
}
