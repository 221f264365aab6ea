//! What the sign-in of CI systems can say went wrong.

use crate::access::AccessError;

/// Why a CI system gets no key, or a rule cannot be.
#[derive(Debug, thiserror::Error)]
pub enum CiLoginError {
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// Not there, or of another unit.
    #[error("there is no such trust rule here")]
    NotFound,
    /// A rule of the unit has this name.
    #[error("a trust rule of this business unit has this name")]
    Duplicate,
    /// A field has a wrong value.
    #[error("{field} {reason}")]
    Invalid {
        /// Which one.
        field: &'static str,
        /// What it must be.
        reason: &'static str,
    },
    /// The token is not believed, or nobody trusts it.
    #[error("the CI system's token was not taken: {0}")]
    Refused(&'static str),
    /// About throttling.
    #[error(transparent)]
    Session(#[from] crate::sessions::SessionError),
    /// The unit has as many rules as it may have.
    #[error("a business unit has at most {max} trust rules; remove one that is no longer needed")]
    TooMany {
        /// How many it may have.
        max: i64,
    },
    /// The issuer's keys are on their way.
    #[error("the keys of the token's issuer are being fetched; send the same request again")]
    KeysPending {
        /// When they are probably there.
        retry_after_seconds: u64,
    },
    /// More than one rule takes the token.
    #[error("several trust rules take this token; name one as trust_rule_id")]
    Ambiguous,
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
