//! Who looks at what right now.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plumbline_core::Deps;
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::presence::{self, PresenceView};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Query};
use crate::caller::Caller;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list, ping))
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

/// What the caller looks at.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Ping {
    /// A unit's slug, or `all` for superadmins; without it, what the request is about.
    #[serde(default)]
    bu_slug: Option<String>,
}

/// Who was there within the last minute, in the caller's units. Superadmins see everybody.
#[utoipa::path(get, path = "/presence", tag = "presence", params(ListQuery), responses(
    (status = 200, body = Page<PresenceView>),
))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<PresenceView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(presence::service::list(&deps, &ctx, page).await?))
}

/// The caller is there. Send it twice a minute.
#[utoipa::path(post, path = "/presence", tag = "presence", request_body = Ping, responses(
    (status = 204, description = "Noted."),
))]
async fn ping(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Body(ping): Body<Ping>,
) -> Result<StatusCode, Problem> {
    presence::service::ping(&deps, &ctx, ping.bu_slug.as_deref()).await?;
    Ok(StatusCode::NO_CONTENT)
}
