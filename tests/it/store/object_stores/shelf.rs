//! What stand-ins for a cloud's store keep, in memory.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::body::Body;
use axum::response::{IntoResponse as _, Response};
use bytes::Bytes;
use http::{HeaderMap, StatusCode};

/// An object.
#[derive(Clone)]
pub struct Kept {
    pub bytes: Bytes,
    pub content_type: String,
}

/// The objects of the one bucket that there is, by their names.
#[derive(Clone, Default)]
pub struct Shelf(Arc<Mutex<BTreeMap<String, Kept>>>);

impl Shelf {
    pub fn open(&self) -> MutexGuard<'_, BTreeMap<String, Kept>> {
        self.0.lock().unwrap()
    }

    /// Looks and writes in one step; `false` if something has the name.
    pub fn create(&self, name: &str, bytes: Bytes, content_type: &str) -> bool {
        let mut objects = self.open();
        let is_free = !objects.contains_key(name);
        if is_free {
            objects.insert(name.to_owned(), Kept { bytes, content_type: content_type.to_owned() });
        }
        is_free
    }
}

/// An object, or the part of it that is asked for, with the headers that both clouds send.
pub fn served(kept: &Kept, headers: &HeaderMap) -> Response {
    let length = kept.bytes.len();
    let common = [
        ("content-type", kept.content_type.as_str()),
        ("etag", "\"1\""),
        ("last-modified", "Thu, 01 Jan 2026 00:00:00 GMT"),
        ("accept-ranges", "bytes"),
    ];
    let range = headers.get("range").or_else(|| headers.get("x-ms-range"));
    let Some(range) = range.and_then(|range| range.to_str().ok()?.strip_prefix("bytes=")) else {
        return (StatusCode::OK, common, Body::from(kept.bytes.clone())).into_response();
    };
    let (from, to) = range.split_once('-').unwrap();
    let (from, to): (usize, usize) = (from.parse().unwrap(), to.parse().unwrap());
    if from >= length {
        return (StatusCode::RANGE_NOT_SATISFIABLE, "<Error><Code>InvalidRange</Code></Error>")
            .into_response();
    }
    let to = to.min(length - 1);
    let part = kept.bytes.slice(from..=to);
    let place = [("content-range", format!("bytes {from}-{to}/{length}"))];
    (StatusCode::PARTIAL_CONTENT, common, place, part).into_response()
}

/// A query's value by its name, decoded.
pub fn asked(query: &str, name: &str) -> Option<String> {
    url::form_urlencoded::parse(query.as_bytes())
        .find(|(key, _)| key == name)
        .map(|(_, value)| value.into_owned())
}
