//! What the use cases of workspaces can say went wrong.

use super::{InvalidField, Locked};
use crate::access::AccessError;
use crate::db::DbError;
use crate::ids::RunId;
use crate::ports::BlobError;
use crate::runs::RunError;
use crate::secrets::SealError;
use crate::state_stores::StateStoreError;

/// Why something with a workspace did not work.
#[derive(Debug, thiserror::Error)]
pub enum WorkspaceError {
    /// No such workspace in this scope.
    #[error("no such workspace")]
    NotFound,
    /// A value of the request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Another workspace has the same identity.
    #[error(
        "a workspace with the same aws_account_id, region, environment, repo_url and tf_working_dir exists"
    )]
    Duplicate,
    /// The edit was made to an older version.
    #[error("the workspace was edited meanwhile: it is at version {actual}")]
    VersionMismatch {
        /// The version now.
        actual: i32,
    },
    /// A run is under way in the workspace.
    #[error("the run {run_id} is under way in this workspace")]
    RunActive {
        /// Which one.
        run_id: RunId,
    },
    /// Somebody holds the lock of its state.
    #[error("the state of this workspace is locked")]
    StateLocked,
    /// Its state still names resources.
    #[error(
        "the state of this workspace still names resources, which deleting it would leave without an owner: \
         destroy them first, or delete with force"
    )]
    HasResources,
    /// Its state changed while it was being looked at.
    #[error("the state of this workspace changed meanwhile: try again")]
    StateMoved,
    /// There is nothing to unblock.
    #[error("the workspace is not blocked")]
    NotBlocked,
    /// Somebody holds its lock.
    #[error("the {0}")]
    Locked(Locked),
    /// There is nothing to unlock.
    #[error("the workspace is not locked")]
    NotLocked,
    /// A person has to decide about a state body first.
    #[error("a quarantined state waits for a decision: promote or discard it first")]
    StateQuarantined,
    /// Its runs.
    #[error(transparent)]
    Run(Box<RunError>),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The object store.
    #[error(transparent)]
    Blob(#[from] BlobError),
    /// A secret could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database.
    #[error(transparent)]
    Db(DbError),
}

impl From<RunError> for WorkspaceError {
    fn from(error: RunError) -> Self {
        match error {
            RunError::Db(error) => Self::Db(error),
            other => Self::Run(Box::new(other)),
        }
    }
}

/// The unique constraint on what makes a workspace itself.
const IDENTITY_CONSTRAINT: &str = "workspaces_identity";
/// Foreign keys, and the fields that they are about.
const LINKS: [(&str, &str); 4] = [
    ("workspaces_state_aws_account", "state_aws_account_id"),
    ("workspaces_azure_subscription", "azure_subscription_id"),
    ("workspaces_gcp_project", "gcp_project_id"),
    ("workspaces_cluster", "cluster_id"),
];

impl From<DbError> for WorkspaceError {
    fn from(error: DbError) -> Self {
        if error.is_duplicate_of(IDENTITY_CONSTRAINT) {
            return Self::Duplicate;
        }
        // The database alone knows, also of two at once: what is linked must be registered in the same unit.
        let link =
            |constraint: &str| LINKS.iter().find(|(name, _)| *name == constraint).map(|(_, field)| *field);
        match &error {
            DbError::Missing { constraint } => match link(constraint) {
                Some(field) => InvalidField::new(field, "is not registered in this business unit").into(),
                None => Self::Db(error),
            },
            _ => Self::Db(error),
        }
    }
}

impl From<StateStoreError> for WorkspaceError {
    fn from(error: StateStoreError) -> Self {
        match error {
            StateStoreError::Store(error) => error.into(),
            StateStoreError::Db(error) => error.into(),
        }
    }
}
