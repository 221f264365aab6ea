//! What can go wrong with a setting, on the wire.

use plumbline_core::config::ConfigError;

use super::Problem;
use crate::body::invalid_field;
use crate::etag;

impl From<ConfigError> for Problem {
    fn from(error: ConfigError) -> Self {
        match error {
            ConfigError::Access(error) => error.into(),
            ConfigError::NotFound => Self::not_found("setting"),
            ConfigError::Invalid { field, reason } => invalid_field(&field, &reason),
            ConfigError::VersionMismatch { actual } => {
                etag::changed().with("current_etag", etag::of_version(actual))
            }
            ConfigError::Db(error) => error.into(),
            ConfigError::Seal(_) => Self::internal(&error),
        }
    }
}
