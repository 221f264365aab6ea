//! What can go wrong with variables, on the wire.

use axum::http::StatusCode;
use plumbline_core::variables::VariableError;

use super::Problem;
use crate::body::invalid_field;
use crate::etag;

impl From<VariableError> for Problem {
    fn from(error: VariableError) -> Self {
        let sentence = error.to_string();
        let conflict = |slug, title, detail: String| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            VariableError::NotFound(what) => Self::not_found(what),
            VariableError::Invalid(error) => invalid_field(error.field, &error.reason),
            VariableError::TooMuch(reason) => invalid_field("variables", &reason),
            VariableError::Exists => conflict("variable-exists", "The variable exists", sentence),
            VariableError::SetExists => conflict("variable-set-exists", "The variable set exists", sentence),
            VariableError::VersionMismatch { actual } => {
                etag::changed().with("current_etag", etag::of_version(actual))
            }
            VariableError::Access(error) => error.into(),
            VariableError::Db(error) => error.into(),
            VariableError::Unreadable { .. } | VariableError::Lost(_) => {
                conflict("variables-unreadable", "Variables cannot be opened", sentence)
            }
            VariableError::Seal(_) => Self::internal(&error),
        }
    }
}
