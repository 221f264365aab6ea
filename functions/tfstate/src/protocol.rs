//! The backend's calls, for people and for executors alike.

use std::io::Write as _;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::http::{HeaderMap, Method, StatusCode, header};
use axum::response::{IntoResponse, Response};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http_body_util::{BodyExt as _, LengthLimitError, Limited};
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::service::{self, InlineWrite, StateActor, StateBody};
use plumbline_core::tfstates::{LockInfo, StateError};

/// States below this are not worth compressing.
const GZIP_BYTES_MIN: usize = 4 << 10;

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

/// What a method means on the state's path, or on its lock's.
pub fn call_of(method: &Method, on_lock: bool) -> Result<Call, Problem> {
    match (method.as_str(), on_lock) {
        ("GET" | "HEAD", false) => Ok(Call::Read),
        ("POST" | "PUT", false) => Ok(Call::Write),
        ("DELETE", false) => Ok(Call::Purge),
        ("LOCK", _) | ("POST" | "PUT", true) => Ok(Call::Lock),
        ("UNLOCK", _) | ("DELETE", true) => Ok(Call::Unlock),
        _ => Err(Problem::new(
            StatusCode::METHOD_NOT_ALLOWED,
            "method-not-allowed",
            "Method is not allowed",
            "The state answers GET, POST, PUT, LOCK and UNLOCK, and POST and DELETE on its /lock.",
        )),
    }
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
            let max = deps.limits.inline_state_bytes_max;
            let body = bytes(body, max).await?.ok_or(StateError::TooLarge { max_bytes: max })?;
            let lock_id = parts.uri.query().and_then(lock_id);
            let content_md5 = parts.headers.get("content-md5").and_then(|value| value.to_str().ok());
            let write = InlineWrite { lock_id: lock_id.as_deref(), content_md5, body };
            service::write_inline(deps, actor, workspace, &write).await.map_err(refused)?;
            Ok(StatusCode::OK.into_response())
        }
        Call::Lock => {
            let info = LockInfo::parse(&lock_body(body).await?).map_err(StateError::from)?;
            match service::lock(deps, actor, workspace, &info).await {
                Ok(()) => Ok(StatusCode::OK.into_response()),
                Err(error) => held(error),
            }
        }
        Call::Unlock => {
            let body = lock_body(body).await?;
            let released = if body.is_empty() {
                service::force_unlock(deps, actor, workspace).await
            } else {
                let info = LockInfo::parse(&body).map_err(StateError::from)?;
                service::unlock(deps, actor, workspace, &info).await
            };
            match released {
                Ok(()) => Ok(StatusCode::OK.into_response()),
                Err(error) => held(error),
            }
        }
    }
}

async fn read(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace: WorkspaceId,
    headers: &HeaderMap,
) -> Result<Response, Problem> {
    match service::read(deps, actor, workspace).await? {
        StateBody::Empty => Ok(StatusCode::NO_CONTENT.into_response()),
        StateBody::Elsewhere(there) => {
            Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, there.url)]).into_response())
        }
        StateBody::Inline { bytes, md5 } => {
            let md5 = STANDARD.encode(md5);
            let accepts = headers.get(header::ACCEPT_ENCODING).and_then(|value| value.to_str().ok());
            let known = [(header::CONTENT_TYPE, "application/json".to_owned())];
            if accepts.is_some_and(|accepts| accepts.contains("gzip")) && bytes.len() >= GZIP_BYTES_MIN {
                let encoded = gzip(&bytes).map_err(|error| Problem::internal(&error))?;
                let gzipped = [(header::CONTENT_ENCODING, "gzip")];
                return Ok((StatusCode::OK, known, gzipped, [("content-md5", md5)], encoded).into_response());
            }
            Ok((StatusCode::OK, known, [("content-md5", md5)], bytes).into_response())
        }
    }
}

fn gzip(bytes: &[u8]) -> std::io::Result<Vec<u8>> {
    let mut encoder = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    encoder.write_all(bytes)?;
    encoder.finish()
}

/// The holder's LockInfo as a bare object: clients print it, and read the id from its top level.
fn held(error: StateError) -> Result<Response, Problem> {
    match error {
        StateError::Locked { holder } => Ok(bare(StatusCode::LOCKED, holder)),
        other => Err(other.into()),
    }
}

fn refused(error: StateError) -> Problem {
    error.into()
}

fn bare(status: StatusCode, json: String) -> Response {
    (status, [(header::CONTENT_TYPE, "application/json")], json).into_response()
}

/// The body, or `None` if it is longer than `max`.
async fn bytes(body: Body, max: usize) -> Result<Option<Bytes>, Problem> {
    match Limited::new(body, max).collect().await {
        Ok(collected) => Ok(Some(collected.to_bytes())),
        Err(error) if error.is::<LengthLimitError>() => Ok(None),
        Err(_) => Err(Problem::new(
            StatusCode::BAD_REQUEST,
            "malformed-body",
            "The body broke off",
            "The connection ended before the whole body had come.",
        )),
    }
}

async fn lock_body(body: Body) -> Result<Bytes, Problem> {
    Ok(bytes(body, 64 << 10).await?.ok_or(StateError::BadLock(plumbline_core::tfstates::BadLock::TooLong))?)
}

/// `?ID=`, in the spelling that Terraform sends, percent-decoded.
fn lock_id(query: &str) -> Option<String> {
    let raw = query.split('&').find_map(|pair| pair.strip_prefix("ID="))?;
    let mut decoded = Vec::with_capacity(raw.len());
    let mut rest = raw.as_bytes();
    while let [first, tail @ ..] = rest {
        let hex = |digits: &[u8]| u8::from_str_radix(std::str::from_utf8(digits).ok()?, 16).ok();
        match (first, tail) {
            (b'%', [high, low, after @ ..]) if hex(&[*high, *low]).is_some() => {
                decoded.extend(hex(&[*high, *low]));
                rest = after;
            }
            (b'+', _) => {
                decoded.push(b' ');
                rest = tail;
            }
            _ => {
                decoded.push(*first);
                rest = tail;
            }
        }
    }
    String::from_utf8(decoded).ok().filter(|id| !id.is_empty())
}
