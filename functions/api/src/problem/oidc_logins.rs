//! Sign-in through the identity provider.

use axum::http::StatusCode;
use plumbline_core::oidc_logins::{OidcError, Refusal};

use super::Problem;

/// A provider that is away is back in a moment, or somebody is working on it.
const AWAY_SECONDS: u64 = 10;

impl From<OidcError> for Problem {
    fn from(error: OidcError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            OidcError::Off => {
                Self::new(StatusCode::NOT_FOUND, "oidc-off", "No identity provider is connected", detail)
            }
            OidcError::Misconfigured(_) => Self::new(
                StatusCode::FAILED_DEPENDENCY,
                "oidc-misconfigured",
                "The identity provider is not set up",
                detail,
            ),
            OidcError::Away => Self::new(
                StatusCode::SERVICE_UNAVAILABLE,
                "oidc-provider-away",
                "The identity provider does not answer",
                detail,
            )
            .retry_after(AWAY_SECONDS),
            OidcError::Refused(refusal) => of_refusal(refusal, detail),
            OidcError::Cli(_) => {
                Self::new(StatusCode::BAD_REQUEST, "oidc-cli-parameters", "A parameter is wrong", detail)
            }
            OidcError::CodeInvalid => Self::new(
                StatusCode::UNAUTHORIZED,
                "sign-in-code-invalid",
                "The sign-in code is not valid",
                detail,
            ),
            OidcError::Session(error) => error.into(),
            OidcError::Db(error) => error.into(),
            OidcError::Seal(_) | OidcError::Key(_) => Self::internal(&error),
        }
    }
}

fn of_refusal(refusal: Refusal, detail: String) -> Problem {
    let (status, slug, title) = match refusal {
        Refusal::NotBegun | Refusal::Expired | Refusal::Replayed | Refusal::ProviderChanged => {
            (StatusCode::UNAUTHORIZED, "oidc-start-again", "The sign-in has to be started again")
        }
        Refusal::Answer(_) => {
            (StatusCode::UNAUTHORIZED, "oidc-refused", "The identity provider's answer was not accepted")
        }
        Refusal::Denied => (StatusCode::FORBIDDEN, "oidc-denied", "The identity provider did not let you in"),
        Refusal::EmailMissing | Refusal::EmailUnverified => {
            (StatusCode::FORBIDDEN, "oidc-email-unverified", "Your e-mail address is not verified")
        }
        Refusal::AccountLinked => {
            (StatusCode::FORBIDDEN, "oidc-account-linked", "The account belongs to another identity")
        }
        Refusal::AccountDisabled => {
            (StatusCode::FORBIDDEN, "oidc-account-disabled", "The account is disabled")
        }
    };
    // What was wrong with a token helps its forger; the audit log has it.
    let detail = match refusal {
        Refusal::Answer(_) => "The reason is in the audit log.".to_owned(),
        _ => detail,
    };
    Problem::new(status, slug, title, detail)
}

/// Errors are written as clauses; a detail is a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
