//! What the use cases of executors can say went wrong.

use crate::db::DbError;
use crate::ports::{IdentityError, LaunchError};
use crate::runs::RunError;
use crate::secrets::KeyringError;
use crate::tasks::TaskError;

/// Why something with an executor did not work.
#[derive(Debug, thiserror::Error)]
pub enum ExecutorError {
    /// No such ticket, or it was voided: the task was cancelled, superseded or given to another attempt.
    #[error("this ticket is not good any more: its task was cancelled or given to another attempt")]
    TicketVoid,
    /// The ticket was traded by somebody else.
    #[error("this ticket was traded already")]
    TicketReused,
    /// We do not speak the executor's protocol.
    #[error("protocol {0} is not supported")]
    Protocol(u32),
    /// The token is none of ours.
    #[error("the token is not valid")]
    Token,
    /// Another attempt owns the task, or it has ended.
    #[error("the lease on this task was lost: another attempt owns it, or it has ended")]
    LeaseLost,
    /// The caller is not the task that the ticket was made for, or did not prove it.
    #[error("the caller did not prove to be the task that this ticket was made for: {0}")]
    IdentityRefused(String),
    /// The cloud cannot be asked who calls.
    #[error(transparent)]
    IdentityUnavailable(IdentityError),
    /// What the platform calls the task is not known yet, so nobody can be compared with it.
    #[error("the launch of this task is not recorded yet; that takes two minutes at most")]
    LaunchUnrecorded,
    /// A key is missing.
    #[error(transparent)]
    Key(#[from] KeyringError),
    /// The run.
    #[error(transparent)]
    Run(RunError),
    /// The platform that runs executors.
    #[error(transparent)]
    Launcher(#[from] LaunchError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<RunError> for ExecutorError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::LeaseLost => Self::TicketVoid,
            RunError::Db(error) => Self::Db(error),
            other => Self::Run(other),
        }
    }
}

impl From<TaskError> for ExecutorError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::Db(error) => Self::Db(error),
            TaskError::LeaseLost
            | TaskError::NotFound
            | TaskError::NotReplayable(_)
            | TaskError::Access(_) => Self::LeaseLost,
        }
    }
}
