//! Azure subscriptions.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::cloud_accounts::azure::{
    self, AzureSubscription, AzureSubscriptionChange, NewAzureSubscription,
};
use plumbline_core::ids::AzureSubscriptionId;
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
struct ListAzureSubscriptions {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// Azure subscriptions, newest first; of their secrets nobody sees more than that they are there.
#[utoipa::path(get, path = "/azure-subscriptions", tag = "azure-subscriptions", params(ListAzureSubscriptions),
    responses((status = 200, body = Page<AzureSubscription>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListAzureSubscriptions>,
) -> Result<Json<Page<AzureSubscription>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(azure::service::list(&deps, &ctx, page).await?))
}

/// Registers a subscription.
#[utoipa::path(post, path = "/azure-subscriptions", tag = "azure-subscriptions", request_body = NewAzureSubscription,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = AzureSubscription, description = "It is registered"),
        (status = 409, description = "The business unit has registered this subscription already"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewAzureSubscription>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = azure::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/azure-subscriptions/{}", made.id), made))
    })
    .await
}

/// One subscription, with its version as `ETag`.
#[utoipa::path(get, path = "/azure-subscriptions/{id}", tag = "azure-subscriptions",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = AzureSubscription, description = "It"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AzureSubscriptionId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = azure::service::get(&deps, &ctx, id).await?;
    etag::respond(&headers, &found, Some(found.version))
}

/// Edits a subscription; what is absent stays, secrets too.
#[utoipa::path(put, path = "/azure-subscriptions/{id}", tag = "azure-subscriptions", request_body = AzureSubscriptionChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = AzureSubscription, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AzureSubscriptionId>,
    seen: IfMatch,
    Body(change): Body<AzureSubscriptionChange>,
) -> Result<Response, Problem> {
    let edited = azure::service::update(&deps, &ctx, id, seen.version, change).await?;
    etag::respond(&HeaderMap::new(), &edited, Some(edited.version))
}

/// Forgets a subscription with its secrets, if nobody uses it.
#[utoipa::path(delete, path = "/azure-subscriptions/{id}", tag = "azure-subscriptions", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "It is in use; the answer names by what"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AzureSubscriptionId>,
) -> Result<StatusCode, Problem> {
    azure::service::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks Azure whether the service principal gets in and sees the subscription.
#[utoipa::path(post, path = "/azure-subscriptions/{id}/test", tag = "azure-subscriptions",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn test(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AzureSubscriptionId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            Ok(TaskAccepted::later(azure::service::request_test(tx, &deps, &ctx, id).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}
