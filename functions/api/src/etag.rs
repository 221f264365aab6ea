//! Validators: `ETag` with `If-None-Match` where people poll, `If-Match` where they edit.
//!
//! Something with a version has the strong tag `"v<version>"`; anything else has a weak tag made of its content.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::digest::Sha256Digest;
use serde::Serialize;

use crate::problem::Problem;

/// The tag of a version.
pub fn of_version(version: i32) -> String {
    format!("\"v{version}\"")
}

/// The body with its tag, or 304 if the caller has it. Without a version the tag is made of the body.
pub fn respond<T: Serialize>(
    headers: &HeaderMap,
    body: &T,
    version: Option<i32>,
) -> Result<Response, Problem> {
    let bytes = serde_json::to_vec(body).map_err(|error| Problem::internal(&error))?;
    let tag = match version {
        Some(version) => of_version(version),
        None => format!("W/\"{}\"", &Sha256Digest::of(&bytes).to_string()[..32]),
    };
    let value = HeaderValue::from_str(&tag).expect("digits and hex are visible ASCII");
    let response = if has(headers, header::IF_NONE_MATCH, &tag) {
        StatusCode::NOT_MODIFIED.into_response()
    } else {
        ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
    };
    Ok(([(header::ETAG, value)], response).into_response())
}

/// Whether a header lists the tag, or anything (`*`). Compared weakly: `W/` does not count.
fn has(headers: &HeaderMap, name: HeaderName, tag: &str) -> bool {
    let strong = |tag: &str| tag.trim().trim_start_matches("W/").to_owned();
    headers
        .get_all(name)
        .iter()
        .filter_map(|value| value.to_str().ok())
        .flat_map(|value| value.split(','))
        .any(|listed| listed.trim() == "*" || strong(listed) == strong(tag))
}

/// The version that an edit was made against. Without `If-Match` an edit is refused: it could undo another's.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct IfMatch {
    /// `None` is `*`: whatever it is now.
    pub version: Option<i32>,
}

impl FromRequestParts<Deps> for IfMatch {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _deps: &Deps) -> Result<Self, Problem> {
        let Some(value) = parts.headers.get(header::IF_MATCH) else {
            return Err(Problem::new(
                StatusCode::PRECONDITION_REQUIRED,
                "precondition-required",
                "If-Match is needed",
                "Read it first, and send its ETag as If-Match, so that no one else's change is lost.",
            ));
        };
        let text = value.to_str().unwrap_or_default().trim();
        if text == "*" {
            return Ok(Self { version: None });
        }
        let version = text.strip_prefix("\"v").and_then(|text| text.strip_suffix('"')?.parse().ok());
        // A tag that we never gave out matches nothing.
        version.map(|version| Self { version: Some(version) }).ok_or_else(changed)
    }
}

impl IfMatch {
    /// Refuses unless the thing still has the version.
    pub fn check(self, current: i32) -> Result<(), Problem> {
        match self.version {
            Some(version) if version != current => Err(changed().with("current_etag", of_version(current))),
            _ => Ok(()),
        }
    }
}

/// Somebody else changed it since it was read.
pub fn changed() -> Problem {
    Problem::new(
        StatusCode::PRECONDITION_FAILED,
        "changed-meanwhile",
        "It was changed meanwhile",
        "Read it again, look at what changed, and repeat your change with the new ETag.",
    )
}
