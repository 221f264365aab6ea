//! What the use cases of business units can say went wrong.

use crate::access::AccessError;

/// Why something about a business unit could not be done.
#[derive(Debug, thiserror::Error)]
pub enum BusinessUnitError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There is none the caller can see.
    #[error("there is no such business unit")]
    NotFound,
    /// Another unit has the slug.
    #[error("a business unit with this slug exists")]
    Duplicate,
    /// Nothing of an archived unit is changed.
    #[error("the business unit is archived; unarchive it first")]
    Archived,
    /// People work on states of the unit.
    #[error(
        "people hold the lock of {locks} Terraform states of this business unit: archive it when they are done"
    )]
    InUse {
        /// How many locks.
        locks: i64,
    },
    /// A field has a value that cannot be stored.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
