//! Executors of this emulator: the local launcher, with a memory of what it started, so that a stop leaves none.

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::time::Duration;

use async_trait::async_trait;
use plumbline_core::ids::TaskId;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
use tokio::time::Instant;

const POLL: Duration = Duration::from_millis(50);

/// A launcher that can stop everything it started.
#[derive(Debug)]
pub(crate) struct StoppingLauncher<L> {
    inner: L,
    started: Mutex<BTreeSet<String>>,
}

impl<L: Launcher> StoppingLauncher<L> {
    pub(crate) fn new(inner: L) -> Self {
        Self { inner, started: Mutex::default() }
    }

    fn started(&self) -> Vec<String> {
        self.started.lock().expect("no holder panics").iter().cloned().collect()
    }

    /// Asks every executor to stop and waits until none runs any more, or the patience ends. Returns how many are left;
    /// they end with this process.
    pub(crate) async fn stop_all(&self, patience: Duration) -> usize {
        let deadline = Instant::now() + patience;
        let handles = self.started();
        let mut running = self.running(handles).await;
        for handle in &running {
            if let Err(error) = self.inner.stop(handle, "the emulator stops").await {
                tracing::warn!(error = %error, executor.handle = handle, "an executor cannot be asked to stop");
            }
        }
        while !running.is_empty() && Instant::now() < deadline {
            tokio::time::sleep(POLL).await;
            running = self.running(running).await;
        }
        running.len()
    }

    async fn running(&self, handles: Vec<String>) -> Vec<String> {
        let Ok(fates) = self.inner.describe(&handles).await else { return handles };
        handles
            .into_iter()
            .zip(fates)
            .filter(|(_, fate)| *fate == ExecutorFate::Running)
            .map(|(handle, _)| handle)
            .collect()
    }
}

#[async_trait]
impl<L: Launcher> Launcher for StoppingLauncher<L> {
    fn name(&self) -> &'static str {
        self.inner.name()
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError> {
        let handle = self.inner.launch(request).await?;
        self.started.lock().expect("no holder panics").insert(handle.clone());
        Ok(handle)
    }

    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError> {
        self.inner.find(task_id, lease_token).await
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        let fates = self.inner.describe(handles).await?;
        let mut started = self.started.lock().expect("no holder panics");
        for (handle, fate) in handles.iter().zip(&fates) {
            if matches!(fate, ExecutorFate::Stopped { .. }) {
                started.remove(handle);
            }
        }
        Ok(fates)
    }

    async fn stop(&self, handle: &str, reason: &str) -> Result<(), LaunchError> {
        self.inner.stop(handle, reason).await
    }
}
