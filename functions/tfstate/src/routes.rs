//! From a request to one use case.

use axum::extract::{Request, State};
use axum::http::request::Parts;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::service::{self as tfstates, InlineWrite, StateActor};
use plumbline_core::tfstates::{LockInfo, StateError};
use url::form_urlencoded;

use crate::answers;
use crate::request::{Operation, operation, person, read};

/// Every request.
pub(crate) async fn handle(State(deps): State<Deps>, request: Request) -> Response {
    let (parts, body) = request.into_parts();
    let (workspace_id, operation) = match operation(&parts) {
        Ok(known) => known,
        Err(problem) => return problem.into_response(),
    };
    let ctx = match person(&deps, &parts.headers).await {
        Ok(ctx) => ctx,
        Err(problem) => return problem.into_response(),
    };
    let actor = StateActor::Person(&ctx);
    let body = match read(&deps, body).await {
        Ok(body) => body,
        Err(problem) => return problem.into_response(),
    };
    let answered = match operation {
        Operation::Read => {
            tfstates::read(&deps, &actor, workspace_id).await.map(|body| answers::state(body, &parts.headers))
        }
        Operation::Write => write(&deps, &actor, workspace_id, &parts, body).await,
        Operation::Lock => lock(&deps, &actor, workspace_id, &body).await,
        Operation::Unlock => unlock(&deps, &actor, workspace_id, &body).await,
        Operation::Purge => Err(StateError::NeverPurged),
    };
    answered.unwrap_or_else(answers::refusal)
}

async fn write(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    parts: &Parts,
    body: bytes::Bytes,
) -> Result<Response, StateError> {
    let query = parts.uri.query().unwrap_or_default();
    let lock_id = form_urlencoded::parse(query.as_bytes())
        .find(|(name, value)| name == "ID" && !value.is_empty())
        .map(|(_, value)| value);
    let content_md5 = match parts.headers.get("content-md5") {
        None => None,
        // Bytes that are no text are no digest either.
        Some(value) => Some(value.to_str().map_err(|_| StateError::DigestMismatch)?),
    };
    let write = InlineWrite { lock_id: lock_id.as_deref(), content_md5, body };
    tfstates::write_inline(deps, actor, workspace_id, &write).await?;
    Ok(done())
}

async fn lock(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    body: &[u8],
) -> Result<Response, StateError> {
    tfstates::lock(deps, actor, workspace_id, &LockInfo::parse(body)?).await?;
    Ok(done())
}

async fn unlock(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    body: &[u8],
) -> Result<Response, StateError> {
    // Terraform's force-unlock sends no body at all: the id that the user typed stays with the client.
    if body.is_empty() {
        tfstates::force_unlock(deps, actor, workspace_id).await?;
    } else {
        tfstates::unlock(deps, actor, workspace_id, &LockInfo::parse(body)?).await?;
    }
    Ok(done())
}

/// 200 and nothing else: clients take 201 and 204 for errors on some of these calls.
fn done() -> Response {
    (StatusCode::OK, [(header::CONTENT_TYPE, "application/json")], "{}").into_response()
}
