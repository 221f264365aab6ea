//! What a request asks for, and who asks.

use axum::body::Body;
use axum::http::request::Parts;
use axum::http::{HeaderMap, Method, StatusCode, header};
use base64::Engine as _;
use bytes::{Bytes, BytesMut};
use http_body_util::BodyExt as _;
use plumbline_api::caller::BUSINESS_UNIT;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::access::{Ctx, TraceParent};
use plumbline_core::ids::WorkspaceId;
use plumbline_core::sessions;
use plumbline_core::tfstates::StateError;

/// What a client wants.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Operation {
    Read,
    Write,
    Lock,
    Unlock,
    Purge,
}

/// The workspace and the operation that method and path name.
pub(crate) fn operation(parts: &Parts) -> Result<(WorkspaceId, Operation), Problem> {
    let segments: Vec<&str> = parts.uri.path().split('/').filter(|segment| !segment.is_empty()).collect();
    let (workspace, on_lock) = match segments[..] {
        ["api", "v1", "state", workspace] => (workspace, false),
        ["api", "v1", "state", workspace, "lock"] => (workspace, true),
        _ => return Err(Problem::not_found("path")),
    };
    let workspace_id = workspace.parse().map_err(|_| Problem::not_found("workspace"))?;
    let operation = match (parts.method.as_str(), on_lock) {
        ("GET", false) => Operation::Read,
        ("POST" | "PUT", false) => Operation::Write,
        ("DELETE", false) => Operation::Purge,
        ("LOCK", _) | ("POST", true) => Operation::Lock,
        ("UNLOCK", _) | ("DELETE", true) => Operation::Unlock,
        _ => return Err(wrong_method(&parts.method)),
    };
    Ok((workspace_id, operation))
}

fn wrong_method(method: &Method) -> Problem {
    Problem::new(
        StatusCode::METHOD_NOT_ALLOWED,
        "method-not-allowed",
        "Wrong method",
        format!("A state knows GET, POST, PUT, LOCK and UNLOCK, its lock POST and DELETE; not {method}."),
    )
}

/// The person whose access token comes as a bearer token or as the password of HTTP Basic. The unit is named by the
/// header `X-Business-Unit`, or by a user name `unit/<slug>` from clients that cannot send headers; any other user name
/// means nothing.
pub(crate) async fn person(deps: &Deps, headers: &HeaderMap) -> Result<Ctx, Problem> {
    let credentials = credentials(headers).ok_or_else(|| {
        Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "Not signed in",
            "Send an access token as the password of HTTP Basic, or as a bearer token.",
        )
    })?;
    let unit = match headers.get(BUSINESS_UNIT) {
        Some(value) => Some(value.to_str().unwrap_or("?")),
        None => credentials.user.as_deref().and_then(|user| user.strip_prefix("unit/")),
    };
    let mut ctx = sessions::service::authenticate(deps, &credentials.token, unit).await?;
    ctx.traceparent =
        headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(TraceParent::parse);
    Ok(ctx)
}

struct Credentials {
    user: Option<String>,
    token: String,
}

fn credentials(headers: &HeaderMap) -> Option<Credentials> {
    let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
    let found = if scheme.eq_ignore_ascii_case("bearer") {
        Credentials { user: None, token: rest.trim().to_owned() }
    } else if scheme.eq_ignore_ascii_case("basic") {
        let decoded = base64::engine::general_purpose::STANDARD.decode(rest.trim()).ok()?;
        let (user, password) = String::from_utf8(decoded).ok()?.split_once(':').map(own)?;
        Credentials { user: Some(user), token: password }
    } else {
        return None;
    };
    Some(found).filter(|found| !found.token.is_empty())
}

fn own((user, password): (&str, &str)) -> (String, String) {
    (user.to_owned(), password.to_owned())
}

/// How much of a body that is too large is read and dropped: a client that is still sending when the connection
/// closes sees a broken pipe instead of our answer.
const DRAINED_BYTES_MAX: usize = 64 << 20;

/// The whole body, up to the limit of an inline state.
pub(crate) async fn read(deps: &Deps, mut body: Body) -> Result<Bytes, Problem> {
    let max_bytes = deps.limits.inline_state_bytes_max;
    let (mut bytes, mut drained) = (BytesMut::new(), 0);
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
        if drained > 0 || bytes.len() + data.len() > max_bytes {
            drained += bytes.len() + data.len();
            bytes = BytesMut::new();
            if drained > DRAINED_BYTES_MAX {
                break;
            }
        } else {
            bytes.extend_from_slice(&data);
        }
    }
    if drained > 0 { Err(StateError::TooLarge { max_bytes }.into()) } else { Ok(bytes.freeze()) }
}
