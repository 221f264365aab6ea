//! GCP projects.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::cloud_accounts::gcp::{self, GcpProject, GcpProjectChange, NewGcpProject};
use plumbline_core::ids::GcpProjectId;
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::workspaces::TaskAccepted;
use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::etag::{self, IfMatch};
use crate::idempotency::{Created, Once, OnceByPath};
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(test))
}

/// The part of the list to show.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListGcpProjects {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// GCP projects, newest first; of their secrets nobody sees more than that they are there.
#[utoipa::path(get, path = "/gcp-projects", tag = "gcp-projects", params(ListGcpProjects),
    responses((status = 200, body = Page<GcpProject>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListGcpProjects>,
) -> Result<Json<Page<GcpProject>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(gcp::service::list(&deps, &ctx, page).await?))
}

/// Registers a project.
#[utoipa::path(post, path = "/gcp-projects", tag = "gcp-projects", request_body = NewGcpProject,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = GcpProject, description = "It is registered"),
        (status = 409, description = "The business unit has registered this project already"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewGcpProject>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = gcp::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/gcp-projects/{}", made.id), made))
    })
    .await
}

/// One project, with its version as `ETag`.
#[utoipa::path(get, path = "/gcp-projects/{id}", tag = "gcp-projects",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = GcpProject, description = "It"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GcpProjectId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = gcp::service::get(&deps, &ctx, id).await?;
    etag::respond(&headers, &found, Some(found.version))
}

/// Edits a project; what is absent stays, secrets too.
#[utoipa::path(put, path = "/gcp-projects/{id}", tag = "gcp-projects", request_body = GcpProjectChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = GcpProject, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GcpProjectId>,
    seen: IfMatch,
    Body(change): Body<GcpProjectChange>,
) -> Result<Response, Problem> {
    let edited = gcp::service::update(&deps, &ctx, id, seen.version, change).await?;
    etag::respond(&HeaderMap::new(), &edited, Some(edited.version))
}

/// Forgets a project with its secrets, if nobody uses it.
#[utoipa::path(delete, path = "/gcp-projects/{id}", tag = "gcp-projects", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "It is in use; the answer names by what"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GcpProjectId>,
) -> Result<StatusCode, Problem> {
    gcp::service::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks Google whether the key of the service account works.
#[utoipa::path(post, path = "/gcp-projects/{id}/test", tag = "gcp-projects",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn test(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GcpProjectId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            Ok(TaskAccepted::later(gcp::service::request_test(tx, &deps, &ctx, id).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}
