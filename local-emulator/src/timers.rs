//! What EventBridge and SQS do on AWS: wake the worker, start the sweeps.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use futures::future::join_all;
use plumbline_core::adapters::InProcessWaker;
use tokio_util::sync::CancellationToken;

use crate::options::Wakes;

/// What the timers start.
#[async_trait]
pub(crate) trait Work: Send + Sync {
    /// One claim routine.
    async fn work(&self) -> anyhow::Result<()>;
    /// One tick of the sweeps.
    async fn sweep(&self) -> anyhow::Result<()>;
}

/// Runs the worker at each wake-up until `stop`: nothing may depend on how often one arrives.
pub(crate) async fn run_worker(
    work: Arc<dyn Work>,
    waker: InProcessWaker,
    wakes: Wakes,
    stop: CancellationToken,
) {
    let times = match wakes {
        Wakes::Never => return,
        Wakes::Once => 1,
        Wakes::Thrice => 3,
    };
    loop {
        tokio::select! {
            () = waker.woken() => {}
            () = stop.cancelled() => return,
        }
        tokio::select! {
            outcomes = join_all((0..times).map(|_| work.work())) => {
                outcomes.into_iter().for_each(|outcome| report("worker", outcome));
            }
            // Dropping a claim routine is what a crash does to it: the sweep repairs it.
            () = stop.cancelled() => return,
        }
    }
}

/// Runs the sweeps at each interval until `stop`; the first at once, to resume what an earlier process left.
pub(crate) async fn run_sweeps(work: Arc<dyn Work>, interval: Duration, stop: CancellationToken) {
    let mut ticks = tokio::time::interval(interval);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    loop {
        tokio::select! {
            _ = ticks.tick() => {}
            () = stop.cancelled() => return,
        }
        tokio::select! {
            outcome = work.sweep() => report("reconciler", outcome),
            () = stop.cancelled() => return,
        }
    }
}

fn report(function: &str, outcome: anyhow::Result<()>) {
    if let Err(error) = outcome {
        tracing::warn!(function, "{error:#}");
    }
}
