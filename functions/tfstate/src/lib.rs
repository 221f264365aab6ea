//! Terraform's HTTP backend under `/api/v1/state/{workspace_id}`, and the uploads of states that are too large for it.
//!
//! It may not write outside its tables but for named SQL functions. Nothing here ever answers 301, 302 or 303: a client
//! that follows one of those on a write loses the state silently. Business refusals are 4xx, because clients repeat a
//! 5xx and then hide the reason.

mod caller;
mod protocol;
mod uploads;

use axum::Router;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::{IntoResponse, Response};
use axum::routing::any;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::executors::readers::RunReader;
use plumbline_core::ids::{StateUploadId, WorkspaceId};
use plumbline_core::tfstates::StateError;
use plumbline_core::tfstates::service::{self, StateActor};

use caller::Caller;

pub use protocol::{Call, METHODS, answer, call_of};
pub use uploads::UPLOADS;

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
    let ctx = match caller::authenticate(deps, request.headers()).await? {
        Caller::Person(ctx) => ctx,
        Caller::Run(reader) => return read_shared(deps, &reader, request).await,
    };
    let (workspace, target) = target(request.uri().path())
        .filter(|(workspace, _)| ctx.reaches(*workspace))
        .ok_or_else(|| Problem::not_found("workspace"))?;
    let actor = StateActor::Person(&ctx);
    match target {
        Target::State => answer(deps, &actor, workspace, call_of(request.method(), false)?, request).await,
        Target::Lock => answer(deps, &actor, workspace, call_of(request.method(), true)?, request).await,
        Target::Uploads => uploads::begin(deps, &actor, workspace, request).await,
        Target::Commit(upload) => uploads::commit(deps, &actor, workspace, upload, request).await,
    }
}

/// All that a run password is good for: to read what a workspace shares.
async fn read_shared(deps: &Deps, reader: &RunReader, request: Request<Body>) -> Result<Response, Problem> {
    let (request, _) = request.into_parts();
    let (workspace, target) = target(request.uri.path()).ok_or_else(|| Problem::not_found("workspace"))?;
    let is_read = match target {
        Target::State => call_of(&request.method, false)? == Call::Read,
        Target::Lock | Target::Uploads | Target::Commit(_) => false,
    };
    if !is_read {
        return Err(StateError::NotForExecutors.into());
    }
    protocol::body(service::read_shared(deps, reader, workspace).await?, &request.headers)
}

/// What a path below a workspace's state is about.
#[derive(Clone, Copy)]
enum Target {
    State,
    Lock,
    Uploads,
    Commit(StateUploadId),
}

fn target(path: &str) -> Option<(WorkspaceId, Target)> {
    let segments: Vec<&str> = path.split('/').filter(|segment| !segment.is_empty()).collect();
    let ["api", "v1", "state", id, rest @ ..] = &segments[..] else { return None };
    let target = match rest {
        [] => Target::State,
        ["lock"] => Target::Lock,
        ["uploads"] => Target::Uploads,
        ["uploads", upload, "commit"] => Target::Commit(upload.parse().ok()?),
        _ => return None,
    };
    Some((id.parse().ok()?, target))
}
