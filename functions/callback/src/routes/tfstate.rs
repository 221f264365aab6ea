//! The workspace's state, for the executor's loopback proxy. These calls go by lock, not by lease: the live holder's
//! write is accepted even after its lease is lost.

use axum::Json;
use axum::body::Body;
use axum::extract::{Request, State};
use axum::response::Response;
use plumbline_api::body::{Body as JsonBody, Path};
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::executors::ExecutorCaller;
use plumbline_core::ids::StateUploadId;
use plumbline_core::protocol::{RunPhase, StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use plumbline_core::tfstates::service::{self, StateActor};
use plumbline_tfstate::{Call, METHODS};

use super::{Route, any_at, post_at};
use crate::caller::Attempt;
use crate::problem::of_executor;

/// Routes of the state.
pub(crate) fn table() -> Vec<Route> {
    let methods = |on_lock: bool| {
        METHODS.iter().filter(|(_, lock, _)| *lock == on_lock).map(|(name, ..)| *name).collect()
    };
    vec![
        any_at("/state", methods(false), state),
        any_at("/state/lock", methods(true), lock),
        post_at("/state/uploads", begin_upload),
        post_at("/state/uploads/{id}/commit", commit_upload),
    ]
}

fn actor(caller: &ExecutorCaller) -> StateActor<'static> {
    StateActor::Executor {
        business_unit_id: caller.business_unit_id,
        run_id: caller.run_id,
        executor_id: caller.executor_id,
        phase: caller.phase,
    }
}

async fn state(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let call = plumbline_tfstate::call_of(request.method(), false)?;
    // Terraform reads the state before it writes it: an apply that lost its lease must be able to deliver. A plan has
    // nothing to deliver, and a token of long ago must not read today's state.
    if call == Call::Read && caller.phase == RunPhase::Plan {
        caller.require_lease().map_err(of_executor)?;
    }
    plumbline_tfstate::answer(&deps, &actor(&caller), caller.workspace_id, call, request).await
}

async fn lock(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    request: Request<Body>,
) -> Result<Response, Problem> {
    let call = plumbline_tfstate::call_of(request.method(), true)?;
    if call == Call::Lock {
        caller.require_lease().map_err(of_executor)?;
    }
    plumbline_tfstate::answer(&deps, &actor(&caller), caller.workspace_id, call, request).await
}

async fn begin_upload(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    JsonBody(begin): JsonBody<StateUploadBegin>,
) -> Result<Json<StateUploadAnswer>, Problem> {
    Ok(Json(service::begin_upload(&deps, &actor(&caller), caller.workspace_id, &begin).await?))
}

async fn commit_upload(
    State(deps): State<Deps>,
    Attempt(caller): Attempt,
    Path(id): Path<StateUploadId>,
) -> Result<Json<StateUploadCommit>, Problem> {
    Ok(Json(service::commit_upload(&deps, &actor(&caller), caller.workspace_id, id).await?))
}
