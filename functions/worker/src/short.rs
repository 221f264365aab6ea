//! Running short tasks: the handler works, heartbeats keep its lease, and its answer ends the attempt.

use std::panic::AssertUnwindSafe;
use std::time::Instant;

use futures::FutureExt;
use futures::future::join_all;
use plumbline_core::db::DbError;
use plumbline_core::tasks::{
    self, Backoff, ClaimedTask, FailedAttempt, FinishedOutcome, TaskClass, TaskError,
};
use plumbline_core::{Deps, dispatch};
use serde_json::Value;

use crate::Outbound;

/// Short tasks run at the same time.
const BATCH: i32 = 5;

/// How the handler of one attempt ended.
enum Ended {
    Answered(Result<Value, FailedAttempt>),
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
        join_all(batch.iter().map(|task| run(deps, outbound, task))).await;
    }
    Ok(ended)
}

async fn run(deps: &Deps, outbound: &dyn Outbound, task: &ClaimedTask) {
    let ended = attend(deps, outbound, task).await;
    match record(deps, task, ended).await {
        Ok(()) => {}
        Err(TaskError::LeaseLost) => {
            tracing::warn!(task.id = %task.lease.task_id, "a short task was given to another attempt");
        }
        // Its lease runs out and it is tried again.
        Err(error) => tracing::error!(task.id = %task.lease.task_id, %error, "a result was not recorded"),
    }
}

/// Lets the handler work and renews the lease meanwhile.
async fn attend(deps: &Deps, outbound: &dyn Outbound, task: &ClaimedTask) -> Ended {
    // A panic in one task must not take the others of the batch with it.
    let handler = AssertUnwindSafe(outbound.handle(deps, task)).catch_unwind();
    tokio::pin!(handler);
    let mut beat = tokio::time::interval(deps.limits.heartbeat);
    beat.tick().await;
    loop {
        tokio::select! {
            answer = &mut handler => {
                return Ended::Answered(
                    answer.unwrap_or_else(|_| Err(FailedAttempt::Retry("the task's handler crashed".into()))),
                );
            }
            _ = beat.tick() => match heartbeat(deps, task).await {
                Ok(false) => {}
                Ok(true) => return Ended::Stopped,
                Err(TaskError::LeaseLost) => return Ended::LeaseLost,
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

async fn record(deps: &Deps, task: &ClaimedTask, ended: Ended) -> Result<(), TaskError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    match ended {
        Ended::Answered(Ok(result)) => {
            tasks::service::finish(&tx, task.lease, FinishedOutcome::Done, None, Some(&result)).await?;
        }
        Ended::Answered(Err(failure)) => {
            let next = tasks::service::fail(&tx, task.lease, &failure, rand::random(), &deps.limits).await?;
            if next == Backoff::DeadLettered {
                let (FailedAttempt::Retry(error) | FailedAttempt::Permanent(error)) = &failure;
                dispatch::dead_lettered(&tx, deps.ids, task, error).await?;
            }
        }
        Ended::Stopped => {
            let why = "the task was asked to stop, or took longer than its wall-clock limit";
            tasks::service::finish(&tx, task.lease, FinishedOutcome::Cancelled, Some(why), None).await?;
        }
        Ended::LeaseLost => return Err(TaskError::LeaseLost),
    }
    tx.commit().await?;
    Ok(())
}
