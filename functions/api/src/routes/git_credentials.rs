//! Git credentials: what lets Git into the repositories of a unit. Secrets go in and never come out.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::git_credentials::{
    self, GitCredential, GitCredentialChange, GitCredentialUsage, NewGitCredential, TestGitCredential,
};
use plumbline_core::ids::GitCredentialId;
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use super::workspaces::TaskAccepted;
use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::etag::{self, IfMatch};
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(usage))
        .routes(routes!(test))
}

/// Which page.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListGitCredentials {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// Git credentials, newest first, without their secrets.
#[utoipa::path(get, path = "/git-credentials", tag = "git-credentials", params(ListGitCredentials),
    responses((status = 200, body = Page<GitCredential>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListGitCredentials>,
) -> Result<Json<Page<GitCredential>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(git_credentials::service::list(&deps, &ctx, page).await?))
}

/// Stores a Git credential. For each repository the one with the longest `path_prefix` is used.
#[utoipa::path(post, path = "/git-credentials", tag = "git-credentials", request_body = NewGitCredential,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = GitCredential, description = "It is stored"),
        (status = 409, description = "Another one has this name, or is for this host and path prefix"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewGitCredential>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = git_credentials::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/git-credentials/{}", made.id), made))
    })
    .await
}

/// One Git credential without its secret, with its version as `ETag`.
#[utoipa::path(get, path = "/git-credentials/{id}", tag = "git-credentials",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = GitCredential, description = "The credential"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GitCredentialId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &git_credentials::service::get(&deps, &ctx, id).await?)
}

/// Edits a Git credential; what is absent stays, the secret too. Its host stays always.
#[utoipa::path(patch, path = "/git-credentials/{id}", tag = "git-credentials", request_body = GitCredentialChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = GitCredential, description = "As it is now"),
        (status = 409, description = "Another one has this name, or is for this host and path prefix"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GitCredentialId>,
    seen: IfMatch,
    Body(change): Body<GitCredentialChange>,
) -> Result<Response, Problem> {
    let changed = git_credentials::service::update(&deps, &ctx, id, seen.version, change).await?;
    answer(&HeaderMap::new(), &changed)
}

/// How to delete.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeleteGitCredential {
    /// Also if workspaces use it. Their runs then fail to clone.
    #[serde(default)]
    force: bool,
}

/// Deletes a Git credential and its secret.
#[utoipa::path(delete, path = "/git-credentials/{id}", tag = "git-credentials",
    params(("id" = Uuid, Path), DeleteGitCredential),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "Workspaces use it"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GitCredentialId>,
    Query(query): Query<DeleteGitCredential>,
) -> Result<StatusCode, Problem> {
    git_credentials::service::delete(&deps, &ctx, id, query.force).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The workspaces whose repositories a Git credential is used for.
#[utoipa::path(get, path = "/git-credentials/{id}/usage", tag = "git-credentials", params(("id" = Uuid, Path)),
    responses((status = 200, body = GitCredentialUsage, description = "Who would miss it")))]
async fn usage(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GitCredentialId>,
) -> Result<Json<GitCredentialUsage>, Problem> {
    Ok(Json(git_credentials::service::usage(&deps, &ctx, id).await?))
}

/// Looks at a repository with a Git credential. The result says `ok`, `refused`, `host_key_mismatch` or `unreachable`.
#[utoipa::path(post, path = "/git-credentials/{id}/test", tag = "git-credentials", request_body = TestGitCredential,
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks the repository; its result says what it said")))]
async fn test(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<GitCredentialId>,
    once: Once<TestGitCredential>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, request| {
            let asked = git_credentials::service::request_test(tx, &deps, &ctx, id, request).await?;
            Ok(TaskAccepted::later(asked))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}

fn answer(headers: &HeaderMap, credential: &GitCredential) -> Result<Response, Problem> {
    etag::respond(headers, credential, Some(credential.version))
}
