//! Workspaces, and the short tasks that look into repositories.

use std::time::Duration;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::discovery::{self, DiscoverRequest, ImportRequest};
use plumbline_core::ids::{TaskId, WorkspaceId};
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::runs;
use plumbline_core::workspaces::{
    self, NewWorkspace, TagFilter, Workspace, WorkspaceChange, WorkspaceFilter, deletion, locks,
};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::etag::{self, IfMatch};
use crate::idempotency::{Created, Once, OnceByPath};
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(discover))
        .routes(routes!(import))
        .routes(routes!(get, update, delete))
        .routes(routes!(branches))
        .routes(routes!(unblock))
        .routes(routes!(lock))
        .routes(routes!(unlock))
}

/// Which workspaces.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListWorkspaces {
    /// Exactly this environment.
    environment: Option<String>,
    /// Exactly this region.
    region: Option<String>,
    /// Exactly this account.
    aws_account_id: Option<String>,
    /// The name contains this.
    q: Option<String>,
    /// Has this tag: `key:value`.
    tag: Option<String>,
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// Workspaces, newest first.
#[utoipa::path(get, path = "/workspaces", tag = "workspaces", params(ListWorkspaces),
    responses((status = 200, body = Page<Workspace>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListWorkspaces>,
) -> Result<Json<Page<Workspace>>, Problem> {
    let filter = WorkspaceFilter {
        environment: query.environment,
        region: query.region,
        aws_account_id: query.aws_account_id,
        name_contains: query.q,
        tag: query.tag.as_deref().map(TagFilter::parse).transpose()?,
    };
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(workspaces::service::list(&deps, &ctx, &filter, page).await?))
}

/// Makes a workspace.
#[utoipa::path(post, path = "/workspaces", tag = "workspaces", request_body = NewWorkspace,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = Workspace, description = "It was made"),
        (status = 409, description = "One with the same account, region, environment, repository and directory exists"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewWorkspace>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = workspaces::service::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/workspaces/{}", made.id), made))
    })
    .await
}

/// One workspace, with its version as `ETag`.
#[utoipa::path(get, path = "/workspaces/{id}", tag = "workspaces",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = Workspace, description = "The workspace"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let workspace = workspaces::service::get(&deps, &ctx, id).await?;
    answer(&headers, &workspace)
}

/// Edits a workspace; what is absent stays.
#[utoipa::path(put, path = "/workspaces/{id}", tag = "workspaces", request_body = WorkspaceChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = Workspace, description = "As it is now"),
        (status = 409, description = "Another workspace has this place, or a run is under way in this one"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    seen: IfMatch,
    Body(change): Body<WorkspaceChange>,
) -> Result<Response, Problem> {
    let workspace = workspaces::service::update(&deps, &ctx, id, seen.version, change).await?;
    answer(&HeaderMap::new(), &workspace)
}

/// How to delete.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct DeleteWorkspace {
    /// Also if its state names resources. They stay, without an owner.
    #[serde(default)]
    force: bool,
}

