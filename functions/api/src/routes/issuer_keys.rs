//! Our own issuer: what everybody may read of it, its keys, and another one that signs.

use axum::extract::State;
use axum::http::{HeaderMap, HeaderValue, header};
use axum::response::{IntoResponse as _, Response};
use axum::routing::get;
use axum::{Json, Router};
use plumbline_core::Deps;
use plumbline_core::issuer_keys::service::{self, JWKS_PATH};
use plumbline_core::issuer_keys::{IssuerKeyView, RotateIssuerKey, RotatedIssuerKey};
use plumbline_core::page::{Page, PageRequest};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::Query;
use crate::caller::Caller;
use crate::etag;
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

/// Copies may be this old. The next key is published much longer before it signs.
const CACHED: &str = "public, max-age=300";
/// Nobody shall remember that there was no key yet.
const NOT_CACHED: &str = "no-cache";

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list, rotate))
}

/// The documents of the issuer, at the root of our address: open to everybody, and no part of the API.
pub(crate) fn documents() -> Router<Deps> {
    Router::new().route("/.well-known/openid-configuration", get(discovery)).route(JWKS_PATH, get(jwks))
}

async fn discovery(State(deps): State<Deps>, headers: HeaderMap) -> Result<Response, Problem> {
    document(&headers, &service::discovery(&deps)?, CACHED)
}

async fn jwks(State(deps): State<Deps>, headers: HeaderMap) -> Result<Response, Problem> {
    let keys = service::jwks(&deps).await?;
    document(&headers, &keys, if keys.keys.is_empty() { NOT_CACHED } else { CACHED })
}

fn document(headers: &HeaderMap, body: &impl Serialize, cached: &'static str) -> Result<Response, Problem> {
    let response = etag::respond(headers, body, None)?;
    Ok(([(header::CACHE_CONTROL, HeaderValue::from_static(cached))], response).into_response())
}

#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
struct ListKeys {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// The keys of our own issuer, newest first; never what is secret of them. Superadmins only.
#[utoipa::path(get, path = "/auth/issuer-keys", tag = "auth", params(ListKeys),
    responses((status = 200, body = Page<IssuerKeyView>)))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListKeys>,
) -> Result<Json<Page<IssuerKeyView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(service::list(&deps, &ctx, page).await?))
}

/// Lets the next key sign the tokens of our own issuer. The one before stays published until its tokens are over, unless
/// it has leaked. Superadmins only.
#[utoipa::path(post, path = "/auth/issuer-keys", tag = "auth", request_body = RotateIssuerKey,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = RotatedIssuerKey, description = "Another key signs"),
        (status = 409, description = "The next key is not made, or not published for long enough"),
    ))]
async fn rotate(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<RotateIssuerKey>,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, request| {
        let rotated = service::rotate(&deps, tx, &ctx, &request).await?;
        Ok(Created::at("/api/v1/auth/issuer-keys".to_owned(), rotated))
    })
    .await
}
