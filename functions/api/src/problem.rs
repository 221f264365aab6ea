//! Errors on the wire: RFC 9457 problem documents. The only place that turns the features' errors into HTTP.
//!
//! Every slug has a page `docs/problems/<slug>.md`.

mod cloud_accounts;
mod config;
mod git_credentials;
mod identity;
mod issuer_keys;
mod oidc_logins;
mod resources;
mod tasks;
mod tfstates;
mod variables;
mod workspaces;

use axum::http::{HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use serde::Serialize;
use serde_json::{Map, Value};

/// A problem document.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Problem {
    /// `urn:plumbline:problem:<slug>`.
    #[serde(rename = "type")]
    pub kind: String,
    /// The slug as a short sentence.
    pub title: String,
    /// The HTTP status once more.
    pub status: u16,
    /// What to do about this one, for a tired person.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub detail: String,
    /// Facts for programs, by problem.
    #[serde(flatten)]
    #[schema(value_type = Object)]
    pub facts: Map<String, Value>,
    /// Seconds until trying again makes sense; sent as `Retry-After`.
    #[serde(skip)]
    pub retry_after_seconds: Option<u64>,
}

impl Problem {
    /// A problem of the given kind.
    pub fn new(
        status: StatusCode,
        slug: &'static str,
        title: &'static str,
        detail: impl Into<String>,
    ) -> Self {
        Self {
            kind: format!("urn:plumbline:problem:{slug}"),
            title: title.into(),
            status: status.as_u16(),
            detail: detail.into(),
            facts: Map::new(),
            retry_after_seconds: None,
        }
    }

    /// The same problem with one more fact.
    #[must_use]
    pub fn with(mut self, name: &str, value: impl Into<Value>) -> Self {
        self.facts.insert(name.into(), value.into());
        self
    }

    /// The same problem with a wait after which trying again makes sense.
    #[must_use]
    pub fn retry_after(mut self, seconds: u64) -> Self {
        self.retry_after_seconds = Some(seconds);
        self
    }

    /// Another tenant's row, or none: the caller cannot tell which.
    pub fn not_found(what: &str) -> Self {
        Self::new(StatusCode::NOT_FOUND, "not-found", "Not found", format!("There is no such {what} here."))
    }

