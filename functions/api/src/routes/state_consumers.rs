//! Whose runs may read the outputs of a workspace's state.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::tfstates::{StateConsumer, service};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::{Body, Path};
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list, share))
}

/// Whose runs may read the outputs; at most 200, so there are no pages.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct StateConsumers {
    /// By name.
    items: Vec<StateConsumer>,
}

/// The whole list, as it shall be.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct ShareState {
    /// Workspaces of the same unit; none ends all sharing.
    #[schema(value_type = Vec<Uuid>)]
    workspace_ids: Vec<WorkspaceId>,
}

/// The workspaces whose runs may read this one's outputs.
#[utoipa::path(get, path = "/workspaces/{id}/state-consumers", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, body = StateConsumers, description = "All of them")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<Json<StateConsumers>, Problem> {
    Ok(Json(StateConsumers { items: service::list_consumers(&deps, &ctx, id).await? }))
}

/// Lets the runs of these workspaces, and of no others, read this one's outputs with `terraform_remote_state`. They never
/// see its resources.
#[utoipa::path(put, path = "/workspaces/{id}/state-consumers", tag = "state", request_body = ShareState,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = StateConsumers, description = "As it is now"),
        (status = 422, description = "One is not a workspace of the unit, or is this one"),
    ))]
async fn share(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Body(request): Body<ShareState>,
) -> Result<Json<StateConsumers>, Problem> {
    let shared = deps.db.transaction(async |tx| service::share(tx, &ctx, id, &request.workspace_ids).await);
    Ok(Json(StateConsumers { items: shared.await? }))
}
