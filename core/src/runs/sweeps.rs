//! What the reconciler does for runs. Each step is a claim of its own and safe at any parallelism.

use std::time::Duration;

use super::ending::{self, Ending};
use super::{EndReason, RunError, RunStatus, logs, service, store, sweeps_store, waiting};
use crate::Deps;
use crate::access::{Actor, Scope};
use crate::audit::Action;
use crate::{config, workspaces};

const BATCH: i64 = 200;
const FORGET_BATCHES_MAX: usize = 20;

/// Starts waiting runs whose workspace is free. There are some only after a crash or an unblock.
pub async fn start_waiting(deps: &Deps) -> Result<usize, RunError> {
    let free = waiting::free_workspaces_with_waiting(&deps.db.conn().await?, BATCH).await?;
    let mut started = 0;
    for workspace in free {
        let mut conn = deps.db.conn().await?;
        let tx = conn.begin().await?;
        let now = workspaces::service::lock(&tx, Scope::All, workspace).await?;
        if now.is_some_and(|now| now.takes_next_run()) {
            started += usize::from(ending::start_next_waiting(&tx, deps.ids, workspace).await?.is_some());
        }
        tx.commit().await?;
    }
    if started > 0 {
        deps.waker.wake(Duration::ZERO).await;
    }
    Ok(started)
}

/// Cancels runs whose plan nobody approved in time.
pub async fn expire_plans(deps: &Deps) -> Result<usize, RunError> {
    let due = sweeps_store::expired_plans(&deps.db.conn().await?, BATCH).await?;
    let mut expired = 0;
    for (id, workspace) in due {
        let mut conn = deps.db.conn().await?;
        let tx = conn.begin().await?;
        workspaces::service::lock(&tx, Scope::All, workspace).await?;
        let run = store::lock(&tx, None, id).await?;
        // Approved or rejected meanwhile: then it is not ours any more.
        let Some(run) = run.filter(|run| run.run.status == RunStatus::AwaitingApproval && run.plan_expired)
        else {
            continue;
        };
        let ending = Ending {
            to: RunStatus::Cancelled,
            reason: Some(EndReason::Expired),
            error: Some("nobody approved the plan in time"),
            actor: Actor::System,
            action: Action::RunExpire,
        };
        ending::end(&tx, deps.ids, &run, &ending).await?;
        tx.commit().await?;
        expired += 1;
    }
    Ok(expired)
}

/// Cancels what waits, plans or awaits approval in archived units. A begun apply is finished.
pub async fn end_archived(deps: &Deps) -> Result<usize, RunError> {
    let found = sweeps_store::of_archived_units(&deps.db.conn().await?, BATCH).await?;
    let mut ended = 0;
    for (id, workspace) in found {
        let mut conn = deps.db.conn().await?;
        let tx = conn.begin().await?;
        workspaces::service::lock(&tx, Scope::All, workspace).await?;
        let run = store::lock(&tx, None, id).await?;
        // Ended, or begun to apply, meanwhile.
        let Some(run) = run.filter(|run| run.run.completed_at.is_none() && run.apply_begun_at.is_none())
        else {
            continue;
        };
        let why = Some("the business unit was archived");
        service::cancel_in(&tx, deps, &run, Actor::System, EndReason::UnitArchived, why).await?;
        tx.commit().await?;
        ended += 1;
    }
    Ok(ended)
}

/// Removes the values of variables of runs that ended some time ago.
pub async fn forget_values(deps: &Deps) -> Result<usize, RunError> {
    let conn = deps.db.conn().await?;
    let age = config::service::run_secret_age(&conn, &deps.limits).await?;
    let mut forgotten = 0;
    for _ in 0..FORGET_BATCHES_MAX {
        let batch = sweeps_store::remove_values(&conn, age, BATCH).await?;
        forgotten += usize::try_from(batch).unwrap_or(usize::MAX);
        if batch == 0 {
            break;
        }
    }
    Ok(forgotten)
}

/// Moves logs of ended runs into the object store.
pub async fn compact_logs(deps: &Deps) -> Result<usize, RunError> {
    logs::compact(deps, 50).await
}
