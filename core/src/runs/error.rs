//! What the use cases of runs can say went wrong.

use super::RunStatus;
use crate::access::AccessError;
use crate::cloud_accounts::CredentialsError;
use crate::db::DbError;
use crate::digest::Sha256Digest;
use crate::ports::BlobError;
use crate::secrets::SealError;
use crate::tasks::TaskError;
use crate::tfstates::StateError;
use crate::variables::VariableError;
use crate::workspaces::Locked;

/// Why something with a run did not work.
#[derive(Debug, thiserror::Error)]
pub enum RunError {
    /// No such run, step or artifact in this scope.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// The lifecycle forbids the move.
    #[error("a run that is {from} cannot become {to}")]
    IllegalMove {
        /// Where it stands.
        from: RunStatus,
        /// Where it was to go.
        to: RunStatus,
    },
    /// The state moved after the plan was made.
    #[error("the state has changed since this plan was made ({planned}; now {now}): plan again")]
    StalePlan {
        /// The state that was planned on.
        planned: String,
        /// The state now.
        now: String,
    },
    /// The approval names another plan than the one that is there.
    #[error("this run's plan is not the one you saw: its approval digest is {actual}")]
    DigestMismatch {
        /// The digest of what is there.
        actual: Sha256Digest,
    },
    /// The plan is too old to approve.
    #[error("this plan has expired: plan again")]
    PlanExpired,
    /// The workspace is blocked.
    #[error("the workspace is blocked: {reason}")]
    WorkspaceBlocked {
        /// Why.
        reason: String,
    },
    /// A person has locked the workspace.
    #[error("the {0}")]
    WorkspaceLocked(Locked),
    /// Too many runs wait already.
    #[error("{waiting} runs wait for this workspace already")]
    TooManyWaiting {
        /// How many.
        waiting: i64,
    },
    /// A value of the request is wrong.
    #[error("{field}: {reason}")]
    Invalid {
        /// Where.
        field: String,
        /// Why.
        reason: String,
    },
    /// An executor wrote an artifact twice with different content, or named one that it has not uploaded.
    #[error("artifact {kind}: {reason}")]
    Artifact {
        /// Which.
        kind: &'static str,
        /// Why.
        reason: &'static str,
    },
    /// A log chunk does not follow the last one.
    #[error("the log goes on at {expected}")]
    LogGap {
        /// Where the next chunk must begin.
        expected: i64,
    },
    /// A log that still grows is too long for one answer.
    #[error(
        "this log has {bytes} bytes and is not in the object store yet: read it by pages, or once the run has ended"
    )]
    LogNotStored {
        /// Its length.
        bytes: i64,
    },
    /// A step report that does not fit the run.
    #[error("step {position}: {reason}")]
    Step {
        /// Which.
        position: i16,
        /// Why.
        reason: &'static str,
    },
    /// The executor lost its lease.
    #[error("the lease on this task was lost: another attempt owns it, or it has ended")]
    LeaseLost,
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The object store.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// The workspace's state.
    #[error(transparent)]
    State(#[from] StateError),
    /// Its cloud credentials cannot be used.
    #[error(transparent)]
    Credentials(#[from] CredentialsError),
    /// Its variables.
    #[error(transparent)]
    Variables(#[from] VariableError),
    /// A sealed value.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}

impl From<TaskError> for RunError {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::LeaseLost => Self::LeaseLost,
            TaskError::NotFound | TaskError::NotReplayable(_) => Self::NotFound("task"),
            TaskError::Access(error) => Self::Access(error),
            TaskError::Db(error) => Self::Db(error),
        }
    }
}
