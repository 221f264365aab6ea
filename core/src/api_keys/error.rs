//! What the use cases of API keys can say went wrong.

use crate::access::AccessError;

/// Why something about an API key could not be done.
#[derive(Debug, thiserror::Error)]
pub enum ApiKeyError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Not there, or of another unit.
    #[error("there is no such API key here")]
    NotFound,
    /// A field has a wrong value.
    #[error("{field} {reason}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// A dead key gets no new token.
    #[error("the API key {0}, so it gets no new token; make a new key")]
    Dead(&'static str),
    /// A key is rotated once.
    #[error("the API key was rotated before; rotate its successor")]
    Rotated,
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
