//! Which executors may still act: asks the platform, finds launches that were not recorded, stops what nobody wants.

use std::time::Duration;

use super::liveness_store as store;
use super::{ExecutorError, service};
use crate::Deps;
use crate::db::{DbError, Tx};
use crate::ids::ExecutorId;
use crate::ports::{ExecutorFate, Launcher};

/// Executors that one call asks the platform about; ECS takes no more.
const BATCH: i64 = 100;
/// How long a launch may take until its handle must be recorded.
const RECORD_WITHIN: Duration = Duration::from_secs(60);
/// How long an executor that has done its work, or was told to stop, may take to leave by itself.
const LEAVE_WITHIN: Duration = Duration::from_secs(20);

/// Voids the ticket of an executor that has not traded it; `false` if it has, or is trading it right now.
pub async fn void_ticket(tx: &Tx<'_>, id: ExecutorId) -> Result<bool, DbError> {
    store::void_ticket(tx, id).await
}

/// Asks the platform about every executor that may act, and marks those that cannot any more. An executor that the
/// platform does not know stays: not knowing proves nothing.
pub async fn refresh_fates(deps: &Deps, launcher: &dyn Launcher) -> Result<usize, ExecutorError> {
    let mut after = ExecutorId(uuid::Uuid::nil());
    let mut stopped = 0;
    loop {
        let alive = store::alive(&deps.db.conn().await?, launcher.name(), after, BATCH).await?;
        let Some((last, _)) = alive.last() else { return Ok(stopped) };
        after = *last;
        let handles: Vec<String> = alive.iter().map(|(_, handle)| handle.clone()).collect();
        let fates = launcher.describe(&handles).await?;
        for ((id, _), fate) in alive.iter().zip(fates) {
            if let ExecutorFate::Stopped { reason } = fate {
                stopped += usize::from(mark_stopped(deps, *id, &reason).await?);
            }
        }
    }
}

/// Finds executors whose launch was not recorded, because the worker died right after it. What was never launched is
/// marked as stopped once its attempt is over.
pub async fn adopt_unrecorded(deps: &Deps, launcher: &dyn Launcher) -> Result<usize, ExecutorError> {
    let found = store::unrecorded(&deps.db.conn().await?, launcher.name(), RECORD_WITHIN, BATCH).await?;
    let mut adopted = 0;
    for executor in found {
        match launcher.find(executor.task_id, executor.lease_token).await? {
            Some(handle) => service::record_launched(deps, executor.id, &handle).await?,
            None if executor.wanted => continue,
            None => {
                mark_stopped(deps, executor.id, "it was never launched").await?;
            }
        }
        adopted += 1;
    }
    Ok(adopted)
}

/// Stops executors that hold no task any more, and those that were asked to stop and did not.
pub async fn stop_unwanted(deps: &Deps, launcher: &dyn Launcher) -> Result<usize, ExecutorError> {
    let unwanted = store::take_unwanted(&deps.db.conn().await?, launcher.name(), LEAVE_WITHIN, BATCH).await?;
    for (handle, reason) in &unwanted {
        // Asked again by the next sweep until the platform says that it has stopped.
        if let Err(error) = launcher.stop(handle, reason).await {
            tracing::warn!(executor.handle = handle, %error, "an executor could not be stopped");
        }
    }
    Ok(unwanted.len())
}

async fn mark_stopped(deps: &Deps, id: ExecutorId, reason: &str) -> Result<bool, ExecutorError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let stopped = service::mark_stopped(&tx, id, reason).await?;
    tx.commit().await?;
    Ok(stopped)
}
