//! The backend's calls, for people and for executors alike.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::BytesMut;
use http_body_util::BodyExt as _;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::service::{self, InlineWrite, StateActor, StateBody};
use plumbline_core::tfstates::{LockInfo, StateError};
use url::form_urlencoded;

/// States below this are not worth compressing.
const GZIP_BYTES_MIN: usize = 4 << 10;
/// Longer than any lock info that is accepted.
const LOCK_BYTES_MAX: usize = 64 << 10;
/// How much of a body that is too large is read and dropped: a client that is still sending when the connection closes
/// sees a broken pipe instead of our answer.
const DROPPED_BYTES_MAX: usize = 64 << 20;
const CONTENT_MD5: HeaderName = HeaderName::from_static("content-md5");
/// States hold secrets: nobody between us and the client may keep them.
pub(crate) const NO_STORE: [(HeaderName, &str); 1] = [(header::CACHE_CONTROL, "no-store")];

/// One call of the protocol.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Call {
    /// Read the state.
    Read,
    /// Write the state.
    Write,
    /// Give up the state: always refused.
    Purge,
    /// Take the lock.
    Lock,
    /// Release the lock; with an empty body, take it from whoever holds it.
    Unlock,
}

/// Every method of the state's path (`false`) and of its lock's (`true`), and what it means there.
pub const METHODS: &[(&str, bool, Call)] = &[
    ("GET", false, Call::Read),
    ("HEAD", false, Call::Read),
    ("POST", false, Call::Write),
    ("PUT", false, Call::Write),
    ("DELETE", false, Call::Purge),
    ("LOCK", false, Call::Lock),
    ("UNLOCK", false, Call::Unlock),
    ("LOCK", true, Call::Lock),
    ("POST", true, Call::Lock),
    ("PUT", true, Call::Lock),
    ("UNLOCK", true, Call::Unlock),
    ("DELETE", true, Call::Unlock),
];

/// What a method means on the state's path, or on its lock's.
pub fn call_of(method: &Method, on_lock: bool) -> Result<Call, Problem> {
    let known = METHODS.iter().find(|(name, lock, _)| *name == method.as_str() && *lock == on_lock);
    known.map(|(.., call)| *call).ok_or_else(|| {
        wrong_method("The state answers GET, POST, PUT, LOCK and UNLOCK, and POST and DELETE on its /lock.")
    })
}

