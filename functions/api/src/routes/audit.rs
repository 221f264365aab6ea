//! The audit log.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::audit::{self, ChainId, EntryPage, Export, Filter, Verification};
use plumbline_core::ids::{RunId, WorkspaceId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Query;
use crate::caller::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(verify)).routes(routes!(export))
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

/// Checks every hash chain of the caller's scope, and the signed checkpoints. Admins only.
#[utoipa::path(get, path = "/audit/verify", tag = "audit", responses((status = 200, body = Verification)))]
async fn verify(State(deps): State<Deps>, Caller(ctx): Caller) -> Result<Json<Verification>, Problem> {
    Ok(Json(audit::service::verify(&deps, &ctx).await?))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ExportQuery {
    /// In all units: which chain; absent is the platform's.
    #[param(value_type = Option<Uuid>)]
    chain_id: Option<ChainId>,
    /// `next_after` of the page before.
    after: Option<i64>,
    /// Rows per page.
    limit: Option<i64>,
}

/// Entries of one chain as they were hashed, oldest first, with the newest checkpoint: enough to verify the log
/// elsewhere. Admins only.
#[utoipa::path(get, path = "/audit/export", tag = "audit", params(ExportQuery), responses((status = 200, body = Export)))]
async fn export(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ExportQuery>,
) -> Result<Json<Export>, Problem> {
    let after = query.after.unwrap_or(0);
    Ok(Json(audit::service::export(&deps, &ctx, query.chain_id, after, query.limit).await?))
}
