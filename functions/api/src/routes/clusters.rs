//! Kubernetes clusters.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::cloud_accounts::clusters::{self, Cluster, ClusterChange, NewCluster};
use plumbline_core::ids::ClusterId;
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
struct ListClusters {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// Clusters, newest first; of their secrets nobody sees more than that they are there.
#[utoipa::path(get, path = "/clusters", tag = "clusters", params(ListClusters),
    responses((status = 200, body = Page<Cluster>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListClusters>,
) -> Result<Json<Page<Cluster>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(clusters::service::list(&deps, &ctx, page).await?))
}

/// Registers a cluster.
#[utoipa::path(post, path = "/clusters", tag = "clusters", request_body = NewCluster,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = Cluster, description = "It is registered"),
        (status = 409, description = "The business unit has a cluster of this name"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewCluster>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = clusters::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/clusters/{}", made.id), made))
    })
    .await
}

/// One cluster, with its version as `ETag`.
#[utoipa::path(get, path = "/clusters/{id}", tag = "clusters",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = Cluster, description = "It"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ClusterId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = clusters::service::get(&deps, &ctx, id).await?;
    etag::respond(&headers, &found, Some(found.version))
}

/// Edits a cluster; what is absent stays, secrets too.
#[utoipa::path(put, path = "/clusters/{id}", tag = "clusters", request_body = ClusterChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = Cluster, description = "As it is now"),
        (status = 409, description = "Another cluster has this name"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ClusterId>,
    seen: IfMatch,
    Body(change): Body<ClusterChange>,
) -> Result<Response, Problem> {
    let edited = clusters::service::update(&deps, &ctx, id, seen.version, change).await?;
    etag::respond(&HeaderMap::new(), &edited, Some(edited.version))
}

/// Forgets a cluster with its secrets, if nobody uses it.
#[utoipa::path(delete, path = "/clusters/{id}", tag = "clusters", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "It is in use; the answer names by what"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ClusterId>,
) -> Result<StatusCode, Problem> {
    clusters::service::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks the API server whether the kubeconfig gets in.
#[utoipa::path(post, path = "/clusters/{id}/test", tag = "clusters",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn test(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ClusterId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            Ok(TaskAccepted::later(clusters::service::request_test(tx, &deps, &ctx, id).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}
