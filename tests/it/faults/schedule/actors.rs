//! Executors that a schedule moves step by step, and the platform that runs them.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Mutex;

use async_trait::async_trait;
use plumbline_core::ids::TaskId;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
use plumbline_core::protocol::RunPhase;

use crate::executors::FakeExecutor;

/// What an executor does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    Trade,
    Clone,
    Version,
    Plan,
    Upload,
    PlanDone,
    Begin,
    Lock,
    Write,
    Unlock,
    ApplyDone,
    /// It has ended, by itself or by a kill.
    Nothing,
}

impl Next {
    /// What comes after it, if all goes well.
    pub fn after(self, phase: RunPhase) -> Self {
        match (self, phase) {
            (Self::Trade, RunPhase::Plan) => Self::Clone,
            (Self::Trade, RunPhase::Apply) => Self::Begin,
            (Self::Clone, _) => Self::Version,
            (Self::Version, _) => Self::Plan,
            (Self::Plan, _) => Self::Upload,
            (Self::Upload, _) => Self::PlanDone,
            (Self::Begin, _) => Self::Lock,
            (Self::Lock, _) => Self::Write,
            (Self::Write, _) => Self::Unlock,
            (Self::Unlock, _) => Self::ApplyDone,
            (Self::PlanDone | Self::ApplyDone | Self::Nothing, _) => Self::Nothing,
        }
    }

    /// Whether the call goes by the state's lock and not by the lease.
    pub fn is_about_state(self) -> bool {
        matches!(self, Self::Lock | Self::Write | Self::Unlock)
    }
}

/// One launched attempt.
pub struct Actor<'p> {
    pub handle: String,
    pub launch: LaunchRequest,
    /// `None` until its ticket is traded.
    pub executor: Option<FakeExecutor<'p>>,
    pub next: Next,
    /// It was told that the lock is its own.
    pub holds_lock: bool,
    /// A heartbeat said that it is to stop.
    pub is_asked_to_stop: bool,
    /// The state it is about to write, once it has read the one before.
    pub body: Option<serde_json::Value>,
}

#[derive(Debug, Default)]
struct Platform {
    launched: BTreeMap<(TaskId, i64), (String, LaunchRequest)>,
    fresh: Vec<(String, LaunchRequest)>,
    ended: BTreeSet<String>,
    asked: BTreeSet<String>,
}

/// Starts nothing: what is launched waits for the schedule.
#[derive(Debug, Default)]
pub struct SimLauncher(Mutex<Platform>);

impl SimLauncher {
    /// What was launched since the last call.
    pub fn take_fresh<'p>(&self) -> Vec<Actor<'p>> {
        let fresh = std::mem::take(&mut self.0.lock().unwrap().fresh);
        let actor = |(handle, launch)| Actor {
            handle,
            launch,
            executor: None,
            next: Next::Trade,
            holds_lock: false,
            is_asked_to_stop: false,
            body: None,
        };
        fresh.into_iter().map(actor).collect()
    }

    /// Its process has ended.
    pub fn end(&self, handle: &str) {
        self.0.lock().unwrap().ended.insert(handle.to_owned());
    }

    /// Whether the platform was asked to stop it.
    pub fn is_asked(&self, handle: &str) -> bool {
        self.0.lock().unwrap().asked.contains(handle)
    }
}

#[async_trait]
impl Launcher for SimLauncher {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError> {
        let mut platform = self.0.lock().unwrap();
        let handle = format!("sim-{}", platform.launched.len());
        let attempt = (request.task_id, request.lease_token);
        let launched = (handle.clone(), request.clone());
        assert!(platform.launched.insert(attempt, launched.clone()).is_none(), "an attempt is launched once");
        platform.fresh.push(launched);
        Ok(handle)
    }

    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError> {
        let platform = self.0.lock().unwrap();
        Ok(platform.launched.get(&(task_id, lease_token)).map(|(handle, _)| handle.clone()))
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        let platform = self.0.lock().unwrap();
        let fate = |handle: &String| match platform.ended.contains(handle) {
            true => ExecutorFate::Stopped { reason: "it has ended".into() },
            false => ExecutorFate::Running,
        };
        Ok(handles.iter().map(fate).collect())
    }

    async fn stop(&self, handle: &str, _reason: &str) -> Result<(), LaunchError> {
        self.0.lock().unwrap().asked.insert(handle.to_owned());
        Ok(())
    }
}
