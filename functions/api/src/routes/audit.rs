//! The audit log.

use axum::Json;
use axum::extract::State;
use chrono::{DateTime, Utc};
use plumbline_core::Deps;
use plumbline_core::audit::{self, ChainId, Chains, EntryPage, Export, Filter, Verification};
use plumbline_core::ids::{RunId, UserId, WorkspaceId};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Query;
use crate::caller::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(verify))
        .routes(routes!(export))
        .routes(routes!(chains))
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
    /// What one person did.
    #[param(value_type = Option<Uuid>)]
    user_id: Option<UserId>,
    /// What was done to one kind of thing, such as `workspace`.
    resource_type: Option<String>,
    /// What was done to one thing.
    resource_id: Option<String>,
    /// Not earlier than this, in RFC 3339.
    from: Option<DateTime<Utc>>,
    /// Earlier than this, in RFC 3339.
    to: Option<DateTime<Utc>>,
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
    let filter = Filter {
        workspace_id: query.workspace_id,
        run_id: query.run_id,
        action: query.action,
        user_id: query.user_id,
        resource_type: query.resource_type,
        resource_id: query.resource_id,
        from: query.from,
        to: query.to,
    };
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

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ChainsQuery {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    #[param(value_type = Option<Uuid>)]
    cursor: Option<ChainId>,
}

/// Where each chain of the caller's scope ends, with the newest checkpoint: what an export begins with. Admins only.
#[utoipa::path(get, path = "/audit/chains", tag = "audit", params(ChainsQuery), responses((status = 200, body = Chains)))]
async fn chains(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ChainsQuery>,
) -> Result<Json<Chains>, Problem> {
    Ok(Json(audit::service::chains(&deps, &ctx, query.cursor, query.limit).await?))
}
