//! Terraform's HTTP backend under `/api/v1/state/{workspace_id}`.
//!
//! It may not write outside its tables but for named SQL functions. Nothing here ever answers 301, 302 or 303: a client
//! that follows one of those on a write loses the state silently. Business refusals are 4xx, because clients repeat a
//! 5xx and then hide the reason.

mod caller;
mod protocol;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::service::StateActor;

pub use protocol::{Call, METHODS, answer, call_of};

/// Every route of this function. Paths are matched by hand: extra slashes must not lead to a redirect. The routes take
/// every path, since the shared layers have a fallback of their own.
pub fn router(deps: Deps) -> Router {
    let router = Router::new().route("/", any(handle)).route("/{*path}", any(handle));
    plumbline_api::layers::wrap(router.with_state(deps))
}

async fn handle(State(deps): State<Deps>, request: Request<Body>) -> Response {
    match respond(&deps, request).await {
        Ok(response) => response,
        Err(problem) => problem.into_response(),
    }
}

async fn respond(deps: &Deps, request: Request<Body>) -> Result<Response, Problem> {
    let ctx = caller::authenticate(deps, request.headers()).await?;
    let (workspace, on_lock) = target(request.uri().path())
        .filter(|(workspace, _)| ctx.reaches(*workspace))
        .ok_or_else(|| Problem::not_found("workspace"))?;
    let call = call_of(request.method(), on_lock)?;
    answer(deps, &StateActor::Person(&ctx), workspace, call, request).await
}

/// The workspace that a path names, and whether it is about its lock.
fn target(path: &str) -> Option<(WorkspaceId, bool)> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    match segments[..] {
        ["api", "v1", "state", id] => Some((id.parse().ok()?, false)),
        ["api", "v1", "state", id, "lock"] => Some((id.parse().ok()?, true)),
        _ => None,
    }
}
