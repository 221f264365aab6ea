//! What the use cases of the audit log can say went wrong.

use crate::access::AccessError;

/// Why the audit log could not be read or sealed.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A cursor or filter that this log never gave out.
    #[error("{0}")]
    Invalid(&'static str),
    /// No key to sign checkpoints with.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Key(#[from] crate::secrets::KeyringError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
    /// The object store.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Blob(#[from] crate::ports::BlobError),
}
