//! Running short tasks: the handler works, heartbeats keep its lease, and its answer ends the attempt. Answers that come
//! together are recorded together.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures::stream::FuturesUnordered;
use futures::{FutureExt, StreamExt};
use plumbline_core::db::DbError;
use plumbline_core::tasks::{
    self, ClaimedTask, FailedAttempt, FinishedOutcome, Lease, TaskClass, TaskError, TaskKind,
};
use plumbline_core::{Deps, dispatch, resources};
use serde_json::Value;

use crate::Outbound;

/// Short tasks run at the same time.
const BATCH: i32 = 5;
/// Longest result, in bytes of JSON.
const RESULT_BYTES_MAX: usize = 256 << 10;

/// Why an attempt gave no result.
enum NotDone {
    Failed(FailedAttempt),
    /// Somebody asked for it, or it took too long.
    Stopped,
    /// Another attempt owns the task.
    LeaseLost,
}

/// Runs every short task that can be claimed.
pub(crate) async fn run_due(
    deps: &Deps,
    outbound: &dyn Outbound,
    worker: &str,
    deadline: Instant,
) -> Result<usize, DbError> {
    let mut ended = 0;
    while Instant::now() < deadline {
        let batch = tasks::service::claim(&deps.db, TaskClass::Short, worker, BATCH, &deps.limits).await?;
        if batch.is_empty() {
            break;
        }
        ended += batch.len();
        let attempts: FuturesUnordered<_> =
            batch.iter().map(async |task| (task, attend(deps, outbound, task).await)).collect();
        // Whatever has ended by the time of the next look is recorded together.
        let mut attempts = attempts.ready_chunks(batch.len());
        while let Some(together) = attempts.next().await {
            // On the heap: it is large, and callers carry the whole worker in their futures.
            Box::pin(record_together(deps, together)).await;
        }
    }
    Ok(ended)
}

/// Records how attempts of one claim ended. What cannot be recorded is tried again when its lease has run out.
async fn record_together(deps: &Deps, together: Vec<(&ClaimedTask, Result<Value, NotDone>)>) {
    let mut done = Vec::new();
    for (task, ended) in together {
        match ended {
            Ok(result) => done.push((task, result)),
            Err(ended) => match record_failure(deps, task, ended).await {
                Ok(()) => {}
                Err(TaskError::LeaseLost) => warn_of_lost_lease(task.lease),
                Err(error) => {
                    tracing::error!(task.id = %task.lease.task_id, %error, "a failure was not recorded");
                }
            },
        }
    }
    if !done.is_empty()
        && let Err(error) = record_done(deps, &done).await
    {
        tracing::error!(tasks = done.len(), %error, "results were not recorded");
    }
}

async fn record_done(deps: &Deps, done: &[(&ClaimedTask, Value)]) -> Result<(), DbError> {
    let done: Vec<_> = done.iter().map(|(task, result)| (*task, Some(result))).collect();
    let conn = deps.db.conn().await?;
    tasks::service::finish_together(&conn, &done).await?.into_iter().for_each(warn_of_lost_lease);
    Ok(())
}

fn warn_of_lost_lease(lease: Lease) {
    tracing::warn!(task.id = %lease.task_id, "a short task was given to another attempt");
}

/// A result becomes a row.
fn bounded(result: Value) -> Result<Value, FailedAttempt> {
    if result.to_string().len() > RESULT_BYTES_MAX {
        return Err(FailedAttempt::Permanent("the result is too large to be kept".into()));
    }
    Ok(result)
}

/// States are read here, and not where addresses of tenants' choice are called.
async fn work(deps: &Deps, outbound: &dyn Outbound, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    match task.kind {
        TaskKind::StateIndex => resources::tasks::index(deps, task).await,
        _ => outbound.handle(deps, task).await,
    }
}

/// Lets the handler work and renews the lease meanwhile.
async fn attend(deps: &Deps, outbound: &dyn Outbound, task: &ClaimedTask) -> Result<Value, NotDone> {
    // A panic in one task must not take the others of the batch with it.
    let handler = AssertUnwindSafe(work(deps, outbound, task)).catch_unwind();
    tokio::pin!(handler);
    let mut beat = tokio::time::interval(deps.limits.heartbeat);
    beat.tick().await;
    loop {
        tokio::select! {
            answer = &mut handler => {
                return answer
                    .unwrap_or_else(|_| Err(FailedAttempt::Retry("the task's handler crashed".into())))
                    .and_then(bounded)
                    .map_err(NotDone::Failed);
            }
            _ = beat.tick() => match heartbeat(deps, task).await {
                Ok(false) => {}
                Ok(true) => return Err(NotDone::Stopped),
                Err(TaskError::LeaseLost) => return Err(NotDone::LeaseLost),
                Err(error) => {
                    tracing::warn!(task.id = %task.lease.task_id, %error, "a heartbeat was not recorded");
                }
            },
        }
    }
}

async fn heartbeat(deps: &Deps, task: &ClaimedTask) -> Result<bool, TaskError> {
    let conn = deps.db.conn().await?;
    tasks::service::heartbeat(&conn, task.lease, &deps.limits).await
}

async fn record_failure(deps: &Deps, task: &ClaimedTask, ended: NotDone) -> Result<(), TaskError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    match ended {
        NotDone::Failed(failure) => dispatch::fail_attempt(&tx, deps, task, &failure).await?,
        NotDone::Stopped => {
            let why = "the task was asked to stop, or took longer than its wall-clock limit";
            tasks::service::finish(&tx, task.lease, FinishedOutcome::Cancelled, Some(why), None).await?;
        }
        NotDone::LeaseLost => return Err(TaskError::LeaseLost),
    }
    tx.commit().await?;
    Ok(())
}
