//! Runs.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::ids::{RunId, WorkspaceId};
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::protocol::{ArtifactKind, RunCommand};
use plumbline_core::runs::plans::PlanView;
use plumbline_core::runs::touched::{self, UnrecordedResources};
use plumbline_core::runs::{
    self, ArtifactView, LogPage, NewRun, Run, RunError, RunFilter, RunStatus, RunVariable, Step,
};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(create, list))
        .routes(routes!(get))
        .routes(routes!(cancel))
        .routes(routes!(promote))
        .routes(routes!(steps))
        .routes(routes!(logs))
        .routes(routes!(plan))
        .routes(routes!(artifacts))
        .routes(routes!(download))
        .routes(routes!(unrecorded))
}

/// What to run.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct CreateRun {
    /// The workspace.
    workspace_id: WorkspaceId,
    /// What for.
    command: RunCommand,
    /// Another branch than the workspace's; does not change the workspace.
    #[serde(default)]
    branch: Option<String>,
    /// Why, for the history.
    #[serde(default)]
    message: Option<String>,
    /// Variables of this run only; sealed at rest.
    #[serde(default)]
    variables: Vec<RunVariable>,
    /// Apply without a person if the plan is provably empty.
    #[serde(default)]
    auto_approve_if_no_changes: bool,
    /// With the former: skip the empty apply.
    #[serde(default)]
    auto_approve_skip_apply: bool,
    /// Tells policies that the run is meant to destroy.
    #[serde(default)]
    allow_destroy: bool,
}

/// Ask for a run. It waits if it could change a workspace that another run holds.
#[utoipa::path(post, path = "/runs", tag = "runs", request_body = CreateRun,
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same run")),
    responses((status = 201, body = Run, description = "The run was queued, or waits")))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<CreateRun>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, request| {
            let new = NewRun {
                workspace_id: request.workspace_id,
                command: request.command,
                branch: request.branch,
                message: request.message,
                variables: request.variables,
                auto_approve_if_no_changes: request.auto_approve_if_no_changes,
                auto_approve_skip_apply: request.auto_approve_skip_apply,
                allow_destroy: request.allow_destroy,
            };
            let run = runs::service::trigger(tx, &deps, &ctx, &new).await?;
            Ok(Created::at(format!("/api/v1/runs/{}", run.id), run))
        })
        .await?;
    deps.waker.wake(std::time::Duration::ZERO).await;
    Ok(response)
}

/// Which runs.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListRuns {
    /// Of one workspace.
    workspace_id: Option<WorkspaceId>,
    /// In one status.
    status: Option<RunStatus>,
    /// Of one command.
    command: Option<RunCommand>,
    /// Rows at most.
    limit: Option<i64>,
    /// From an earlier page.
    cursor: Option<Uuid>,
}

/// Runs, newest first.
#[utoipa::path(get, path = "/runs", tag = "runs", params(ListRuns),
    responses((status = 200, body = Page<Run>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListRuns>,
) -> Result<Json<Page<Run>>, Problem> {
    let filter = RunFilter { workspace_id: query.workspace_id, status: query.status, command: query.command };
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(runs::service::list(&deps, &ctx, &filter, page).await?))
}

/// One run.
#[utoipa::path(get, path = "/runs/{id}", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Run, description = "The run")))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<Run>, Problem> {
    Ok(Json(runs::service::get(&deps, &ctx, id).await?))
}

/// Why to cancel.
#[derive(Debug, Default, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct CancelRun {
    /// For the history.
    #[serde(default)]
    reason: Option<String>,
}

/// Stop a run: at once before its apply has begun; a begun apply is asked to stop and ends as failed.
#[utoipa::path(post, path = "/runs/{id}/cancel", tag = "runs", params(("id" = Uuid, Path)),
    request_body = CancelRun, responses(
        (status = 200, body = Run, description = "The run afterwards"),
        (status = 409, description = "It has ended")))]
