//! What holds of every request and every answer, in whatever case.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::header::{AUTHORIZATION, CONTENT_ENCODING, CONTENT_TYPE};
use http::{HeaderMap, StatusCode};
use md5::Digest as _;
use serde_json::Value;

/// What a client must not send.
pub(super) fn of_request(headers: &HeaderMap, body: &[u8]) -> Vec<String> {
    let mut wrongs = Vec::new();
    if !headers.contains_key(AUTHORIZATION) {
        wrongs.push("no credentials".to_owned());
    }
    if body.is_empty() {
        return wrongs;
    }
    if headers.get(CONTENT_TYPE).is_none_or(|value| value != "application/json") {
        wrongs.push("Content-Type".to_owned());
    }
    if headers.get("content-md5").is_none_or(|value| value.as_bytes() != digest(body).as_bytes()) {
        wrongs.push("Content-MD5".to_owned());
    }
    wrongs
}

/// What a server must not answer.
pub(super) fn of_answer(
    operation: &str,
    status: StatusCode,
    headers: &HeaderMap,
    body: &[u8],
) -> Vec<String> {
    let mut wrongs = Vec::new();
    if operation == "GET"
        && status == StatusCode::OK
        && !headers.contains_key(CONTENT_ENCODING)
        && headers.get("content-md5").is_some_and(|value| value.as_bytes() != digest(body).as_bytes())
    {
        wrongs.push("Content-MD5 of the answer".to_owned());
    }
    // The client reads the holder from the top level of the body, and waits for the lock only if it finds an id.
    let is_held = matches!(status, StatusCode::LOCKED | StatusCode::CONFLICT);
    if is_held && operation == "LOCK" && lock_id(body).is_none() {
        wrongs.push("no holder's LockInfo".to_owned());
    }
    if matches!(status.as_u16(), 301..=303) && operation != "GET" {
        wrongs.push("a redirect that loses the body".to_owned());
    }
    wrongs
}

/// The `ID` of a LockInfo.
pub(super) fn lock_id(body: &[u8]) -> Option<String> {
    let info: Value = serde_json::from_slice(body).ok()?;
    info.get("ID")?.as_str().filter(|id| !id.is_empty()).map(str::to_owned)
}

/// The value of `ID` in a query.
pub(super) fn queried_id(query: &str) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(name, _)| name == "ID")
        .map(|(_, id)| id.into_owned())
}

/// MD5 as HTTP carries it.
pub(super) fn digest(body: &[u8]) -> String {
    STANDARD.encode(md5::Md5::digest(body))
}
