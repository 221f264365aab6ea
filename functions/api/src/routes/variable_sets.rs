//! Variable sets, their variables, and the workspaces that they are attached to.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::ids::{VariableId, VariableSetId, WorkspaceId};
use plumbline_core::page::Page;
use plumbline_core::variables::{
    Attachment, NewVariable, NewVariableSet, Owner, Variable, VariableChange, VariableSet, VariableSetChange,
    service, sets,
};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use super::variables::{Part, answer, create_for};
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
        .routes(routes!(list_variables, create_variable))
        .routes(routes!(get_variable, update_variable, delete_variable))
        .routes(routes!(attachments))
        .routes(routes!(attach, detach))
}

/// Variable sets, newest first.
#[utoipa::path(get, path = "/variable-sets", tag = "variable-sets", params(Part),
    responses((status = 200, body = Page<VariableSet>, description = "One page")))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(part): Query<Part>,
) -> Result<Json<Page<VariableSet>>, Problem> {
    Ok(Json(sets::list(&deps, &ctx, part.request(&deps)).await?))
}

/// Makes a variable set. For admins.
#[utoipa::path(post, path = "/variable-sets", tag = "variable-sets", request_body = NewVariableSet,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = VariableSet, description = "It was made"),
        (status = 409, description = "The unit has one with this name"),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewVariableSet>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, new| {
        let made = sets::create(tx, &deps, &ctx, new).await?;
        Ok(Created::at(format!("/api/v1/variable-sets/{}", made.id), made))
    })
    .await
}

/// One variable set.
#[utoipa::path(get, path = "/variable-sets/{id}", tag = "variable-sets",
    params(("id" = Uuid, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = VariableSet, description = "The set"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let set = sets::get(&deps, &ctx, id).await?;
    etag::respond(&headers, &set, Some(set.version))
}

/// Edits a variable set; what is absent stays. For admins.
#[utoipa::path(patch, path = "/variable-sets/{id}", tag = "variable-sets", request_body = VariableSetChange,
    params(("id" = Uuid, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = VariableSet, description = "As it is now"),
        (status = 409, description = "The unit has another with this name"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
    seen: IfMatch,
    Body(change): Body<VariableSetChange>,
) -> Result<Response, Problem> {
    let set = sets::update(&deps, &ctx, id, seen.version, &change).await?;
    etag::respond(&HeaderMap::new(), &set, Some(set.version))
}

/// Removes a variable set with its variables. For admins.
#[utoipa::path(delete, path = "/variable-sets/{id}", tag = "variable-sets", params(("id" = Uuid, Path)),
    responses((status = 204, description = "It is gone")))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
) -> Result<StatusCode, Problem> {
    sets::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The variables of a set, newest first.
#[utoipa::path(get, path = "/variable-sets/{id}/variables", tag = "variable-sets", params(("id" = Uuid, Path), Part),
    responses((status = 200, body = Page<Variable>, description = "One page")))]
async fn list_variables(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
    Query(part): Query<Part>,
) -> Result<Json<Page<Variable>>, Problem> {
    Ok(Json(service::list(&deps, &ctx, Owner::Set(id), part.request(&deps)).await?))
}

/// Makes a variable of a set. For admins. A repetition under the same key is not told the value again.
#[utoipa::path(post, path = "/variable-sets/{id}/variables", tag = "variable-sets", request_body = NewVariable,
    params(("id" = Uuid, Path),
        ("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = Variable, description = "It was made"),
        (status = 409, description = "The set has one with this key"),
    ))]
async fn create_variable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
    once: Once<NewVariable>,
) -> Result<Response, Problem> {
    create_for(&deps, &ctx, once, Owner::Set(id), &format!("variable-sets/{id}/variables")).await
}

/// One variable of a set.
#[utoipa::path(get, path = "/variable-sets/{id}/variables/{variable_id}", tag = "variable-sets",
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path),
        ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = Variable, description = "The variable"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get_variable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(VariableSetId, VariableId)>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    answer(&headers, &service::get(&deps, &ctx, Owner::Set(id), variable_id).await?)
}

/// Edits a variable of a set; what is absent stays. For admins. A secret stays one unless it gets a new value.
#[utoipa::path(patch, path = "/variable-sets/{id}/variables/{variable_id}", tag = "variable-sets",
    request_body = VariableChange,
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path),
        ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = Variable, description = "As it is now"),
        (status = 412, description = "It was edited meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn update_variable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(VariableSetId, VariableId)>,
    seen: IfMatch,
    Body(change): Body<VariableChange>,
) -> Result<Response, Problem> {
    let after = service::update(&deps, &ctx, Owner::Set(id), variable_id, seen.version, &change).await?;
    answer(&HeaderMap::new(), &after)
}

/// Removes a variable of a set. For admins.
#[utoipa::path(delete, path = "/variable-sets/{id}/variables/{variable_id}", tag = "variable-sets",
    params(("id" = Uuid, Path), ("variable_id" = Uuid, Path)),
    responses((status = 204, description = "It is gone")))]
async fn delete_variable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, variable_id)): Path<(VariableSetId, VariableId)>,
) -> Result<StatusCode, Problem> {
    service::delete(&deps, &ctx, Owner::Set(id), variable_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// The workspaces that a set is attached to by name.
#[utoipa::path(get, path = "/variable-sets/{id}/workspaces", tag = "variable-sets", params(("id" = Uuid, Path), Part),
    responses((status = 200, body = Page<Attachment>, description = "One page")))]
async fn attachments(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<VariableSetId>,
    Query(part): Query<Part>,
) -> Result<Json<Page<Attachment>>, Problem> {
    Ok(Json(sets::attachments(&deps, &ctx, id, part.request(&deps)).await?))
}

/// Attaches a set to a workspace of the same unit; again changes nothing. For admins.
#[utoipa::path(put, path = "/variable-sets/{id}/workspaces/{workspace_id}", tag = "variable-sets",
    params(("id" = Uuid, Path), ("workspace_id" = Uuid, Path)),
    responses((status = 204, description = "It is attached")))]
async fn attach(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, workspace_id)): Path<(VariableSetId, WorkspaceId)>,
) -> Result<StatusCode, Problem> {
    sets::attach(&deps, &ctx, id, workspace_id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Detaches a set from a workspace. For admins.
#[utoipa::path(delete, path = "/variable-sets/{id}/workspaces/{workspace_id}", tag = "variable-sets",
    params(("id" = Uuid, Path), ("workspace_id" = Uuid, Path)),
    responses((status = 204, description = "It is not attached any more")))]
async fn detach(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path((id, workspace_id)): Path<(VariableSetId, WorkspaceId)>,
) -> Result<StatusCode, Problem> {
    sets::detach(&deps, &ctx, id, workspace_id).await?;
    Ok(StatusCode::NO_CONTENT)
}
