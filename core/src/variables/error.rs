//! What the use cases of variables can say went wrong.

use super::{InvalidVariable, Origin};
use crate::access::AccessError;
use crate::db::DbError;
use crate::secrets::SealError;

/// Why something with variables did not work.
#[derive(Debug, thiserror::Error)]
pub enum VariableError {
    /// No such thing in this scope.
    #[error("no such {0}")]
    NotFound(&'static str),
    /// A value of the request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidVariable),
    /// The key is taken in the same place.
    #[error("there is a variable with this key in the same place: change that one")]
    Exists,
    /// The name is taken in the business unit.
    #[error("the business unit has a variable set with this name")]
    SetExists,
    /// The edit was made to an older version.
    #[error("it was edited meanwhile: it is at version {actual}")]
    VersionMismatch {
        /// The version now.
        actual: i32,
    },
    /// A run needs a value that cannot be opened.
    #[error("the value of the variable {key}, from {origin}, cannot be opened: set it anew ({cause})")]
    Unreadable {
        /// Which.
        key: String,
        /// Whose.
        origin: Origin,
        /// Why.
        cause: SealError,
    },
    /// What was sealed with a run is not there, or not what it was.
    #[error("the variables that were sealed with the run cannot be had back: {0}")]
    Lost(&'static str),
    /// All that a run would get is too much.
    #[error("{0}")]
    TooMuch(String),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// A value could not be sealed.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database.
    #[error(transparent)]
    Db(DbError),
}

impl VariableError {
    /// Whether trying again cannot help a run.
    pub fn is_permanent(&self) -> bool {
        match self {
            Self::Unreadable { cause, .. } => matches!(cause, SealError::Unreadable(_)),
            Self::Lost(_) | Self::TooMuch(_) => true,
            Self::NotFound(_)
            | Self::Invalid(_)
            | Self::Exists
            | Self::SetExists
            | Self::VersionMismatch { .. }
            | Self::Access(_)
            | Self::Seal(_)
            | Self::Db(_) => false,
        }
    }
}

const KEY_CONSTRAINT: &str = "variables_key";
const SET_NAME_CONSTRAINT: &str = "variable_sets_name";

impl From<DbError> for VariableError {
    fn from(error: DbError) -> Self {
        if error.is_duplicate_of(KEY_CONSTRAINT) {
            Self::Exists
        } else if error.is_duplicate_of(SET_NAME_CONSTRAINT) {
            Self::SetExists
        } else {
            Self::Db(error)
        }
    }
}
