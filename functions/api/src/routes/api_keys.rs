//! API keys. Signed-in admins only: no key makes or ends keys.

use axum::Json;
use axum::extract::State;
use axum::http::{StatusCode, header};
use axum::response::{IntoResponse, Response};
use plumbline_core::Deps;
use plumbline_core::api_keys::{self, ApiKeyView, MintedKey, NewApiKey, Rotation};
use plumbline_core::ids::ApiKeyId;
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, revoke))
        .routes(routes!(regenerate))
        .routes(routes!(rotate))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// The unit's keys, newest first, the dead ones included.
#[utoipa::path(get, path = "/api-keys", tag = "api-keys", params(ListQuery), responses(
    (status = 200, body = Page<ApiKeyView>),
    (status = 400, description = "Name one business unit."),
))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<ApiKeyView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(api_keys::service::list(&deps, &ctx, page).await?))
}

/// Makes a key that acts for the caller. The token is shown this once; a repeated request makes another key.
#[utoipa::path(post, path = "/api-keys", tag = "api-keys", request_body = NewApiKey, responses(
    (status = 201, body = MintedKey),
))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Body(new): Body<NewApiKey>,
) -> Result<Response, Problem> {
    Ok(created(api_keys::service::create(&deps, &ctx, &new).await?))
}

/// One key.
#[utoipa::path(get, path = "/api-keys/{id}", tag = "api-keys", params(("id" = Uuid, Path)), responses(
    (status = 200, body = ApiKeyView),
))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Json<ApiKeyView>, Problem> {
    Ok(Json(api_keys::service::get(&deps, &ctx, id).await?))
}

/// Ends a key. Ending an ended one is success.
#[utoipa::path(delete, path = "/api-keys/{id}", tag = "api-keys", params(("id" = Uuid, Path)), responses(
    (status = 200, body = ApiKeyView),
))]
async fn revoke(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Json<ApiKeyView>, Problem> {
    Ok(Json(api_keys::service::revoke(&deps, &ctx, id).await?))
}

/// Gives a key another token, shown this once; the old one is dead at once.
#[utoipa::path(post, path = "/api-keys/{id}/regenerate", tag = "api-keys", params(("id" = Uuid, Path)), responses(
    (status = 200, body = MintedKey),
    (status = 409, description = "The key is dead."),
))]
async fn regenerate(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ApiKeyId>,
) -> Result<Json<MintedKey>, Problem> {
    Ok(Json(api_keys::service::regenerate(&deps, &ctx, id).await?))
}

/// Makes a successor whose token is shown this once; the key itself ends after an overlap.
#[utoipa::path(post, path = "/api-keys/{id}/rotate", tag = "api-keys", params(("id" = Uuid, Path)),
    request_body = Rotation, responses(
        (status = 201, body = MintedKey),
        (status = 409, description = "The key is dead, or was rotated before."),
    ))]
async fn rotate(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<ApiKeyId>,
    Body(rotation): Body<Rotation>,
) -> Result<Response, Problem> {
    Ok(created(api_keys::service::rotate(&deps, &ctx, id, &rotation).await?))
}

fn created(minted: MintedKey) -> Response {
    let location = format!("/api/v1/api-keys/{}", minted.key.id);
    (StatusCode::CREATED, [(header::LOCATION, location)], Json(minted)).into_response()
}
