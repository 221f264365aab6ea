//! Problems of users, presence, sessions, API keys, business units, the audit log and idempotency keys.

use axum::http::StatusCode;
use plumbline_core::api_keys::ApiKeyError;
use plumbline_core::audit::AuditError;
use plumbline_core::business_units::BusinessUnitError;
use plumbline_core::ci_logins::CiLoginError;
use plumbline_core::idempotency::IdempotencyError;
use plumbline_core::ports::SignerError;
use plumbline_core::presence::PresenceError;
use plumbline_core::rekeys::RekeyError;
use plumbline_core::sessions::SessionError;
use plumbline_core::users::UserError;

use super::Problem;
use crate::body::invalid_field;

impl From<SessionError> for Problem {
    fn from(error: SessionError) -> Self {
        let detail = error.to_string();
        let unauthenticated = |slug, title, detail| Self::new(StatusCode::UNAUTHORIZED, slug, title, detail);
        match error {
            SessionError::WrongCredentials => {
                unauthenticated("wrong-credentials", "Sign-in failed", sentence(&detail))
            }
            SessionError::PasswordsOff => Self::new(
                StatusCode::FORBIDDEN,
                "passwords-off",
                "People sign in through the identity provider",
                sentence(&detail),
            ),
            SessionError::Throttled { retry_after_seconds } => Self::new(
                StatusCode::TOO_MANY_REQUESTS,
                "too-many-attempts",
                "Too many attempts",
                sentence(&detail),
            )
            .retry_after(retry_after_seconds),
            SessionError::Unauthenticated(_) => {
                unauthenticated("unauthenticated", "Not signed in", sentence(&detail))
            }
            SessionError::RefreshRaced => {
                unauthenticated("refresh-raced", "The tokens were refreshed elsewhere", sentence(&detail))
            }
            SessionError::RefreshReused => {
                unauthenticated("refresh-reused", "The session was ended", sentence(&detail))
            }
            SessionError::UnitNotFound => Self::not_found("business unit"),
            SessionError::NotFound => Self::not_found("session"),
            SessionError::UnitArchived => Self::new(
                StatusCode::FORBIDDEN,
                "unit-archived",
                "The business unit is archived",
                sentence(&detail),
            ),
            SessionError::PasswordChangeRequired => Self::new(
                StatusCode::FORBIDDEN,
                "password-change-required",
                "The password must be changed",
                sentence(&detail),
            ),
            SessionError::NotAMember
            | SessionError::AllForbidden
            | SessionError::NoMemberships
            | SessionError::KeyForbidden
            | SessionError::KeyUnitArchived => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", sentence(&detail))
            }
            SessionError::OverlapTooLong { minutes_max } => invalid_field(
                "overlap_minutes",
                &format!("must be 0 to {minutes_max}, the life of an access token"),
            ),
            SessionError::Access(error) => error.into(),
            SessionError::Db(error) => error.into(),
            SessionError::Key(_) | SessionError::Sign(_) | SessionError::Seal(_) => Self::internal(&error),
        }
    }
}

impl From<ApiKeyError> for Problem {
    fn from(error: ApiKeyError) -> Self {
        let detail = sentence(&error.to_string());
        let conflict = |slug, title| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            ApiKeyError::Access(error) => error.into(),
            ApiKeyError::NotFound => Self::not_found("API key"),
            ApiKeyError::Invalid { field, reason } => invalid_field(field, reason),
            ApiKeyError::Dead(_) => conflict("api-key-dead", "The API key is dead"),
            ApiKeyError::Rotated => conflict("api-key-rotated", "The API key was rotated before"),
            ApiKeyError::Db(error) => error.into(),
        }
    }
}

impl From<CiLoginError> for Problem {
    fn from(error: CiLoginError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            CiLoginError::Access(error) => error.into(),
            CiLoginError::NotFound => Self::not_found("trust rule"),
            CiLoginError::Duplicate => {
                Self::new(StatusCode::CONFLICT, "ci-trust-rule-exists", "The name is taken", detail)
            }
            CiLoginError::Invalid { field, reason } => invalid_field(field, reason),
            CiLoginError::Refused(_) => {
                Self::new(StatusCode::UNAUTHORIZED, "ci-token-refused", "The token was not taken", detail)
            }
            CiLoginError::KeysPending { retry_after_seconds } => {
                Self::unavailable(detail).retry_after(retry_after_seconds)
            }
            CiLoginError::Session(error) => error.into(),
            CiLoginError::TooMany { .. } => {
                Self::new(StatusCode::CONFLICT, "too-many-trust-rules", "Too many trust rules", detail)
            }
            CiLoginError::Ambiguous => {
                Self::new(StatusCode::CONFLICT, "ci-token-ambiguous", "Several trust rules apply", detail)
            }
            CiLoginError::Db(error) => error.into(),
        }
    }
}

