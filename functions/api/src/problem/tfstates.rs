//! Problems of the state.

use axum::http::StatusCode;
use plumbline_core::tfstates::StateError;

use super::Problem;
use crate::body::invalid_field;

impl From<StateError> for Problem {
    fn from(error: StateError) -> Self {
        let detail = error.to_string();
        let conflict = |slug, title| Self::new(StatusCode::CONFLICT, slug, title, detail.clone());
        let forbidden = || Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail.clone());
        match error {
            StateError::NotFound(what) => Self::not_found(what),
            StateError::Access(error) => error.into(),
            StateError::RunsOnly | StateError::PlanMayNotWrite | StateError::NotForExecutors => forbidden(),
            StateError::Locked { holder } => {
                Self::new(StatusCode::LOCKED, "state-locked", "The state is locked", detail)
                    .with("holder", holder)
            }
            StateError::NotTheHolder(_) => conflict("not-the-holder", "Another lock is held"),
            StateError::ExecutorStopped => conflict("executor-stopped", "Executor counts as stopped"),
            StateError::HolderMayLive => conflict("holder-may-live", "The lock's holder may still act"),
            StateError::NotLocked => conflict("state-not-locked", "The state is not locked"),
            StateError::WorkspaceLocked(locked) => Self::workspace_locked(&locked, detail),
            StateError::UploadUnresolved | StateError::UploadMissing | StateError::UploadClosed => {
                conflict("upload-unresolved", "An upload is not finished")
            }
            StateError::BadState(_) | StateError::BadLock(_) | StateError::DigestMismatch => {
                Self::new(StatusCode::BAD_REQUEST, "bad-state", "The body is not what it must be", detail)
            }
            StateError::BadConsumers(reason) => invalid_field("workspace_ids", reason),
            StateError::NotShared => {
                Self::new(StatusCode::FORBIDDEN, "state-not-shared", "The outputs are not shared", detail)
            }
            StateError::Invalid(reason) => invalid_field("body", reason),
            StateError::TooLarge { max_bytes } | StateError::OutputsTooLong { max_bytes } => {
                Self::new(StatusCode::PAYLOAD_TOO_LARGE, "state-too-large", "The state is too large", detail)
                    .with("max_bytes", max_bytes as u64)
            }
            StateError::Refused(_) => conflict("state-refused", "The state was refused"),
            StateError::Quarantined { id, .. } => conflict("state-quarantined", "The state is in quarantine")
                .with("quarantined_state_id", id.to_string()),
            StateError::AlreadyResolved(_) | StateError::AlreadyCurrent => {
                conflict("already-done", "There is nothing to do")
            }
            StateError::Opaque => conflict("state-opaque", "The state is encrypted by its client"),
            StateError::Unreadable(_) => conflict("state-unreadable", "The state's content cannot be told"),
            StateError::HeadMoved => conflict("head-moved", "The state has changed meanwhile"),
            StateError::NeverPurged => conflict("never-purged", "States are never purged"),
            StateError::BodyMissing(_) => Self::new(
                StatusCode::FAILED_DEPENDENCY,
                "store-missing",
                "The object store lost a state",
                detail,
            ),
            StateError::Store(error) => error.into(),
            StateError::Db(error) => error.into(),
        }
    }
}
