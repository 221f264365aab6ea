//! Outputs of states, for those who may not read the states themselves.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderName, header};
use plumbline_core::Deps;
use plumbline_core::ids::{StateVersionId, WorkspaceId};
use plumbline_core::tfstates::{StateOutput, StateOutputs, StateVersionView, service};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::{Path, Query};
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(of_version)).routes(routes!(of_workspace))
}

/// What to show.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Shown {
    /// Also show the values of sensitive outputs. Needs the permission to read states, and is audited.
    #[serde(default)]
    sensitive: bool,
}

/// The outputs of a state.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct OutputsView {
    /// The version; absent if there is no state yet.
    state_version_id: Option<StateVersionId>,
    /// Its serial.
    serial: Option<i64>,
    /// At most 1,000, in the order of the state.
    items: Vec<StateOutput>,
    /// Whether there are more.
    truncated: bool,
}

impl OutputsView {
    fn of(version: &StateVersionView, outputs: StateOutputs) -> Self {
        let StateOutputs { items, truncated } = outputs;
        Self { state_version_id: Some(version.id), serial: Some(version.serial), items, truncated }
    }
}

/// Values may be secrets: nobody between us and the client may keep them.
type Unkept<T> = ([(HeaderName, &'static str); 1], Json<T>);

fn unkept<T>(body: T) -> Unkept<T> {
    ([(header::CACHE_CONTROL, "no-store")], Json(body))
}

/// The outputs of a version; the values of sensitive ones are withheld.
#[utoipa::path(get, path = "/state-versions/{id}/outputs", tag = "state", params(("id" = Uuid, Path), Shown),
    responses((status = 200, body = OutputsView, description = "The outputs"),
              (status = 409, body = Problem, description = "The state is encrypted, or no state")))]
async fn of_version(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<StateVersionId>,
    Query(query): Query<Shown>,
) -> Result<Unkept<OutputsView>, Problem> {
    let (version, outputs) = service::version_outputs(&deps, &ctx, id, query.sensitive).await?;
    Ok(unkept(OutputsView::of(&version, outputs)))
}

/// The outputs of a workspace's newest state; the values of sensitive ones are withheld.
#[utoipa::path(get, path = "/workspaces/{id}/outputs", tag = "state", params(("id" = Uuid, Path), Shown),
    responses((status = 200, body = OutputsView, description = "The outputs; none if there is no state yet"),
              (status = 409, body = Problem, description = "The state is encrypted, or no state")))]
async fn of_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Query(query): Query<Shown>,
) -> Result<Unkept<OutputsView>, Problem> {
    let found = service::workspace_outputs(&deps, &ctx, id, query.sensitive).await?;
    Ok(unkept(match found {
        Some((version, outputs)) => OutputsView::of(&version, outputs),
        None => OutputsView { state_version_id: None, serial: None, items: Vec::new(), truncated: false },
    }))
}
