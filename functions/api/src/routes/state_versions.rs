//! Versions of a workspace's state, and what waits in quarantine.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::ids::{QuarantinedStateId, StateVersionId, WorkspaceId};
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::tfstates::service::{self, StateBody};
use plumbline_core::tfstates::{QuarantinedStateView, StateDiff, StateVersionView};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Path, Query};
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list))
        .routes(routes!(get))
        .routes(routes!(download))
        .routes(routes!(diff))
        .routes(routes!(rollback))
        .routes(routes!(list_quarantined))
        .routes(routes!(promote))
        .routes(routes!(discard))
}

/// A page.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListPage {
    /// Rows at most.
    limit: Option<i64>,
    /// From an earlier page.
    cursor: Option<Uuid>,
}

/// Accepted versions, newest first.
#[utoipa::path(get, path = "/workspaces/{id}/state-versions", tag = "state", params(("id" = Uuid, Path), ListPage),
    responses((status = 200, body = Page<StateVersionView>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Query(query): Query<ListPage>,
) -> Result<Json<Page<StateVersionView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(service::list_versions(&deps, &ctx, id, page).await?))
}

/// One version.
#[utoipa::path(get, path = "/state-versions/{id}", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, body = StateVersionView, description = "The version")))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<StateVersionId>,
) -> Result<Json<StateVersionView>, Problem> {
    Ok(Json(service::get_version(&deps, &ctx, id).await?))
}

/// The body of a version; a large one by a redirect to a signed URL. Audited.
#[utoipa::path(get, path = "/state-versions/{id}/download", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, description = "The state"), (status = 307, description = "Where the bytes are")))]
async fn download(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<StateVersionId>,
) -> Result<Response, Problem> {
    Ok(match service::download(&deps, &ctx, id).await? {
        StateBody::Empty => StatusCode::NO_CONTENT.into_response(),
        StateBody::Inline { bytes, .. } => {
            ([(header::CONTENT_TYPE, "application/json")], bytes).into_response()
        }
        StateBody::Elsewhere(there) => {
            (StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, there.url)]).into_response()
        }
    })
}

/// Which version to compare with.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct Against {
    /// Another version; the one before if it is not given.
    against: Option<StateVersionId>,
}

/// What changed between two versions.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct DiffView {
    /// The older version; absent for the first one.
    from: Option<StateVersionId>,
    /// The newer version.
    to: StateVersionId,
    /// What changed.
    #[serde(flatten)]
    diff: StateDiff,
}

/// Resources and outputs that differ between two versions, by address.
#[utoipa::path(get, path = "/state-versions/{id}/diff", tag = "state", params(("id" = Uuid, Path), Against),
    responses((status = 200, body = DiffView, description = "The difference")))]
async fn diff(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<StateVersionId>,
    Query(query): Query<Against>,
) -> Result<Json<DiffView>, Problem> {
    let (from, diff) = service::diff_versions(&deps, &ctx, id, query.against).await?;
    Ok(Json(DiffView { from, to: id, diff }))
}

/// Make an old body the newest version, with a serial of its own.
#[utoipa::path(post, path = "/state-versions/{id}/rollback", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 201, body = StateVersionView, description = "The new version"),
              (status = 409, body = Problem, description = "Current already, or changed meanwhile"),
              (status = 423, body = Problem, description = "The state is locked")))]
async fn rollback(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<StateVersionId>,
) -> Result<Response, Problem> {
    let version = service::rollback(&deps, &ctx, id).await?;
    let location = format!("/api/v1/state-versions/{}", version.id);
    Ok((StatusCode::CREATED, [(header::LOCATION, location)], Json(version)).into_response())
}

/// State bodies that came with a lost lock, newest first.
#[utoipa::path(get, path = "/workspaces/{id}/quarantined-states", tag = "state",
    params(("id" = Uuid, Path), ListPage),
    responses((status = 200, body = Page<QuarantinedStateView>, description = "One page")))]
async fn list_quarantined(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Query(query): Query<ListPage>,
) -> Result<Json<Page<QuarantinedStateView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(service::list_quarantined(&deps, &ctx, id, page).await?))
}

/// Make a quarantined body the newest version.
#[utoipa::path(post, path = "/quarantined-states/{id}/promote", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, body = StateVersionView, description = "The new version"),
              (status = 409, body = Problem, description = "Decided already, or changed meanwhile"),
              (status = 423, body = Problem, description = "The state is locked")))]
async fn promote(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<QuarantinedStateId>,
) -> Result<Json<StateVersionView>, Problem> {
    Ok(Json(service::promote(&deps, &ctx, id).await?))
}

/// Decide against a quarantined body; it stays in the object store.
#[utoipa::path(post, path = "/quarantined-states/{id}/discard", tag = "state", params(("id" = Uuid, Path)),
    responses((status = 200, body = QuarantinedStateView, description = "The decision"),
              (status = 409, body = Problem, description = "Decided already")))]
async fn discard(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<QuarantinedStateId>,
) -> Result<Json<QuarantinedStateView>, Problem> {
    Ok(Json(service::discard(&deps, &ctx, id).await?))
}
