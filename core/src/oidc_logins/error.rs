//! What can go wrong between a person, their provider and us.

/// Why a return from the provider leads to no session. The audit log keeps the word.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Refusal {
    /// The browser does not bring what it was given at the start, or brings another one's.
    #[error("this browser has no sign-in under way; start again")]
    NotBegun,
    /// It took too long.
    #[error("the sign-in took too long; start again")]
    Expired,
    /// The same return came before.
    #[error("this sign-in has been used already; start again")]
    Replayed,
    /// The installation was connected to another provider meanwhile.
    #[error("the identity provider was changed meanwhile; start again")]
    ProviderChanged,
    /// The provider says that nobody signed in.
    #[error("the identity provider did not let you in")]
    Denied,
    /// What the provider says is not genuine, not for us, or not for this sign-in.
    #[error("the identity provider's answer was not accepted: {0}")]
    Answer(&'static str),
    /// There is nobody to make without one.
    #[error("the identity provider names no e-mail address of yours")]
    EmailMissing,
    /// Whoever writes an address into a form does not own it.
    #[error("the identity provider does not say that your e-mail address is verified")]
    EmailUnverified,
    /// The e-mail belongs to somebody else at the same provider.
    #[error("an account with your e-mail address belongs to another identity at the provider")]
    AccountLinked,
    /// They may not sign in.
    #[error("this account is disabled")]
    AccountDisabled,
}

impl Refusal {
    /// The word in the audit log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::NotBegun => "not_begun",
            Self::Expired => "expired",
            Self::Replayed => "replayed",
            Self::ProviderChanged => "provider_changed",
            Self::Denied => "denied",
            Self::Answer(why) => why,
            Self::EmailMissing => "email_missing",
            Self::EmailUnverified => "email_unverified",
            Self::AccountLinked => "account_linked",
            Self::AccountDisabled => "account_disabled",
        }
    }
}

/// Why signing in through the provider does not work.
#[derive(Debug, thiserror::Error)]
pub enum OidcError {
    /// Nobody signs in that way here.
    #[error("this installation signs people in with e-mail and password")]
    Off,
    /// Settings are missing, or the provider is not what they say.
    #[error("sign-in through the identity provider is not set up: {0}")]
    Misconfigured(String),
    /// Passes by itself.
    #[error("the identity provider does not answer at the moment")]
    Away,
    /// This person, this time.
    #[error(transparent)]
    Refused(#[from] Refusal),
    /// What a command line says of itself.
    #[error(transparent)]
    Cli(#[from] super::CliError),
    /// A code is not good, or no longer.
    #[error("the sign-in code was used, has expired, or belongs to another program; sign in again")]
    CodeInvalid,
    /// About sessions and throttling.
    #[error(transparent)]
    Session(#[from] crate::sessions::SessionError),
    /// The client's secret cannot be opened.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Seal(#[from] crate::secrets::SealError),
    /// No key.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Key(#[from] crate::secrets::KeyringError),
    /// The database.
    #[cfg(feature = "store")]
    #[error(transparent)]
    Db(#[from] crate::db::DbError),
}
