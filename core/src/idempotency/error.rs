//! What can go wrong with an idempotency key.

/// Why a request with an idempotency key is not executed.
#[derive(Debug, thiserror::Error)]
pub enum IdempotencyError {
    /// The key was used for another request.
    #[error("this Idempotency-Key was used for another request; use a new key for a new request")]
    OtherRequest,
    /// The first request with this key is still under way.
    #[error("the first request with this Idempotency-Key is still under way")]
    InProgress,
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
