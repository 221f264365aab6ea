//! What the use cases of people can say went wrong.

use super::rules::PasswordFault;
use crate::access::AccessError;
use crate::ids::BusinessUnitId;

/// Why something about a user could not be done.
#[derive(Debug, thiserror::Error)]
pub enum UserError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The caller may, but not to this person.
    #[error("{0}")]
    OutOfReach(&'static str),
    /// There is none whom the caller sees.
    #[error("there is no such user")]
    NotFound,
    /// There are users already, so nobody is made the first one.
    #[error("there are users already")]
    NotFirst,
    /// Somebody has the e-mail.
    #[error("somebody with this e-mail exists; a superadmin can add them to your business unit")]
    Duplicate,
    /// Nobody could administer everything any more.
    #[error("this is the last superadmin who can sign in; make another one first")]
    LastSuperadmin,
    /// A disabled person does not get in.
    #[error("this account is disabled; enable it first")]
    Disabled,
    /// A unit that a membership names is not there, or not for the caller to see.
    #[error("there is no business unit {0}")]
    UnitNotFound(BusinessUnitId),
    /// Nobody joins an archived unit.
    #[error("the business unit {0} is archived: nobody can be added to it")]
    UnitArchived(BusinessUnitId),
    /// A field has a value that cannot be stored.
    #[error("{field}: {reason}")]
    Invalid {
        /// The field.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The e-mail cannot be one.
    #[error("the e-mail must be 3 to 255 characters long and contain an @")]
    Email,
    /// The password will not do.
    #[error("{field}: {}", .fault.reason())]
    Password {
        /// The field.
        field: &'static str,
        /// What is wrong with it.
        fault: PasswordFault,
    },
    /// The password that was to prove who is asking is wrong.
    #[error("the current password is wrong")]
    WrongPassword,
    /// The invitation was used, revoked, replaced, has expired, or never was.
    #[error("the invitation is not valid any more; ask for a new one")]
    InviteInvalid,
    /// About the caller's session.
    #[error(transparent)]
    Session(#[from] crate::sessions::SessionError),
    /// Hashing failed.
    #[cfg(feature = "store")]
    #[error("the password could not be hashed")]
    Hash(#[source] bcrypt::BcryptError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