/// Deletes a workspace with its runs and state history. Destroys no resources.
#[utoipa::path(delete, path = "/workspaces/{id}", tag = "workspaces", params(("id" = Uuid, Path), DeleteWorkspace),
    responses(
        (status = 204, description = "It is gone"),
        (status = 409, description = "A run is under way, the state is locked, or it names resources"),
    ))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Query(query): Query<DeleteWorkspace>,
) -> Result<StatusCode, Problem> {
    deletion::delete(&deps, &ctx, id, query.force).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Where a short task's result will be.
#[derive(Debug, Serialize, utoipa::ToSchema)]
pub(super) struct TaskAccepted {
    /// Ask for it under `/api/v1/tasks/{task_id}`.
    task_id: TaskId,
}

impl TaskAccepted {
    pub(super) fn location(task_id: TaskId) -> String {
        format!("/api/v1/tasks/{task_id}")
    }

    pub(super) fn later(task_id: TaskId) -> Created<Self> {
        Created::later(Self::location(task_id), Self { task_id })
    }
}

/// Looks into a repository for directories that could become workspaces.
#[utoipa::path(post, path = "/workspaces/discover", tag = "workspaces", request_body = DiscoverRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses((status = 202, body = TaskAccepted, description = "A task looks; its result has the candidates")))]
async fn discover(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<DiscoverRequest>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, request| {
            Ok(TaskAccepted::later(discovery::service::request_discovery(tx, &deps, &ctx, request).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}

/// Makes workspaces of a repository's directories.
#[utoipa::path(post, path = "/workspaces/import", tag = "workspaces", request_body = ImportRequest,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses((status = 202, body = TaskAccepted, description = "A task imports; its result says what became of each")))]
async fn import(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<ImportRequest>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, request| {
            Ok(TaskAccepted::later(discovery::service::request_import(tx, &deps, &ctx, request).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}

/// Lists the branches of a workspace's repository.
#[utoipa::path(post, path = "/workspaces/{id}/branches", tag = "workspaces",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks the repository; its result has the branches")))]
async fn branches(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            let task_id = workspaces::service::request_branches(tx, &deps, &ctx, id).await?;
            Ok(Created::later(TaskAccepted::location(task_id), TaskAccepted { task_id }))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}

/// Why a workspace may go on.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Unblock {
    /// What was looked at and decided; recorded.
    note: String,
}

/// Lets a blocked workspace take runs again. For admins, after they have looked at what a lost apply left behind.
#[utoipa::path(post, path = "/workspaces/{id}/unblock", tag = "workspaces", request_body = Unblock,
    params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Workspace, description = "As it is now"),
        (status = 409, description = "It is not blocked, or a quarantined state waits for a decision"),
    ))]
async fn unblock(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Body(request): Body<Unblock>,
) -> Result<Response, Problem> {
    deps.db
        .transaction(async |tx| {
            workspaces::service::unblock(tx, &ctx, id, &request.note).await?;
            runs::service::start_waiting(tx, &deps, id).await?;
            Ok::<_, Problem>(())
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    answer(&HeaderMap::new(), &workspaces::service::get(&deps, &ctx, id).await?)
}

/// Why a workspace is locked.
#[derive(Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Lock {
    /// For everybody who meets the lock; 1 to 1,000 characters.
    reason: String,
}

/// Keeps runs that could change the workspace away, until it is unlocked. What plans already stops at its approval, and
/// what applies already is not disturbed; runs that only plan go on. Other people's Terraform cannot take the state's lock.
#[utoipa::path(post, path = "/workspaces/{id}/lock", tag = "workspaces", request_body = Lock, params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Workspace, description = "As it is now; also if the caller held the lock already"),
        (status = 409, description = "Somebody else holds the lock"),
    ))]
async fn lock(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Body(request): Body<Lock>,
) -> Result<Response, Problem> {
    let workspace = deps.db.transaction(async |tx| locks::lock(tx, &ctx, id, &request.reason).await).await?;
    answer(&HeaderMap::new(), &workspace)
}

/// Lets runs go on. For the holder of the lock, and for admins.
#[utoipa::path(post, path = "/workspaces/{id}/unlock", tag = "workspaces", params(("id" = Uuid, Path)),
    responses(
        (status = 200, body = Workspace, description = "As it is now"),
        (status = 409, description = "It is not locked, or by somebody else"),
    ))]
async fn unlock(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<Response, Problem> {
    let workspace = deps.db.transaction(async |tx| locks::unlock(tx, &deps, &ctx, id).await).await?;
    deps.waker.wake(Duration::ZERO).await;
    answer(&HeaderMap::new(), &workspace)
}

fn answer(headers: &HeaderMap, workspace: &Workspace) -> Result<Response, Problem> {
    etag::respond(headers, workspace, Some(workspace.version))
}
