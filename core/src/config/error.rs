//! What the use cases of settings can say went wrong.

use crate::access::AccessError;

/// Why something about a setting could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ConfigError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The platform has no setting with this name.
    #[error("there is no such setting")]
    NotFound,
    /// A value cannot be, or a field is unknown. Never holds the value.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field of the request.
        field: String,
        /// What it must be.
        reason: String,
    },
    /// The edit was made to an older version.
    #[error("it was changed meanwhile: it is at version {actual}")]
    VersionMismatch {
        /// The version now.
        actual: i32,
    },
    /// A secret could not be sealed or opened.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Seal(#[from] crate::secrets::SealError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
