//! What can go wrong with the issuer.

use super::IssuerOff;
use crate::access::AccessError;
use crate::db::DbError;
use crate::ports::SignerError;
use crate::secrets::{KeyringError, SealError};

/// Why something with the issuer did not work.
#[derive(Debug, thiserror::Error)]
pub enum IssuerError {
    /// This installation has no issuer.
    #[error("this installation issues no tokens: {0}")]
    Off(#[from] IssuerOff),
    /// The next key cannot sign yet.
    #[error("the next key {0}")]
    NextNotReady(&'static str),
    /// The workspace has no account that trusts the issuer in this way.
    #[error("the run's workspace is linked to no such account that trusts tokens")]
    NoAccount,
    /// The attempt was cancelled, is over, or has not renewed its lease.
    #[error(
        "tokens are for attempts with a live lease, and this one was cancelled, is over or is not renewed"
    )]
    LeaseNotLive,
    /// The key cannot sign.
    #[error("the issuer's key cannot be used: {0}")]
    Unusable(&'static str),
    /// A KMS did not sign.
    #[error(transparent)]
    Signer(#[from] SignerError),
    /// The caller may not.
    #[error(transparent)]
    Access(#[from] AccessError),
    /// The private key cannot be sealed or opened.
    #[error(transparent)]
    Seal(#[from] SealError),
    /// This function has no key of the domain.
    #[error(transparent)]
    Key(#[from] KeyringError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}
