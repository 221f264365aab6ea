//! Answers as Terraform's client expects them.

use std::io::Write as _;

use axum::body::Body;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use bytes::Bytes;
use flate2::Compression;
use flate2::write::GzEncoder;
use plumbline_api::problem::Problem;
use plumbline_core::tfstates::StateError;
use plumbline_core::tfstates::service::StateBody;

/// Below this length compression costs more than it saves.
const GZIP_BYTES_MIN: usize = 1 << 10;

/// A state, or where it is.
pub(crate) fn state(body: StateBody, asked: &HeaderMap) -> Response {
    match body {
        StateBody::Empty => StatusCode::NO_CONTENT.into_response(),
        StateBody::Elsewhere(request) => {
            // 307 and nothing else: see the crate's words on redirects.
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, request.url), no_store()]).into_response()
        }
        StateBody::Inline { bytes, md5 } => {
            let md5 = base64::engine::general_purpose::STANDARD.encode(md5);
            let compressed =
                if bytes.len() >= GZIP_BYTES_MIN && accepts_gzip(asked) { gzip(&bytes) } else { None };
            let mut response = (
                [
                    (header::CONTENT_TYPE, "application/json".to_owned()),
                    (header::HeaderName::from_static("content-md5"), md5),
                    (header::VARY, "accept-encoding".to_owned()),
                    no_store(),
                ],
                Body::from(compressed.clone().unwrap_or(bytes)),
            )
                .into_response();
            if compressed.is_some() {
                response
                    .headers_mut()
                    .insert(header::CONTENT_ENCODING, header::HeaderValue::from_static("gzip"));
            }
            response
        }
    }
}

/// States hold secrets: nobody between us and the client may keep them.
fn no_store() -> (header::HeaderName, String) {
    (header::CACHE_CONTROL, "no-store".to_owned())
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|coding| {
            let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    })
}

fn gzip(bytes: &Bytes) -> Option<Bytes> {
    let mut encoder = GzEncoder::new(Vec::with_capacity(bytes.len() / 4), Compression::fast());
    encoder.write_all(bytes).and_then(|()| encoder.finish()).ok().map(Bytes::from)
}

/// A refusal: 423 carries the holder's lock info bare, because clients read the holder from there; all others are
/// problem documents.
pub(crate) fn refusal(error: StateError) -> Response {
    match error {
        StateError::Locked { holder } => {
            (StatusCode::LOCKED, [(header::CONTENT_TYPE, "application/json")], holder).into_response()
        }
        other => Problem::from(other).into_response(),
    }
}
