//! What the use cases of the audit log can say went wrong.

use crate::access::AccessError;

/// Why the audit log could not be read or sealed.
#[derive(Debug, thiserror::Error)]
pub enum AuditError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A cursor or filter that this log never gave out.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// No key to sign checkpoints with.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Key(#[from] crate::secrets::KeyringError),
    /// Who signs checkpoints did not.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Signer(#[from] crate::ports::SignerError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
    /// The object store.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Blob(#[from] crate::ports::BlobError),
}
