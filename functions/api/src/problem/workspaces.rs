//! What can go wrong with a workspace, on the wire.

use axum::http::StatusCode;
use plumbline_core::workspaces::{InvalidField, Locked, WorkspaceError};

use super::Problem;
use crate::body::invalid_field;
use crate::etag;

impl From<InvalidField> for Problem {
    fn from(error: InvalidField) -> Self {
        invalid_field(error.field, &error.reason)
    }
}

impl Problem {
    /// A person keeps runs, and other people's Terraform, away.
    pub(super) fn workspace_locked(locked: &Locked, sentence: String) -> Self {
        Self::new(StatusCode::CONFLICT, "workspace-locked", "The workspace is locked", sentence)
            .with("locked_by", locked.who.clone())
            .with("reason", locked.reason.clone())
    }
}

impl From<WorkspaceError> for Problem {
    fn from(error: WorkspaceError) -> Self {
        let sentence = error.to_string();
        let conflict = |slug, title, detail: String| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            WorkspaceError::NotFound => Self::not_found("workspace"),
            WorkspaceError::Invalid(error) => error.into(),
            WorkspaceError::Duplicate => conflict("workspace-exists", "The workspace exists", sentence).with(
                "fields",
                ["aws_account_id", "region", "environment", "repo_url", "tf_working_dir"].as_slice(),
            ),
            WorkspaceError::VersionMismatch { actual } => {
                etag::changed().with("current_etag", etag::of_version(actual))
            }
            WorkspaceError::RunActive { run_id } => {
                conflict("run-active", "A run is under way", sentence).with("run_id", run_id.to_string())
            }
            WorkspaceError::StateLocked => conflict("state-locked", "The state is locked", sentence),
            WorkspaceError::HasResources => {
                conflict("workspace-has-resources", "The workspace has resources", sentence)
            }
            WorkspaceError::StateMoved => conflict("state-moved", "The state changed meanwhile", sentence),
            WorkspaceError::NotBlocked => conflict("workspace-not-blocked", "Nothing is blocked", sentence),
            WorkspaceError::Locked(locked) => Self::workspace_locked(&locked, sentence),
            WorkspaceError::NotLocked => conflict("workspace-not-locked", "Nothing is locked", sentence),
            WorkspaceError::Run(error) => (*error).into(),
            WorkspaceError::StateQuarantined => {
                conflict("state-quarantined", "A quarantined state waits", sentence)
            }
            WorkspaceError::Access(error) => error.into(),
            WorkspaceError::Blob(error) => error.into(),
            WorkspaceError::Db(error) => error.into(),
            WorkspaceError::Seal(error) => Self::internal(&error),
        }
    }
}
