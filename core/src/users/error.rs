//! What the use cases of people can say went wrong.

use crate::access::AccessError;

/// Why something about a user could not be done.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// There are users already, so nobody is made the first one.
    #[error("there are users already")]
    NotFirst,
    /// The e-mail cannot be one.
    #[error("the e-mail must be 3 to 255 characters long and contain an @")]
    Email,
    /// The password is too short, or longer than bcrypt reads.
    #[error("the password must be at least 12 characters and at most 72 bytes long, without NUL")]
    Password,
    /// Hashing failed.
    #[cfg(feature = "store")]
    #[error("the password could not be hashed")]
    Hash(#[source] bcrypt::BcryptError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
