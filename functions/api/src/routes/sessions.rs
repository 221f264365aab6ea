//! The caller's own sessions.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use plumbline_core::Deps;
use plumbline_core::ids::SessionId;
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::sessions::{self, SessionView};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Path, Query};
use crate::caller::Own;
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(list)).routes(routes!(end))
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

/// The caller's live sessions, newest first.
#[utoipa::path(get, path = "/sessions", tag = "auth", params(ListQuery), responses(
    (status = 200, body = Page<SessionView>),
))]
async fn list(
    State(deps): State<Deps>,
    Own(bearer): Own,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<SessionView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(sessions::own::list(&deps, &bearer, page).await?))
}

/// Ends one of the caller's sessions, with its tokens.
#[utoipa::path(delete, path = "/sessions/{id}", tag = "auth", params(("id" = Uuid, Path)), responses(
    (status = 204, description = "Ended."),
))]
async fn end(
    State(deps): State<Deps>,
    Own(bearer): Own,
    Path(id): Path<SessionId>,
) -> Result<StatusCode, Problem> {
    sessions::own::end(&deps, &bearer, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
