//! AWS accounts, and the short task that tries their credentials.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::cloud_accounts::aws::{self, AwsAccount, AwsAccountChange, NewAwsAccount};
use plumbline_core::ids::AwsAccountId;
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
struct ListAwsAccounts {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// AWS accounts, newest first; of their secrets nobody sees more than that they are there.
#[utoipa::path(get, path = "/aws-accounts", tag = "aws-accounts", params(ListAwsAccounts),
    responses((status = 200, body = Page<AwsAccount>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListAwsAccounts>,
) -> Result<Json<Page<AwsAccount>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(aws::service::list(&deps, &ctx, page).await?))
}

/// Registers an account.
#[utoipa::path(post, path = "/aws-accounts", tag = "aws-accounts", request_body = NewAwsAccount,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = AwsAccount, description = "It is registered"),
        (status = 409, description = "The business unit has registered this account already"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewAwsAccount>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = aws::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/aws-accounts/{}", made.id), made))
    })
    .await
}

/// One account, with its version as `ETag`.
#[utoipa::path(get, path = "/aws-accounts/{id}", tag = "aws-accounts",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = AwsAccount, description = "It"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AwsAccountId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let found = aws::service::get(&deps, &ctx, id).await?;
    etag::respond(&headers, &found, Some(found.version))
}

/// Edits an account; what is absent stays, secrets too.
#[utoipa::path(put, path = "/aws-accounts/{id}", tag = "aws-accounts", request_body = AwsAccountChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = AwsAccount, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AwsAccountId>,
    seen: IfMatch,
    Body(change): Body<AwsAccountChange>,
) -> Result<Response, Problem> {
    let edited = aws::service::update(&deps, &ctx, id, seen.version, change).await?;
    etag::respond(&HeaderMap::new(), &edited, Some(edited.version))
}

/// Forgets an account with its secrets, if nobody uses it.
#[utoipa::path(delete, path = "/aws-accounts/{id}", tag = "aws-accounts", params(("id" = Uuid, Path)),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "It is in use; the answer names by what"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AwsAccountId>,
) -> Result<StatusCode, Problem> {
    aws::service::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Asks AWS who the credentials are, and tries the roles.
#[utoipa::path(post, path = "/aws-accounts/{id}/test", tag = "aws-accounts",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn test(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<AwsAccountId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            Ok(TaskAccepted::later(aws::service::request_test(tx, &deps, &ctx, id).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}
