//! States of any size, of people: begin, send the bytes to the signed URL, commit. `plumb` does it for them.

use axum::Json;
use axum::body::Body;
use axum::extract::{FromRequest as _, Request};
use axum::http::Method;
use axum::response::{IntoResponse as _, Response};
use plumbline_api::body::Body as JsonBody;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::ids::{StateUploadId, WorkspaceId};
use plumbline_core::protocol::StateUploadBegin;
use plumbline_core::tfstates::service::{self, StateActor};

use crate::protocol::{NO_STORE, refusal, wrong_method};

/// The paths below a state's address; each takes POST alone.
pub const UPLOADS: [&str; 2] = ["/uploads", "/uploads/{upload_id}/commit"];

/// The same begin once more finds the same upload: it needs no key of its own.
pub(crate) async fn begin(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace: WorkspaceId,
    request: Request<Body>,
) -> Result<Response, Problem> {
    require_post(&request)?;
    let JsonBody(begin) = JsonBody::<StateUploadBegin>::from_request(request, deps).await?;
    match service::begin_upload(deps, actor, workspace, &begin).await {
        // The URL is a credential.
        Ok(answer) => Ok((NO_STORE, Json(answer)).into_response()),
        Err(error) => refusal(error),
    }
}

pub(crate) async fn commit(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace: WorkspaceId,
    upload: StateUploadId,
    request: Request<Body>,
) -> Result<Response, Problem> {
    require_post(&request)?;
    match service::commit_upload(deps, actor, workspace, upload).await {
        Ok(answer) => Ok(Json(answer).into_response()),
        Err(error) => refusal(error),
    }
}

fn require_post(request: &Request<Body>) -> Result<(), Problem> {
    if request.method() == Method::POST {
        return Ok(());
    }
    Err(wrong_method("Uploads of a state answer POST alone."))
}
