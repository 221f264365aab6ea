//! The worker: claims tasks until there is nothing to claim, launches executors, and hands short tasks to `outbound`.
//!
//! It may not call an address that a tenant chose. Short tasks that read tenants' states and call nobody it does itself. The wake-up's content is ignored: what to do stands in the database.

mod executors;
mod invoked;
pub mod launcher;
mod short;

use std::time::{Duration, Instant};

use async_trait::async_trait;
pub use invoked::InvokedOutbound;
use plumbline_core::Deps;
use plumbline_core::db::DbError;
use plumbline_core::ports::Launcher;
use plumbline_core::tasks::{self, ClaimedTask, FailedAttempt, TaskClass};
use serde_json::Value;

/// How long one call goes on claiming. Below a function's timeout, so that what it claimed last is launched, too.
const CLAIMING_MAX: Duration = Duration::from_secs(45);
/// A wake-up further away than this is left to the sweep.
const WAKE_WITHIN: Duration = Duration::from_secs(900);

/// Runs short tasks. Implementations: a call of the `outbound` function, the same in one process for the emulator, a fake
/// in tests.
#[async_trait]
pub trait Outbound: Send + Sync {
    /// Does the work of one short task. Dropped when the attempt is over for others.
    async fn handle(&self, deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt>;
}

/// What one call did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Worked {
    /// Executors launched.
    pub launched: usize,
    /// Short tasks run to an end, good or bad.
    pub short_tasks: usize,
}

/// Claims and works until there is nothing to claim. Safe to be called concurrently and for nothing.
pub async fn handle(
    deps: &Deps,
    launcher: &dyn Launcher,
    outbound: &dyn Outbound,
) -> Result<Worked, DbError> {
    let name = ["worker-", &uuid::Uuid::now_v7().simple().to_string()].concat();
    let deadline = Instant::now() + CLAIMING_MAX;
    let (launched, short_tasks) = tokio::join!(
        executors::launch_due(deps, launcher, &name, deadline),
        short::run_due(deps, outbound, &name, deadline),
    );
    let worked = Worked { launched: launched?, short_tasks: short_tasks? };
    wake_when_due(deps).await?;
    if worked != Worked::default() {
        tracing::info!(worked.launched, worked.short_tasks, "the worker worked");
    }
    Ok(worked)
}

/// Asks to be woken when the next task is due: retries, delays and rationed launches need no polling.
async fn wake_when_due(deps: &Deps) -> Result<(), DbError> {
    let conn = deps.db.conn().await?;
    let mut next: Option<Duration> = None;
    for class in [TaskClass::Executor, TaskClass::Short] {
        if let Some(due) = tasks::service::next_due(&conn, class, &deps.limits).await? {
            next = Some(next.map_or(due, |known| known.min(due)));
        }
    }
    drop(conn);
    if let Some(delay) = next.filter(|delay| *delay <= WAKE_WITHIN) {
        // What is due now could not be claimed now (launches are rationed, rows are locked): never spin on it.
        deps.waker.wake(delay.max(Duration::from_secs(1))).await;
    }
    Ok(())
}