async fn cancel(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
    Body(request): Body<CancelRun>,
) -> Result<Json<Run>, Problem> {
    Ok(Json(runs::service::cancel(&deps, &ctx, id, request.reason.as_deref()).await?))
}

/// Nothing to say: an empty object.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct PromoteRun {}

/// Turn a finished plan-only run into one that can be applied.
#[utoipa::path(post, path = "/runs/{id}/promote", tag = "runs", request_body = PromoteRun,
    params(("id" = Uuid, Path), ("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same run")),
    responses((status = 201, body = Run, description = "The new run, planned anew")))]
async fn promote(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
    once: Once<PromoteRun>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, PromoteRun {}| {
            let run = runs::service::promote(tx, &deps, &ctx, id).await?;
            Ok(Created::at(format!("/api/v1/runs/{}", run.id), run))
        })
        .await?;
    deps.waker.wake(std::time::Duration::ZERO).await;
    Ok(response)
}

/// A list without pages.
#[derive(Debug, Serialize, utoipa::ToSchema)]
struct Items<T> {
    /// All of them.
    items: Vec<T>,
}

/// The steps of a run, in order.
#[utoipa::path(get, path = "/runs/{id}/steps", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Items<Step>, description = "All steps")))]
async fn steps(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<Items<Step>>, Problem> {
    Ok(Json(Items { items: runs::service::steps(&deps, &ctx, id).await? }))
}

/// Which part of which log.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ReadLog {
    /// The step.
    position: i16,
    /// Bytes that are known already.
    offset: Option<i64>,
    /// Bytes at most.
    limit: Option<i64>,
}

/// A step's log from an offset on: only what is new.
#[utoipa::path(get, path = "/runs/{id}/logs", tag = "runs", params(("id" = Uuid, Path), ReadLog),
    responses((status = 200, body = LogPage, description = "A piece of the log")))]
async fn logs(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
    Query(query): Query<ReadLog>,
) -> Result<Json<LogPage>, Problem> {
    let offset = query.offset.unwrap_or(0);
    Ok(Json(runs::logs::read(&deps, &ctx, id, query.position, offset, query.limit).await?))
}

/// The plan: counts, what changes, and the text.
#[utoipa::path(get, path = "/runs/{id}/plan", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = PlanView, description = "The plan")))]
async fn plan(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<PlanView>, Problem> {
    Ok(Json(runs::plans::get(&deps, &ctx, id).await?))
}

/// What a run has produced.
#[utoipa::path(get, path = "/runs/{id}/artifacts", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = Items<ArtifactView>, description = "All artifacts")))]
async fn artifacts(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<Items<ArtifactView>>, Problem> {
    Ok(Json(Items { items: runs::artifacts::list(&deps, &ctx, id).await? }))
}

/// Download an artifact: redirects to a signed URL of the object store.
#[utoipa::path(get, path = "/runs/{id}/artifacts/{kind}", tag = "runs",
    params(("id" = Uuid, Path), ("kind" = String, Path)),
    responses((status = 307, description = "Where the bytes are")))]
async fn download(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, kind)): Path<(RunId, String)>,
) -> Result<Response, Problem> {
    let kind = ArtifactKind::parse(&kind).ok_or(RunError::NotFound("artifact"))?;
    let request = runs::artifacts::download(&deps, &ctx, id, kind).await?;
    Ok((StatusCode::TEMPORARY_REDIRECT, [(header::LOCATION, request.url)]).into_response())
}

/// What a run's apply made and the newest state does not have, with the commands that import it: what to look at after a
/// lost apply.
#[utoipa::path(get, path = "/runs/{id}/unrecorded-resources", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = UnrecordedResources, description = "Resources that exist, or may, and are not in the state")))]
async fn unrecorded(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<UnrecordedResources>, Problem> {
    Ok(Json(touched::unrecorded(&deps, &ctx, id).await?))
}
