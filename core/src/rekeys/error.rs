//! What the use cases of rekeys can say went wrong.

use super::model::Stranger;
use crate::access::AccessError;

/// Why values could not be sealed again.
#[derive(Debug, thiserror::Error)]
pub enum RekeyError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Nobody has asked for one yet.
    #[error("no root key has been replaced here yet")]
    NotFound,
    /// A root key was taken away too early.
    #[error(
        "values are sealed under a root key that is not given: {}; give that root as a previous one and run `plumb admin \
         rekey`, or name it as lost",
        .0.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
    )]
    Strangers(Vec<Stranger>),
    /// This function lacks a key that the job needs.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Seal(#[from] crate::secrets::SealError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
