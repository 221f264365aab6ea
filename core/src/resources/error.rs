//! What can go wrong with the index.

use super::BadSearch;
use crate::access::AccessError;
use crate::db::DbError;

/// What a search can say went wrong.
#[derive(Debug, thiserror::Error)]
pub enum ResourceError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The search is no search.
    #[error(transparent)]
    BadSearch(#[from] BadSearch),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}
