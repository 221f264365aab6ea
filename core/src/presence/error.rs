//! What the use cases of presence can say went wrong.

use crate::access::AccessError;
use crate::business_units::BusinessUnitError;

/// Why somebody could not say that they are there.
#[derive(Debug, thiserror::Error)]
pub enum PresenceError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The unit that they look at is none that they see.
    #[error("there is no such business unit")]
    UnitNotFound,
    /// About the unit.
    #[error(transparent)]
    Unit(#[from] BusinessUnitError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
