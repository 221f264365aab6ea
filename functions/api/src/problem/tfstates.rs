//! Problems of the state. `tfstate` and `callback` answer with them too.

use axum::http::StatusCode;
use plumbline_core::tfstates::{QuarantineReason, RefuseReason, StateError};
use serde_json::Value;

use super::Problem;
use super::identity::sentence;

impl From<StateError> for Problem {
    fn from(error: StateError) -> Self {
        let detail = sentence(&error.to_string());
        let problem = |status, slug, title| Self::new(status, slug, title, detail.as_str());
        let conflict = |slug, title| problem(StatusCode::CONFLICT, slug, title);
        match error {
            StateError::NotFound(what) => Self::not_found(what),
            StateError::Access(error) => error.into(),
            StateError::RunsOnly => problem(StatusCode::FORBIDDEN, "runs-only", "Only runs write this state"),
            StateError::PlanMayNotWrite | StateError::NotForExecutors => {
                problem(StatusCode::FORBIDDEN, "forbidden", "Not allowed")
            }
            StateError::Locked { holder } => {
                let holder = serde_json::from_str::<Value>(&holder).unwrap_or(Value::Null);
                problem(StatusCode::LOCKED, "state-locked", "The state is locked").with("holder", holder)
            }
            StateError::NotTheHolder(_) => conflict("lock-not-held", "This lock is not held"),
            StateError::HolderMayLive => {
                conflict("lock-holder-alive", "The lock's holder may still be working")
            }
            StateError::NotLocked => conflict("not-locked", "The state is not locked"),
            StateError::UploadUnresolved => conflict("upload-unresolved", "An upload is not committed yet"),
            StateError::UploadMissing => conflict("upload-missing", "The uploaded bytes are not there"),
            StateError::UploadClosed => conflict("upload-closed", "The upload was given up"),
            StateError::BadState(error) if error.is_malformed() => {
                problem(StatusCode::BAD_REQUEST, "not-a-state", "The body is not a Terraform state")
            }
            StateError::BadState(_) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "not-a-state", "The body is not a Terraform state")
            }
            StateError::BadLock(_) => {
                problem(StatusCode::BAD_REQUEST, "not-a-lock-info", "The body is not a lock info")
            }
            StateError::DigestMismatch => {
                problem(StatusCode::BAD_REQUEST, "content-md5-mismatch", "The body was damaged")
            }
            StateError::Invalid(_) => {
                problem(StatusCode::UNPROCESSABLE_ENTITY, "invalid-field", "A value is wrong")
            }
            StateError::TooLarge { max_bytes } => problem(
                StatusCode::PAYLOAD_TOO_LARGE,
                "state-too-large",
                "The state is too large for one request",
            )
            .with("max_bytes", max_bytes),
            StateError::Refused(reason) => {
                conflict("state-refused", "The state was not accepted").with("reason", word(reason))
            }
            StateError::Quarantined { id, reason } => {
                quarantined(detail, reason).with("quarantined_id", id.to_string())
            }
            StateError::AlreadyResolved(_) => conflict("already-resolved", "This was decided already"),
            StateError::AlreadyCurrent => conflict("already-current", "This is the current version"),
            StateError::Opaque => conflict("state-encrypted", "The state is encrypted by its client"),
            StateError::HeadMoved => conflict("state-moved", "The state has changed"),
            StateError::NeverPurged => {
                problem(StatusCode::METHOD_NOT_ALLOWED, "state-never-purged", "States are never purged")
            }
            StateError::BodyMissing(ref key) => {
                tracing::error!(blob.key = key, "the object store has lost the body of a state");
                problem(StatusCode::FAILED_DEPENDENCY, "state-body-missing", "The state's body is missing")
            }
            StateError::Store(error) => error.into(),
            StateError::Db(error) => error.into(),
        }
    }
}

fn quarantined(detail: String, reason: QuarantineReason) -> Problem {
    Problem::new(StatusCode::CONFLICT, "state-quarantined", "The state was put into quarantine", detail)
        .with("reason", reason.as_str())
}

fn word(reason: RefuseReason) -> &'static str {
    match reason {
        RefuseReason::Locked => "locked",
        RefuseReason::LowerSerial => "lower_serial",
        RefuseReason::OtherLineage => "other_lineage",
    }
}