pub(crate) fn wrong_method(answers: &str) -> Problem {
    Problem::new(StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed", "Method is not allowed", answers)
}

/// Answers one call.
pub async fn answer(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace: WorkspaceId,
    call: Call,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let (parts, body) = request.into_parts();
    match call {
        Call::Read => read(deps, actor, workspace, &parts.headers).await,
        Call::Purge => Err(StateError::NeverPurged.into()),
        Call::Write => {
            let max_bytes = deps.limits.inline_state_bytes_max;
            let body = bytes(body, max_bytes).await?.ok_or(StateError::TooLarge { max_bytes })?;
            let lock_id = parts.uri.query().and_then(lock_id);
            let content_md5 = match parts.headers.get(CONTENT_MD5) {
                None => None,
                // Bytes that are no text are no digest either.
                Some(value) => Some(value.to_str().map_err(|_| StateError::DigestMismatch)?),
            };
            let write = InlineWrite { lock_id: lock_id.as_deref(), content_md5, body };
            done(service::write_inline(deps, actor, workspace, &write).await.map(drop))
        }
        Call::Lock => {
            let info = LockInfo::parse(&lock_body(body).await?).map_err(StateError::from)?;
            done(service::lock(deps, actor, workspace, &info).await)
        }
        Call::Unlock => {
            let body = lock_body(body).await?;
            // Terraform's force-unlock sends no body at all: the id that the user typed stays with the client.
            if body.is_empty() {
                return done(service::force_unlock(deps, actor, workspace).await);
            }
            let info = LockInfo::parse(&body).map_err(StateError::from)?;
            done(service::unlock(deps, actor, workspace, &info).await)
        }
    }
}

async fn read(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace: WorkspaceId,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    body(service::read(deps, actor, workspace).await?, headers)
}

/// A state on the wire.
pub(crate) fn body(state: StateBody, headers: &HeaderMap) -> Result<Response, Problem> {
    match state {
        StateBody::Empty => Ok(StatusCode::NO_CONTENT.into_response()),
        StateBody::Elsewhere(there) => {
            // 307 and nothing else: see the crate's words on redirects.
            let there = [(header::LOCATION, there.url)];
            Ok((StatusCode::TEMPORARY_REDIRECT, NO_STORE, there).into_response())
        }
        StateBody::Inline { bytes, md5 } => {
            let known = [(header::CONTENT_TYPE, "application/json"), (header::VARY, "accept-encoding")];
            let md5 = [(CONTENT_MD5, STANDARD.encode(md5))];
            if accepts_gzip(headers) && bytes.len() >= GZIP_BYTES_MIN {
                let encoded = gzip(&bytes).map_err(|error| Problem::internal(&error))?;
                let coding = [(header::CONTENT_ENCODING, "gzip")];
                return Ok((StatusCode::OK, NO_STORE, known, coding, md5, encoded).into_response());
            }
            Ok((StatusCode::OK, NO_STORE, known, md5, bytes).into_response())
        }
    }
}

fn accepts_gzip(headers: &HeaderMap) -> bool {
    headers.get_all(header::ACCEPT_ENCODING).iter().filter_map(|value| value.to_str().ok()).any(|value| {
        value.split(',').any(|coding| {
            let (name, quality) = coding.split_once(';').unwrap_or((coding, ""));
            name.trim().eq_ignore_ascii_case("gzip") && !matches!(quality.trim(), "q=0" | "q=0.0")
        })
    })
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// A held lock is answered with its holder's LockInfo as the whole body: clients print it, and read the id from its top
/// level.
pub(crate) fn refusal(error: StateError) -> Result<Response, Problem> {
    match error {
        StateError::Locked { holder } => {
            Ok((StatusCode::LOCKED, [(header::CONTENT_TYPE, "application/json")], holder).into_response())
        }
        other => Err(other.into()),
    }
}

/// 200, because clients take 201 and 204 for errors on some calls; or the refusal.
fn done(outcome: Result<(), StateError>) -> Result<Response, Problem> {
    match outcome {
        Ok(()) => Ok(StatusCode::OK.into_response()),
        Err(error) => refusal(error),
    }
}

/// The body, or `None` if it is longer than `max`.
async fn bytes(mut body: Body, max: usize) -> Result<Option<Bytes>, Problem> {
    let (mut bytes, mut dropped) = (BytesMut::new(), 0);
    while let Some(frame) = body.frame().await {
        let frame = frame.map_err(|_| {
            Problem::new(
                StatusCode::BAD_REQUEST,
                "malformed-body",
                "The body broke off",
                "The connection ended before the whole body had come.",
            )
        })?;
        let Ok(data) = frame.into_data() else { continue };
        if dropped == 0 && bytes.len() + data.len() <= max {
            bytes.extend_from_slice(&data);
            continue;
        }
        dropped += std::mem::take(&mut bytes).len() + data.len();
        if dropped > DROPPED_BYTES_MAX {
            break;
        }
    }
    Ok((dropped == 0).then(|| bytes.freeze()))
}

async fn lock_body(body: Body) -> Result<Bytes, Problem> {
    Ok(bytes(body, LOCK_BYTES_MAX)
        .await?
        .ok_or(StateError::BadLock(plumbline_core::tfstates::BadLock::TooLong))?)
}

/// `?ID=`, in the spelling that Terraform sends.
fn lock_id(query: &str) -> Option<String> {
    let (_, id) = form_urlencoded::parse(query.as_bytes()).find(|(name, _)| name == "ID")?;
    Some(id.into_owned()).filter(|id| !id.is_empty())
}
