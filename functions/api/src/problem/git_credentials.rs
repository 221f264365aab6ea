//! What can go wrong with a Git credential, on the wire.

use axum::http::StatusCode;
use plumbline_core::git_credentials::GitCredentialError;

use super::Problem;
use crate::etag;

impl From<GitCredentialError> for Problem {
    fn from(error: GitCredentialError) -> Self {
        let sentence = error.to_string();
        let conflict = |slug, title| Self::new(StatusCode::CONFLICT, slug, title, sentence.clone());
        match error {
            GitCredentialError::NotFound => Self::not_found("Git credential"),
            GitCredentialError::Invalid(error) => error.into(),
            GitCredentialError::Duplicate(_) => {
                conflict("git-credential-exists", "The Git credential exists")
            }
            GitCredentialError::VersionMismatch { actual } => {
                etag::changed().with("current_etag", etag::of_version(actual))
            }
            GitCredentialError::InUse { workspaces } => {
                conflict("git-credential-in-use", "The Git credential is used").with("workspaces", workspaces)
            }
            GitCredentialError::Access(error) => error.into(),
            GitCredentialError::Db(error) => error.into(),
            GitCredentialError::Seal(error) => Self::internal(&error),
        }
    }
}