    /// A defect of ours. The cause is logged here, once; the caller gets no detail.
    pub fn internal(error: &(dyn std::error::Error + 'static)) -> Self {
        let mut causes = error.to_string();
        let mut next = error.source();
        while let Some(cause) = next {
            causes.push_str(": ");
            causes.push_str(&cause.to_string());
            next = cause.source();
        }
        tracing::error!(error = causes, "request failed by a defect");
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error", "")
    }

    /// A route that nobody may call, because what it needs is not said. A defect of ours, logged where it is found.
    pub(crate) fn closed() -> Self {
        Self::new(StatusCode::INTERNAL_SERVER_ERROR, "internal", "Internal error", "")
    }

    /// Passes by itself.
    pub fn unavailable(detail: impl Into<String>) -> Self {
        let mut problem =
            Self::new(StatusCode::SERVICE_UNAVAILABLE, "unavailable", "Temporarily unavailable", detail);
        problem.retry_after_seconds = Some(2);
        problem
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        let status = StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
        let body = serde_json::to_vec(&self).unwrap_or_default();
        let mut response =
            (status, [(header::CONTENT_TYPE, "application/problem+json")], body).into_response();
        if let Some(seconds) = self.retry_after_seconds {
            response.headers_mut().insert(header::RETRY_AFTER, seconds.into());
        }
        if status == StatusCode::UNAUTHORIZED {
            response.headers_mut().insert(header::WWW_AUTHENTICATE, HeaderValue::from_static("Bearer"));
        }
        response
    }
}

impl From<plumbline_core::access::AccessError> for Problem {
    fn from(error: plumbline_core::access::AccessError) -> Self {
        use plumbline_core::access::AccessError;
        match error {
            AccessError::UnitRequired => Self::new(
                StatusCode::BAD_REQUEST,
                "unit-required",
                "One business unit is needed",
                error.to_string(),
            ),
            AccessError::Forbidden { .. }
            | AccessError::KeyForbidden { .. }
            | AccessError::KeysForbidden
            | AccessError::KeyConfined
            | AccessError::PersonRequired => {
                Self::new(StatusCode::FORBIDDEN, "forbidden", "Not allowed", error.to_string())
            }
            AccessError::UnitArchived => Self::new(
                StatusCode::CONFLICT,
                "unit-archived",
                "The business unit is archived",
                error.to_string(),
            ),
        }
    }
}

impl From<plumbline_core::db::DbError> for Problem {
    fn from(error: plumbline_core::db::DbError) -> Self {
        use plumbline_core::db::DbError;
        if error.is_transient() {
            tracing::warn!(error = %error, "the database is not available");
            return Self::unavailable(
                "The database cannot be reached at the moment; the same request may work in a moment.",
            );
        }
        if let DbError::Missing { constraint } = &error {
            // Each feature looks first; only what was removed since then ends here.
            tracing::warn!(constraint, "something was removed while a request used it");
            return Self::new(
                StatusCode::CONFLICT,
                "removed-meanwhile",
                "Something was removed meanwhile",
                "Something that this request refers to was removed while it was under way. Look again, then try again.",
            );
        }
        Self::internal(&error)
    }
}

impl From<plumbline_core::runs::RunError> for Problem {
    fn from(error: plumbline_core::runs::RunError) -> Self {
        use plumbline_core::cloud_accounts::CredentialsError;
        use plumbline_core::runs::RunError;
        let sentence = error.to_string();
        let conflict = |slug, title, detail| Self::new(StatusCode::CONFLICT, slug, title, detail);
        match error {
            RunError::NotFound(what) => Self::not_found(what),
            RunError::IllegalMove { from, to } => {
                conflict("illegal-transition", "The run's status does not allow this", sentence)
                    .with("from", from.as_str())
                    .with("to", to.as_str())
            }
            RunError::StalePlan { .. } => conflict("stale-plan", "The plan is stale", sentence),
            RunError::DigestMismatch { actual } => {
                conflict("digest-mismatch", "The plan is not the one you saw", sentence)
                    .with("approval_digest", actual.to_string())
            }
            RunError::PlanExpired => conflict("plan-expired", "The plan has expired", sentence),
            RunError::WorkspaceBlocked { .. } => {
                conflict("workspace-blocked", "The workspace is blocked", sentence)
            }
            RunError::WorkspaceLocked(locked) => Self::workspace_locked(&locked, sentence),
            RunError::TooManyWaiting { .. } => {
                conflict("too-many-waiting", "Too many runs wait for this workspace", sentence)
            }
            RunError::Invalid { field, .. } => {
                Self::new(StatusCode::UNPROCESSABLE_ENTITY, "invalid-field", "A value is wrong", sentence)
                    .with("field", field)
            }
            RunError::Artifact { .. } => conflict("artifact-refused", "The artifact was refused", sentence),
            RunError::LogGap { expected } => {
                conflict("log-gap", "The log chunk does not follow", sentence).with("next_offset", expected)
            }
            RunError::LogNotStored { bytes } => {
                conflict("log-not-stored", "The log is too long for one answer", sentence)
                    .with("bytes", bytes)
            }
            RunError::Step { .. } => conflict("step-refused", "The step report was refused", sentence),
            RunError::LeaseLost => conflict("lease-lost", "The lease was lost", sentence),
            RunError::Access(error) => error.into(),
            RunError::Blob(error) => error.into(),
            RunError::State(error) => error.into(),
            RunError::Variables(error) => error.into(),
            RunError::Db(error) => error.into(),
            RunError::Seal(error) => Self::internal(&error),
            RunError::Credentials(CredentialsError::Db(error)) => error.into(),
            RunError::Credentials(error) => Self::internal(&error),
        }
    }
}

impl From<plumbline_core::ports::BlobError> for Problem {
    fn from(error: plumbline_core::ports::BlobError) -> Self {
        use plumbline_core::ports::BlobError;
        match &error {
            BlobError::StoreMissing { name, reason } => Self::new(
                StatusCode::FAILED_DEPENDENCY,
                "store-missing",
                "The object store is missing",
                format!(
                    "The bucket or directory {name} is not there ({reason}). Nothing was lost; restore it."
                ),
            ),
            BlobError::Unusable { name, reason } => Self::new(
                StatusCode::FAILED_DEPENDENCY,
                "state-store-unusable",
                "The store of this state cannot be used",
                format!(
                    "The state lies in {name}, which cannot be used: {reason}. Nothing was lost; once this is mended \
                     the same request works."
                ),
            )
            .with("store", name.as_str()),
            BlobError::Unavailable(_) => {
                tracing::warn!(error = %error, "the object store is not available");
                Self::unavailable("The object store cannot be reached at the moment.")
            }
            BlobError::NotFound(_) | BlobError::Conflict(_) | BlobError::Refused(_) => Self::internal(&error),
        }
    }
}