impl From<UserError> for Problem {
    fn from(error: UserError) -> Self {
        let detail = sentence(&error.to_string());
        let conflict = |slug, title, detail| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            UserError::Access(error) => error.into(),
            UserError::OutOfReach(_) => Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", detail),
            UserError::NotFound => Self::not_found("user"),
            UserError::UnitNotFound(_) => Self::not_found("business unit"),
            UserError::UnitArchived(unit) => {
                conflict("unit-archived", "The business unit is archived", detail)
                    .with("business_unit_id", unit.to_string())
            }
            UserError::NotFirst => conflict("not-first-user", "There are users already", String::new()),
            UserError::Duplicate => conflict("user-exists", "The e-mail is taken", detail),
            UserError::LastSuperadmin => conflict("last-superadmin", "This is the last superadmin", detail),
            UserError::Disabled => conflict("user-disabled", "The account is disabled", detail),
            UserError::Invalid { field, reason } => invalid_field(field, reason),
            UserError::Email => invalid_field("email", "must be an e-mail address"),
            UserError::Password { field, fault } => invalid_field(field, fault.reason()),
            UserError::WrongPassword => {
                Self::new(StatusCode::FORBIDDEN, "wrong-password", "The password is wrong", detail)
            }
            UserError::InviteInvalid => {
                Self::new(StatusCode::UNAUTHORIZED, "invite-invalid", "The invitation is not valid", detail)
            }
            UserError::Session(error) => error.into(),
            UserError::Db(error) => error.into(),
            UserError::Hash(_) => Self::internal(&error),
        }
    }
}

impl From<PresenceError> for Problem {
    fn from(error: PresenceError) -> Self {
        match error {
            PresenceError::Access(error) => error.into(),
            PresenceError::UnitNotFound => Self::not_found("business unit"),
            PresenceError::Unit(error) => error.into(),
            PresenceError::Db(error) => error.into(),
        }
    }
}

impl From<BusinessUnitError> for Problem {
    fn from(error: BusinessUnitError) -> Self {
        match error {
            BusinessUnitError::Access(error) => error.into(),
            BusinessUnitError::NotFound => Self::not_found("business unit"),
            BusinessUnitError::Duplicate => Self::new(
                StatusCode::CONFLICT,
                "business-unit-exists",
                "The slug is taken",
                "A business unit with this slug exists; choose another slug.",
            ),
            BusinessUnitError::Archived => Self::new(
                StatusCode::CONFLICT,
                "unit-archived",
                "The business unit is archived",
                sentence(&error.to_string()),
            ),
            BusinessUnitError::InUse { locks } => Self::new(
                StatusCode::CONFLICT,
                "unit-in-use",
                "People work in the business unit",
                sentence(&error.to_string()),
            )
            .with("locks", locks),
            BusinessUnitError::Invalid { field, reason } => invalid_field(field, reason),
            BusinessUnitError::Db(error) => error.into(),
        }
    }
}

impl From<AuditError> for Problem {
    fn from(error: AuditError) -> Self {
        match error {
            AuditError::Access(error) => error.into(),
            AuditError::Invalid { field, reason } => invalid_field(field, reason),
            AuditError::Db(error) => error.into(),
            AuditError::Blob(error) => error.into(),
            AuditError::Signer(SignerError::Unavailable(_)) => {
                tracing::warn!(error = %error, "the signing service is not available");
                Self::unavailable("The key that signs checkpoints cannot be asked for at the moment.")
            }
            AuditError::Signer(SignerError::Refused(_)) | AuditError::Key(_) => Self::internal(&error),
        }
    }
}

impl From<RekeyError> for Problem {
    fn from(error: RekeyError) -> Self {
        match error {
            RekeyError::Access(error) => error.into(),
            RekeyError::NotFound => Self::not_found("rekey"),
            RekeyError::Db(error) => error.into(),
            RekeyError::Seal(_) | RekeyError::Strangers(_) => Self::internal(&error),
        }
    }
}

impl From<IdempotencyError> for Problem {
    fn from(error: IdempotencyError) -> Self {
        let detail = sentence(&error.to_string());
        match error {
            IdempotencyError::OtherRequest => Self::new(
                StatusCode::UNPROCESSABLE_ENTITY,
                "idempotency-key-reused",
                "The Idempotency-Key belongs to another request",
                detail,
            ),
            IdempotencyError::InProgress => Self::new(
                StatusCode::CONFLICT,
                "idempotency-in-progress",
                "The first request is still under way",
                detail,
            )
            .retry_after(1),
            IdempotencyError::Db(error) => error.into(),
        }
    }
}

/// Errors are written as clauses; a detail is a sentence.
fn sentence(clause: &str) -> String {
    let mut letters = clause.chars();
    letters.next().map_or_else(String::new, |first| format!("{}{}.", first.to_uppercase(), letters.as_str()))
}
