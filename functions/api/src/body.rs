//! Decoding of requests with errors that name the field: JSON and other bodies, paths, queries.
//!
//! An id in a path that is not a UUID names nothing, so it is 404, like an id of nothing. NUL is refused everywhere:
//! no name, message or reference can hold it.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use bytes::Bytes;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use plumbline_core::Deps;
use serde::de::DeserializeOwned;
use serde_json::Value;
use serde_json::error::Category;

use crate::problem::Problem;

/// A JSON body. Unknown fields are refused by the types (`deny_unknown_fields`).
#[derive(Clone, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Deps> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, deps: &Deps) -> Result<Self, Problem> {
        decode(&read(request, deps.limits.body_bytes_max).await?).map(Self)
    }
}

/// A body of bytes that are nobody's JSON.
#[derive(Clone, Debug)]
pub struct Raw(pub Bytes);

impl FromRequest<Deps> for Raw {
    type Rejection = Problem;

    async fn from_request(request: Request, deps: &Deps) -> Result<Self, Problem> {
        read_within(request.into_body(), deps.limits.body_bytes_max).await.map(Self)
    }
}

/// The whole body of a request that must have a JSON one.
pub(crate) async fn read(request: Request, bytes_max: usize) -> Result<Bytes, Problem> {
    let is_json = has_json_type(request.headers());
    let body = read_within(request.into_body(), bytes_max).await?;
    if body.is_empty() {
        return Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "body-missing",
            "The request has no body",
            "Send a JSON object with Content-Type: application/json.",
        ));
    }
    if is_json {
        return Ok(body);
    }
    Err(Problem::new(
        StatusCode::UNSUPPORTED_MEDIA_TYPE,
        "unsupported-media-type",
        "The body must be JSON",
        "Send the body with Content-Type: application/json.",
    ))
}

pub(crate) async fn read_within(body: axum::body::Body, bytes_max: usize) -> Result<Bytes, Problem> {
    let too_large = || {
        Problem::new(
            StatusCode::PAYLOAD_TOO_LARGE,
            "body-too-large",
            "The body is too large",
            format!("At most {bytes_max} bytes are accepted here."),
        )
        .with("bytes_max", bytes_max)
    };
    match Limited::new(body, bytes_max).collect().await {
        Ok(body) => Ok(body.to_bytes()),
        Err(error) if error.downcast_ref::<LengthLimitError>().is_some() => Err(too_large()),
        Err(_) => Err(malformed("The body ended before it was whole.")),
    }
}

fn has_json_type(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let essence = value.split(';').next().unwrap_or_default().trim().to_ascii_lowercase();
    essence == "application/json" || (essence.starts_with("application/") && essence.ends_with("+json"))
}

/// JSON into a type: broken JSON is 400, wrong values are 422 and name the field.
pub(crate) fn decode<T: DeserializeOwned>(body: &[u8]) -> Result<T, Problem> {
    if let Some(path) = nul_in(body) {
        return Err(invalid_field(&path, "must not contain NUL"));
    }
    // Derived types would take an array for an object, by position.
    if body.trim_ascii_start().first() != Some(&b'{') && whole(body).is_ok() {
        return Err(invalid_field("", "must be a JSON object"));
    }
    let mut deserializer = serde_json::Deserializer::from_slice(body);
    let value = serde_path_to_error::deserialize(&mut deserializer).map_err(|error| {
        let path = error.path().to_string();
        let cause = error.into_inner();
        match (cause.classify(), whole(body)) {
            // The kind alone does not tell: a null where one of some words must stand counts as broken JSON.
            (_, Ok(_)) => invalid_field(&path, &without_position(&cause.to_string())),
            // Broken JSON is broken even where a wrong value comes first.
            (Category::Data, Err(_)) => malformed("it ends too early or is damaged"),
            (Category::Syntax | Category::Eof | Category::Io, Err(_)) => malformed(&cause.to_string()),
        }
    })?;
    deserializer.end().map_err(|error| malformed(&error.to_string()))?;
    Ok(value)
}

fn whole(body: &[u8]) -> Result<serde::de::IgnoredAny, serde_json::Error> {
    serde_json::from_slice(body)
}

/// The first string with a NUL, if there is one. Parsed a second time only if it may have one.
fn nul_in(body: &[u8]) -> Option<String> {
    if !body.windows(6).any(|window| window == br"\u0000") {
        return None;
    }
    find_nul(&serde_json::from_slice(body).ok()?, "")
}

fn find_nul(value: &Value, path: &str) -> Option<String> {
    let below = |name: &str| if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") };
    match value {
        Value::String(text) => text.contains('\0').then(|| path.to_owned()),
        Value::Array(items) => {
            items.iter().enumerate().find_map(|(n, item)| find_nul(item, &format!("{path}[{n}]")))
        }
        Value::Object(map) => map.iter().find_map(|(name, value)| {
            if name.contains('\0') { Some(path.to_owned()) } else { find_nul(value, &below(name)) }
        }),
        Value::Null | Value::Bool(_) | Value::Number(_) => None,
    }
}

/// serde_json ends its messages with a position, which says nothing once the field is named.
fn without_position(message: &str) -> String {
    message.split(" at line ").next().unwrap_or(message).to_owned()
}

fn malformed(detail: &str) -> Problem {
    Problem::new(
        StatusCode::BAD_REQUEST,
        "malformed-body",
        "The body is not JSON",
        format!("The body could not be read as JSON: {detail}."),
    )
}

/// A field with a value that cannot be accepted.
pub(crate) fn invalid_field(field: &str, reason: &str) -> Problem {
    let named = if field.is_empty() || field == "." { "The body".to_owned() } else { format!("`{field}`") };
    Problem::new(
        StatusCode::UNPROCESSABLE_ENTITY,
        "invalid-field",
        "A field has a wrong value",
        format!("{named}: {reason}."),
    )
    .with("field", field)
}

/// Parameters in the path.
#[derive(Clone, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Deps> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, Problem> {
        if parts.uri.path().contains("%00") {
            return Err(Problem::not_found("thing"));
        }
        match axum::extract::Path::from_request_parts(parts, deps).await {
            Ok(axum::extract::Path(value)) => Ok(Self(value)),
            Err(_) => Err(Problem::not_found("thing")),
        }
    }
}

/// Parameters in the query. Unknown ones are refused by the types.
#[derive(Clone, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Deps> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _deps: &Deps) -> Result<Self, Problem> {
        if parts.uri.query().is_some_and(|query| query.contains("%00")) {
            return Err(invalid_field("query", "must not contain NUL"));
        }
        match axum::extract::Query::try_from_uri(&parts.uri) {
            Ok(axum::extract::Query(value)) => Ok(Self(value)),
            Err(rejection) => {
                let text = rejection.body_text();
                let reason = text.strip_prefix("Failed to deserialize query string: ").unwrap_or(&text);
                Err(invalid_field("query", reason))
            }
        }
    }
}
