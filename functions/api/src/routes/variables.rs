//! Variables of the business unit and of workspaces, what reaches a workspace, and what a run got.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::ids::{RunId, VariableId, WorkspaceId};
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::variables::{
    EffectiveVariables, NewVariable, Owner, Variable, VariableChange, effective, service,
};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

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
        .routes(routes!(list_of_workspace, create_in_workspace))
        .routes(routes!(effective_of_workspace))
        .routes(routes!(get_of_workspace, update_in_workspace, delete_from_workspace))
        .routes(routes!(of_run))
}

/// Which part of a list.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct Part {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

impl Part {
    pub(super) fn request(&self, deps: &Deps) -> PageRequest {
        PageRequest::new(self.limit, self.cursor, &deps.limits)
    }
}

/// Makes a variable of an owner; `place` is where it will be.
pub(super) async fn create_for(
    deps: &Deps,
    ctx: &Ctx,
    once: Once<NewVariable>,
    owner: Owner,
    place: &str,
) -> Result<Response, Problem> {
    once.answer(deps, ctx, async |tx, new| {
        let made = service::create(tx, deps, ctx, owner, &new).await?;
        let without_value = Variable { value: None, ..made.clone() };
        Ok(Created::at(format!("/api/v1/{place}/{}", made.id), made).remembered_as(without_value))
    })
    .await
}

/// One variable with its version as `ETag`.
pub(super) fn answer(headers: &HeaderMap, variable: &Variable) -> Result<Response, Problem> {
    etag::respond(headers, variable, Some(variable.version))
}

/// The variables of the business unit, newest first. Every workspace of the unit gets them.
#[utoipa::path(get, path = "/variables", tag = "variables", params(Part),
    responses((status = 200, body = Page<Variable>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(part): Query<Part>,
) -> Result<Json<Page<Variable>>, Problem> {
    Ok(Json(service::list(&deps, &ctx, Owner::Unit, part.request(&deps)).await?))
}

/// Makes a variable of the business unit. For admins. A repetition under the same key is not told the value again.
#[utoipa::path(post, path = "/variables", tag = "variables", request_body = NewVariable,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = Variable, description = "It was made"),
        (status = 409, description = "The unit has one with this key"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewVariable>,
) -> Result<Response, Problem> {
    create_for(&deps, &ctx, once, Owner::Unit, "variables").await
}

/// One variable of the business unit.
#[utoipa::path(get, path = "/variables/{id}", tag = "variables",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = Variable, description = "The variable"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service::get(&deps, &ctx, Owner::Unit, id).await?)
}

/// Edits a variable of the business unit; what is absent stays. For admins. A secret stays one unless it gets a new value.
#[utoipa::path(patch, path = "/variables/{id}", tag = "variables", request_body = VariableChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = Variable, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableId>,
    seen: IfMatch,
    Body(change): Body<VariableChange>,
) -> Result<Response, Problem> {
    let after = service::update(&deps, &ctx, Owner::Unit, id, seen.version, &change).await?;
    answer(&HeaderMap::new(), &after)
}

/// Removes a variable of the business unit. For admins.
#[utoipa::path(delete, path = "/variables/{id}", tag = "variables", params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is gone")))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableId>,
) -> Result<StatusCode, Problem> {
    service::delete(&deps, &ctx, Owner::Unit, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The variables of a workspace, newest first; not those that it gets from elsewhere.
#[utoipa::path(get, path = "/workspaces/{id}/variables", tag = "variables", params(("id" = Uuid, Path), Part),
    responses((status = 200, body = Page<Variable>, description = "One page")))]
async fn list_of_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    Query(part): Query<Part>,
) -> Result<Json<Page<Variable>>, Problem> {
    Ok(Json(service::list(&deps, &ctx, Owner::Workspace(id), part.request(&deps)).await?))
}

/// Makes a variable of a workspace. A repetition under the same key is not told the value again.
#[utoipa::path(post, path = "/workspaces/{id}/variables", tag = "variables", request_body = NewVariable,
    params(("id" = Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = Variable, description = "It was made"),
        (status = 409, description = "The workspace has one with this key"),
    ))]
async fn create_in_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
    once: Once<NewVariable>,
) -> Result<Response, Problem> {
    create_for(&deps, &ctx, once, Owner::Workspace(id), &format!("workspaces/{id}/variables")).await
}

/// What the next run of a workspace would get: every variable with where it comes from and what it wins over. Unit, then
/// variable sets by rising priority (ties by name), then workspace, then run: the last wins.
#[utoipa::path(get, path = "/workspaces/{id}/variables/effective", tag = "variables", params(("id" = Uuid, Path)),
    responses((status = 200, body = EffectiveVariables, description = "All of them, by key")))]
async fn effective_of_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<WorkspaceId>,
) -> Result<Json<EffectiveVariables>, Problem> {
    Ok(Json(effective::of_workspace(&deps, &ctx, id).await?))
}

/// One variable of a workspace.
#[utoipa::path(get, path = "/workspaces/{id}/variables/{variable_id}", tag = "variables",
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = Variable, description = "The variable"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get_of_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(WorkspaceId, VariableId)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service::get(&deps, &ctx, Owner::Workspace(id), variable_id).await?)
}

/// Edits a variable of a workspace; what is absent stays. A secret stays one unless it gets a new value.
#[utoipa::path(patch, path = "/workspaces/{id}/variables/{variable_id}", tag = "variables",
    request_body = VariableChange,
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path),
        ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = Variable, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update_in_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(WorkspaceId, VariableId)>,
    seen: IfMatch,
    Body(change): Body<VariableChange>,
) -> Result<Response, Problem> {
    let owner = Owner::Workspace(id);
    let after = service::update(&deps, &ctx, owner, variable_id, seen.version, &change).await?;
    answer(&HeaderMap::new(), &after)
}

/// Removes a variable of a workspace.
#[utoipa::path(delete, path = "/workspaces/{id}/variables/{variable_id}", tag = "variables",
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path)),
    responses((status = 204, description = "It is gone")))]
async fn delete_from_workspace(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(WorkspaceId, VariableId)>,
) -> Result<StatusCode, Problem> {
    service::delete(&deps, &ctx, Owner::Workspace(id), variable_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// What terraform gets in a run, with where each value comes from. Pinned when the run first begins; before that, its own.
#[utoipa::path(get, path = "/runs/{id}/variables", tag = "runs", params(("id" = Uuid, Path)),
    responses((status = 200, body = EffectiveVariables, description = "All of them, by key")))]
async fn of_run(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<RunId>,
) -> Result<Json<EffectiveVariables>, Problem> {
    Ok(Json(plumbline_core::runs::variables::list(&deps, &ctx, id).await?))
}
