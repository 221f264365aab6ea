//! The audit log.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::audit::{self, EntryPage, Filter};
use plumbline_core::ids::{RunId, WorkspaceId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::Query;
use crate::caller::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Entries of one workspace.
    #[param(value_type = Option<Uuid>)]
    workspace_id: Option<WorkspaceId>,
    /// Entries of one run.
    #[param(value_type = Option<Uuid>)]
    run_id: Option<RunId>,
    /// Entries of one action, such as `run.approve`.
    action: Option<String>,
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<String>,
}

/// The entries of the caller's scope, newest first. Admins only.
#[utoipa::path(get, path = "/audit", tag = "audit", params(ListQuery), responses((status = 200, body = EntryPage)))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<EntryPage>, Problem> {
    let filter = Filter { workspace_id: query.workspace_id, run_id: query.run_id, action: query.action };
    Ok(Json(audit::service::list(&deps, &ctx, &filter, query.cursor.as_deref(), query.limit).await?))
}
