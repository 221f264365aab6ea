//! The secrets that access tokens are signed with: which there are, and a new one.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::sessions::jwt_secrets::{self, JwtSecretView, RotateJwtSecret};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::Query;
use crate::caller::Caller;
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list, rotate))
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListSecrets {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// The secrets that access tokens are signed with, newest first; never what they are. Superadmins only.
#[utoipa::path(get, path = "/auth/jwt-secrets", tag = "auth", params(ListSecrets),
    responses((status = 200, body = Page<JwtSecretView>)))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListSecrets>,
) -> Result<Json<Page<JwtSecretView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(jwt_secrets::list(&deps, &ctx, page).await?))
}

/// Makes the secret that signs access tokens from now on. Tokens of the one before are accepted for a while: everybody
/// stays signed in. Superadmins only.
#[utoipa::path(post, path = "/auth/jwt-secrets", tag = "auth", request_body = RotateJwtSecret,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses((status = 201, body = JwtSecretView, description = "It signs")))]
async fn rotate(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<RotateJwtSecret>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, request| {
        let made = jwt_secrets::rotate(&deps, tx, &ctx, &request).await?;
        Ok(Created::at("/api/v1/auth/jwt-secrets".to_owned(), made))
    })
    .await
}
