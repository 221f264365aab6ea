//! Starting and stopping executors.

use async_trait::async_trait;

use crate::ids::{ExecutorId, TaskId};

/// What an executor is started with. It carries no secret but the ticket, which is good once.
#[derive(Clone)]
pub struct LaunchRequest {
    /// The attempt.
    pub executor_id: ExecutorId,
    /// The task; `startedBy` on ECS.
    pub task_id: TaskId,
    /// With the task it makes the idempotency token: launching the same attempt twice starts one executor.
    pub lease_token: i64,
    /// Where the executor trades its ticket.
    pub callback_url: String,
    /// The one-time ticket.
    pub ticket: String,
}

impl std::fmt::Debug for LaunchRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("LaunchRequest")
            .field("executor_id", &self.executor_id)
            .field("task_id", &self.task_id)
            .field("lease_token", &self.lease_token)
            .finish_non_exhaustive()
    }
}

/// Why an executor was not started.
#[derive(Debug, thiserror::Error)]
pub enum LaunchError {
    /// Too many launches: give the attempt back and try later.
    #[error("the platform asks to launch fewer executors: {0}")]
    Throttled(String),
    /// The platform cannot be reached or has no room: a failed attempt.
    #[error("the executor could not be launched: {0}")]
    Unavailable(String),
    /// Will never work: wrong set-up.
    #[error("the executor can never be launched so: {0}")]
    Refused(String),
}

/// What the platform knows of an executor.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ExecutorFate {
    /// It may still act.
    Running,
    /// It cannot act any more.
    Stopped {
        /// What the platform says about why, with the exit code if there was one.
        reason: String,
    },
    /// The platform does not know it, or did not answer: never proof that it stopped.
    Unknown,
}

/// A place where executors run. Implementations: child processes of this machine, ECS tasks.
#[async_trait]
pub trait Launcher: Send + Sync + std::fmt::Debug {
    /// The word in `executors.launcher`.
    fn name(&self) -> &'static str;

    /// Starts an executor and returns what the platform calls it. Idempotent per (task, lease token).
    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError>;

    /// The handle of an executor whose launch was not recorded, if it was started after all.
    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError>;

    /// The fate of each handle, in order.
    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError>;

    /// Asks an executor to stop: interrupt first, kill after a grace period. Returns before it has stopped.
    async fn stop(&self, handle: &str, reason: &str) -> Result<(), LaunchError>;
}
