//! The queue, for operators; and the results of short tasks, for whoever asked for them.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::ids::TaskId;
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::tasks::{TaskFilter, TaskKind, TaskStatus, TaskView, operators};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Path, Query};
use crate::caller::Caller;
use crate::idempotency::{Created, OnceByPath};
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get)).routes(routes!(replay))
}

/// Which tasks.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListTasks {
    /// In one status.
    status: Option<TaskStatus>,
    /// Of one kind.
    kind: Option<TaskKind>,
    /// About one row: a run, a workspace.
    subject_id: Option<Uuid>,
    /// Rows at most.
    limit: Option<i64>,
    /// From an earlier page.
    cursor: Option<Uuid>,
}

/// Queued, running and finished tasks, newest first.
#[utoipa::path(get, path = "/tasks", tag = "tasks", params(ListTasks),
    responses((status = 200, body = Page<TaskView>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListTasks>,
) -> Result<Json<Page<TaskView>>, Problem> {
    let filter = TaskFilter { status: query.status, kind: query.kind, subject_id: query.subject_id };
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(operators::list(&deps, &ctx, &filter, page).await?))
}

/// One task, with its result once it is done.
#[utoipa::path(get, path = "/tasks/{id}", tag = "tasks", params(("id" = Uuid, Path)),
    responses((status = 200, body = TaskView, description = "The task")))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<TaskId>,
) -> Result<Json<TaskView>, Problem> {
    Ok(Json(operators::get(&deps, &ctx, id).await?))
}

/// Try a dead letter once more: a new task, linked to the old one.
#[utoipa::path(post, path = "/tasks/{id}/replay", tag = "tasks",
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskView, description = "The new task")))]
async fn replay(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<TaskId>,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, ()| {
            let task = operators::replay(tx, &deps, &ctx, id).await?;
            Ok(Created::later(format!("/api/v1/tasks/{}", task.id), task))
        })
        .await?;
    deps.waker.wake(std::time::Duration::ZERO).await;
    Ok(response)
}
