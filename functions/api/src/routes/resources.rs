//! Searching what the newest states of all workspaces contain.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::ids::WorkspaceId;
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::resources::{ResourceError, ResourceView, Search, service};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::Query;
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(search))
}

/// Which resources.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct SearchResources {
    /// Words that must all occur in address, id, ARN, provider or names; parts of words too, in any case.
    q: Option<String>,
    /// Of one type, such as `aws_instance`.
    #[serde(rename = "type")]
    #[param(rename = "type")]
    kind: Option<String>,
    /// Of one provider: its source or the end of it, such as `aws` or `hashicorp/aws`.
    provider: Option<String>,
    /// Of one workspace.
    workspace_id: Option<WorkspaceId>,
    /// Rows at most.
    limit: Option<i64>,
    /// From an earlier page.
    cursor: Option<Uuid>,
}

/// Resources in the newest states of the workspaces that the caller sees; those that were indexed last come first. A state
/// is in the index a minute after it was written at the latest, sooner after an apply.
#[utoipa::path(get, path = "/resources", tag = "state", params(SearchResources),
    responses((status = 200, body = Page<ResourceView>, description = "One page"),
              (status = 422, body = Problem, description = "The search is no search")))]
async fn search(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<SearchResources>,
) -> Result<Json<Page<ResourceView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    let search = Search::new(query.q.as_deref(), query.kind, query.provider, query.workspace_id)
        .map_err(ResourceError::from)?;
    Ok(Json(service::search(&deps, &ctx, &search, page).await?))
}
