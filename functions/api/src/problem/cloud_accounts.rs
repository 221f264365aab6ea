//! What can go wrong with a cloud account, on the wire.

use axum::http::StatusCode;
use plumbline_core::cloud_accounts::CloudAccountError;

use super::Problem;
use crate::etag;

impl From<CloudAccountError> for Problem {
    fn from(error: CloudAccountError) -> Self {
        let sentence = error.to_string();
        let conflict = |slug, title, detail: String| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            CloudAccountError::NotFound(what) => Self::not_found(what),
            CloudAccountError::Invalid(error) => error.into(),
            CloudAccountError::Duplicate { field } => {
                conflict("cloud-account-exists", "It is registered already", sentence).with("field", field)
            }
            CloudAccountError::VersionMismatch { actual } => {
                etag::changed().with("current_etag", etag::of_version(actual))
            }
            CloudAccountError::InUse(used) => {
                let names = [used.workspaces.as_slice(), &used.clusters].concat().join(", ");
                let detail = if names.is_empty() {
                    let names = used.states.join(", ");
                    format!("States of {names} lie in its store: without it nobody could read them.")
                } else {
                    format!("It is in use by {names}: let them use another one first.")
                };
                conflict("cloud-account-in-use", "It is in use", detail)
                    .with("workspaces", used.workspaces)
                    .with("clusters", used.clusters)
                    .with("states", used.states)
            }
            CloudAccountError::Access(error) => error.into(),
            CloudAccountError::Seal(error) => Self::internal(&error),
            CloudAccountError::Db(error) => error.into(),
        }
    }
}
