//! A platform that starts nothing and remembers what it was asked.

use std::collections::BTreeMap;
use std::sync::Mutex;

use async_trait::async_trait;
use plumbline_core::ids::TaskId;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};

#[derive(Debug, Default)]
struct Platform {
    launched: BTreeMap<(TaskId, i64), String>,
    fates: BTreeMap<String, ExecutorFate>,
    stopped: Vec<String>,
    refusals: Vec<LaunchError>,
}

/// Launches are recorded as `handle-1`, `handle-2`…
#[derive(Debug, Default)]
pub(super) struct FakeLauncher {
    platform: Mutex<Platform>,
}

impl FakeLauncher {
    fn with<T>(&self, look: impl FnOnce(&mut Platform) -> T) -> T {
        look(&mut self.platform.lock().unwrap())
    }

    /// The next launch fails so.
    pub(super) fn refuse_next(&self, error: LaunchError) {
        self.with(|platform| platform.refusals.push(error));
    }

    pub(super) fn launches(&self) -> usize {
        self.with(|platform| platform.launched.len())
    }

    /// The executor has exited.
    pub(super) fn end(&self, handle: &str) {
        let fate = ExecutorFate::Stopped { reason: "exit code 137".into() };
        self.with(|platform| platform.fates.insert(handle.into(), fate));
    }

    /// The platform does not know the executor any more.
    pub(super) fn forget(&self, handle: &str) {
        self.with(|platform| platform.fates.remove(handle));
    }

    /// What was asked to stop, in order, each once.
    pub(super) fn stopped(&self) -> Vec<String> {
        self.with(|platform| {
            let mut stopped = platform.stopped.clone();
            stopped.dedup();
            stopped
        })
    }

    pub(super) fn fate_of(&self, handle: &str) -> ExecutorFate {
        self.with(|platform| platform.fates.get(handle).cloned().unwrap_or(ExecutorFate::Unknown))
    }
}

#[async_trait]
impl Launcher for FakeLauncher {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError> {
        self.with(|platform| {
            if let Some(error) = platform.refusals.pop() {
                return Err(error);
            }
            let next = format!("handle-{}", platform.launched.len() + 1);
            let attempt = (request.task_id, request.lease_token);
            let handle = platform.launched.entry(attempt).or_insert(next).clone();
            platform.fates.insert(handle.clone(), ExecutorFate::Running);
            Ok(handle)
        })
    }

    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError> {
        Ok(self.with(|platform| platform.launched.get(&(task_id, lease_token)).cloned()))
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        Ok(handles.iter().map(|handle| self.fate_of(handle)).collect())
    }

    async fn stop(&self, handle: &str, _reason: &str) -> Result<(), LaunchError> {
        self.with(|platform| platform.stopped.push(handle.into()));
        Ok(())
    }
}
