//! What the use cases of Git credentials can say went wrong.

use crate::access::AccessError;
use crate::db::DbError;
use crate::secrets::SealError;
use crate::workspaces::InvalidField;

/// Why something with a Git credential did not work.
#[derive(Debug, thiserror::Error)]
pub enum GitCredentialError {
    /// No such credential in this scope.
    #[error("no such Git credential")]
    NotFound,
    /// A value of the request is wrong.
    #[error(transparent)]
    Invalid(#[from] InvalidField),
    /// Another one has the name, or is for the same place.
    #[error("another Git credential of this unit has {0}")]
    Duplicate(&'static str),
    /// The edit was made to an older version.
    #[error("the Git credential was edited meanwhile: it is at version {actual}")]
    VersionMismatch {
        /// The version now.
        actual: i32,
    },
    /// Workspaces need it.
    #[error(
        "{workspaces} workspaces use this Git credential: give them another one, or delete it with force"
    )]
    InUse {
        /// How many.
        workspaces: usize,
    },
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The secret could not be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// The database.
    #[error(transparent)]
    Db(DbError),
}

const NAME_CONSTRAINT: &str = "git_credentials_name";
const PLACE_CONSTRAINT: &str = "git_credentials_place";

impl From<DbError> for GitCredentialError {
    fn from(error: DbError) -> Self {
        if error.is_duplicate_of(NAME_CONSTRAINT) {
            Self::Duplicate("this name")
        } else if error.is_duplicate_of(PLACE_CONSTRAINT) {
            Self::Duplicate("this host and path prefix")
        } else {
            Self::Db(error)
        }
    }
}
