//! What EventBridge and SQS do on AWS: wake the worker, start the sweeps.

use std::sync::Arc;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_core::adapters::InProcessWaker;
use plumbline_core::ports::Waker;
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

/// A waker that loses or repeats what goes through it: nothing may depend on how often a wake-up arrives.
#[derive(Debug)]
pub(crate) struct RepeatingWaker {
    pub(crate) inner: InProcessWaker,
    pub(crate) wakes: Wakes,
}

#[async_trait]
impl Waker for RepeatingWaker {
    async fn wake(&self, delay: Duration) {
        let times = match self.wakes {
            Wakes::Never => 0,
            Wakes::Once => 1,
            Wakes::Thrice => 3,
        };
        for _ in 0..times {
            self.inner.wake(delay).await;
        }
    }
}

/// Runs the worker at each wake-up until `stop`.
pub(crate) async fn run_worker(work: Arc<dyn Work>, waker: InProcessWaker, stop: CancellationToken) {
    loop {
        tokio::select! {
            () = waker.woken() => {}
            () = stop.cancelled() => return,
        }
        tokio::select! {
            outcome = work.work() => report("worker", outcome),
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
