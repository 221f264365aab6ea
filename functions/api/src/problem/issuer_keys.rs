//! What can go wrong with our own issuer, on the wire.

use axum::http::StatusCode;
use plumbline_core::issuer_keys::IssuerError;
use plumbline_core::ports::SignerError;

use super::Problem;

impl From<IssuerError> for Problem {
    fn from(error: IssuerError) -> Self {
        let mut sentence = error.to_string();
        sentence[..1].make_ascii_uppercase();
        sentence.push('.');
        match error {
            IssuerError::Off(_) => {
                Self::new(StatusCode::NOT_FOUND, "issuer-off", "This installation issues no tokens", sentence)
            }
            IssuerError::NextNotReady(_) => Self::new(
                StatusCode::CONFLICT,
                "issuer-key-not-ready",
                "The next key cannot sign yet",
                sentence,
            ),
            IssuerError::NoAccount => Self::not_found("account that trusts tokens"),
            IssuerError::LeaseNotLive => {
                Self::new(StatusCode::CONFLICT, "lease-not-live", "The lease is not live", sentence)
            }
            IssuerError::Signer(SignerError::Unavailable(_)) => {
                tracing::warn!(error = %error, "the signing service is not available");
                Self::unavailable("The key that signs tokens cannot be asked for at the moment.")
            }
            IssuerError::Signer(SignerError::Refused(_)) => Self::internal(&error),
            IssuerError::Access(error) => error.into(),
            IssuerError::Unusable(_) | IssuerError::Seal(_) | IssuerError::Key(_) => Self::internal(&error),
            IssuerError::Db(error) => error.into(),
        }
    }
}
