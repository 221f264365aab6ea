//! What the use cases of sessions can say went wrong.

/// Why somebody is not who they say, or may not act where they want to.
#[derive(Debug, thiserror::Error)]
pub enum SessionError {
    /// E-mail and password do not belong together. Never says which of them is wrong.
    #[error("e-mail or password is wrong")]
    WrongCredentials,
    /// The password is right, and people sign in through the identity provider.
    #[error(
        "people sign in through the identity provider here; a password is for superadmins in an emergency"
    )]
    PasswordsOff,
    /// Too many attempts.
    #[error("too many sign-in attempts; try again in {retry_after_seconds} seconds")]
    Throttled {
        /// When the current minute is over.
        retry_after_seconds: u64,
    },
    /// The token is not ours, has expired, or was ended.
    #[error("{0}")]
    Unauthenticated(&'static str),
    /// The refresh token was used a moment ago by somebody else who holds it, most likely the same program.
    #[error(
        "the refresh token was used by another request at the same time; use the tokens which that one got"
    )]
    RefreshRaced,
    /// An old refresh token was used: the session has been ended.
    #[error("the refresh token had been used before, so the session was ended; sign in again")]
    RefreshReused,
    /// No business unit has the slug in the header.
    #[error("no business unit has the slug that X-Business-Unit names")]
    UnitNotFound,
    /// The caller may not act in the unit, or there is none: they cannot tell which.
    #[error("you are not a member of the business unit that X-Business-Unit names")]
    NotAMember,
    /// Only superadmins act in all units at once.
    #[error("only superadmins may act in all business units at once; name one in X-Business-Unit")]
    AllForbidden,
    /// The caller is a member of the unit, and it is archived.
    #[error("the business unit is archived; ask a superadmin if you still need it")]
    UnitArchived,
    /// The caller signed in with a password that is not theirs to keep.
    #[error("the password must be changed first; until then nothing else can be done with this session")]
    PasswordChangeRequired,
    /// The caller has no such session.
    #[error("there is no such session")]
    NotFound,
    /// The caller is a program, and this is for people.
    #[error("no API key can do this: sign in as a person")]
    KeyForbidden,
    /// The caller belongs to no unit.
    #[error("you are not a member of any business unit; ask a superadmin to add you to one")]
    NoMemberships,
    /// The unit of an API key is archived.
    #[error("the business unit of this API key is archived")]
    KeyUnitArchived,
    /// Tokens of a replaced secret would be accepted for longer than any of them lives.
    #[error("overlap_minutes: must be 0 to {minutes_max}, the life of an access token")]
    OverlapTooLong {
        /// The longest.
        minutes_max: u64,
    },
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] crate::access::AccessError),
    /// The secret that tokens are signed with could not be sealed or opened.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Seal(#[from] crate::secrets::SealError),
    /// No key to sign or check tokens with.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Key(#[from] crate::secrets::KeyringError),
    /// A token could not be made.
    #[cfg(feature = "store")]
    #[error("a token could not be signed")]
    Sign(#[source] jsonwebtoken::errors::Error),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
