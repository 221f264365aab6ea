//! The lock of a workspace's state.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::LockView;
use plumbline_core::tfstates::service::{self, StateActor};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Path;
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(get, release)).routes(routes!(accept_next_lineage))
}

/// Who holds the lock, and for how long.
#[utoipa::path(get, path = "/workspaces/{id}/state-lock", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, body = LockView, description = "The lock")))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<Json<LockView>, Problem> {
    Ok(Json(service::get_lock(&deps, &ctx, id).await?))
}

/// Take the lock from its holder. Refused while the holder's executor may still act.
#[utoipa::path(delete, path = "/workspaces/{id}/state-lock", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 204, description = "The lock is free"),
              (status = 409, body = Problem, description = "The holder may still act")))]
async fn release(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<StatusCode, Problem> {
    service::force_unlock(&deps, &StateActor::Person(&ctx), id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Let the next write bring another lineage, once.
#[utoipa::path(post, path = "/workspaces/{id}/accept-next-lineage", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 204, description = "The next write may bring another lineage")))]
async fn accept_next_lineage(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<StatusCode, Problem> {
    service::accept_next_lineage(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
