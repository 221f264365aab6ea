//! What can go wrong on the way to a place.

use crate::db::DbError;
use crate::ports::BlobError;

/// Why there is no store.
#[derive(Debug, thiserror::Error)]
pub enum StateStoreError {
    /// The place cannot be used, or cannot be reached.
    #[error(transparent)]
    Store(#[from] BlobError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}
