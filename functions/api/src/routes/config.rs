//! Tunables of the platform.

use std::collections::BTreeMap;

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::config::{self, HistoryEntry, SettingView};
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::etag::{self, IfMatch};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(get, set, unset)).routes(routes!(history))
}

/// The new value of a tunable.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct NewValue {
    /// A boolean, a number or a text, as the tunable's type says.
    #[schema(value_type = plumbline_core::config::Value)]
    value: serde_json::Value,
}

/// A part of a history.
#[derive(Debug, Deserialize, utoipa::IntoParams)]
#[serde(deny_unknown_fields)]
#[into_params(parameter_in = Query)]
pub(super) struct HistoryQuery {
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

impl HistoryQuery {
    pub(super) fn page(&self, deps: &Deps) -> PageRequest {
        PageRequest::new(self.limit, self.cursor, &deps.limits)
    }
}

/// Every tunable by key, with what holds and what it may be. Admins only; superadmins change them.
#[utoipa::path(get, path = "/runtime-config", tag = "config",
    responses((status = 200, body = BTreeMap<String, SettingView>)))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
) -> Result<Json<BTreeMap<&'static str, SettingView>>, Problem> {
    Ok(Json(config::service::list_tunables(&deps, &ctx).await?))
}

/// One tunable, with its version as `ETag`.
#[utoipa::path(get, path = "/runtime-config/{key}", tag = "config",
    params(("key" = String, Path), ("If-None-Match" = Option<String>, Header, description = "An ETag from before")),
    responses(
        (status = 200, body = SettingView, description = "The tunable"),
        (status = 304, description = "It is as the caller knows it"),
    ))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(key): Path<String>,
    headers: HeaderMap,
) -> Result<Response, Problem> {
    let tunable = config::service::get_tunable(&deps, &ctx, &key).await?;
    etag::respond(&headers, &tunable, Some(tunable.version))
}

/// Sets a tunable. Superadmins only.
#[utoipa::path(put, path = "/runtime-config/{key}", tag = "config", request_body = NewValue,
    params(("key" = String, Path), ("If-Match" = String, Header, description = "The ETag that was edited, or *")),
    responses(
        (status = 200, body = SettingView, description = "As it is now"),
        (status = 412, description = "It was changed meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn set(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(key): Path<String>,
    seen: IfMatch,
    Body(new): Body<NewValue>,
) -> Result<Response, Problem> {
    let tunable = config::service::set_tunable(&deps, &ctx, &key, seen.version, Some(&new.value)).await?;
    etag::respond(&HeaderMap::new(), &tunable, Some(tunable.version))
}

/// Takes a tunable's value away: its default holds again. Superadmins only.
#[utoipa::path(delete, path = "/runtime-config/{key}", tag = "config",
    params(("key" = String, Path), ("If-Match" = String, Header, description = "The ETag that was seen, or *")),
    responses(
        (status = 204, description = "The default holds"),
        (status = 412, description = "It was changed meanwhile"),
        (status = 428, description = "If-Match is missing"),
    ))]
async fn unset(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(key): Path<String>,
    seen: IfMatch,
) -> Result<StatusCode, Problem> {
    config::service::set_tunable(&deps, &ctx, &key, seen.version, None).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Who changed a tunable, when, and from what to what; of secrets only that they were changed. Superadmins only.
#[utoipa::path(get, path = "/runtime-config/{key}/history", tag = "config",
    params(("key" = String, Path), HistoryQuery), responses((status = 200, body = Page<HistoryEntry>)))]
async fn history(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(key): Path<String>,
    Query(query): Query<HistoryQuery>,
) -> Result<Json<Page<HistoryEntry>>, Problem> {
    Ok(Json(config::service::tunable_history(&deps, &ctx, &key, query.page(&deps)).await?))
}
