//! The platform on which the executors of the history run, and what it knows of their ends.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};

use async_trait::async_trait;
use plumbline_core::ids::TaskId;
use plumbline_core::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};
use uuid::Uuid;

use super::chronicle::Chronicle;
use super::history::Tick;

/// Starts nothing: clients act as executors.
#[derive(Debug)]
pub struct Platform {
    chronicle: Arc<Chronicle>,
    /// When each one ended, and whether a sweep has got to know it.
    ended: Mutex<BTreeMap<Uuid, (Tick, bool)>>,
}

impl Platform {
    pub fn new(chronicle: Arc<Chronicle>) -> Self {
        Self { chronicle, ended: Mutex::default() }
    }

    /// What it calls an executor.
    pub fn handle(executor: Uuid) -> String {
        executor.to_string()
    }

    /// Its process has ended, by itself or by a kill.
    pub fn end(&self, executor: Uuid) {
        let now = self.chronicle.tick();
        self.ended.lock().unwrap().entry(executor).or_insert((now, false));
    }

    pub fn has_ended(&self, executor: Uuid) -> bool {
        self.ended.lock().unwrap().contains_key(&executor)
    }

    /// Those of whose end no sweep has told yet.
    pub fn untold(&self) -> Vec<(Uuid, Tick)> {
        let ended = self.ended.lock().unwrap();
        ended.iter().filter(|(_, (_, is_told))| !is_told).map(|(id, (at, _))| (*id, *at)).collect()
    }

    /// Whether a sweep knows that it has ended.
    pub fn is_told(&self, executor: Uuid) -> bool {
        self.ended.lock().unwrap().get(&executor).is_some_and(|(_, is_told)| *is_told)
    }

    /// `false` if another sweep was first.
    pub fn tell(&self, executor: Uuid) -> bool {
        self.ended
            .lock()
            .unwrap()
            .get_mut(&executor)
            .is_some_and(|(_, is_told)| !std::mem::replace(is_told, true))
    }
}

#[async_trait]
impl Launcher for Platform {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn launch(&self, _: &LaunchRequest) -> Result<String, LaunchError> {
        Err(LaunchError::Unavailable("clients prepare their runs themselves".into()))
    }

    async fn find(&self, _: TaskId, _: i64) -> Result<Option<String>, LaunchError> {
        Ok(None)
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        let fate = |handle: &String| match self.has_ended(handle.parse().unwrap()) {
            true => ExecutorFate::Stopped { reason: "it has ended".into() },
            false => ExecutorFate::Running,
        };
        Ok(handles.iter().map(fate).collect())
    }

    async fn stop(&self, handle: &str, _reason: &str) -> Result<(), LaunchError> {
        self.end(handle.parse().unwrap());
        Ok(())
    }
}
