//! Sign-in of CI systems, and the rules that say whose tokens are taken.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::ci_logins::{self, CiKey, CiLogin, NewTrustRule, TrustRuleView};
use plumbline_core::ids::TrustRuleId;
use plumbline_core::page::{Page, PageRequest};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::{Caller, Client};
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(login)).routes(routes!(list, create)).routes(routes!(get, delete))
}

/// Trades the identity token of a CI job for a short API key.
#[utoipa::path(post, path = "/auth/ci-token", tag = "auth", security(()), request_body = CiLogin, responses(
    (status = 200, body = CiKey),
    (status = 401, description = "The token is not believed, or no trust rule takes it."),
    (status = 409, description = "Several trust rules take it; name one."),
    (status = 422, description = "Neither a business unit nor a trust rule is named."),
    (status = 429, description = "Too many attempts; see Retry-After."),
    (status = 503, description = "The keys of the issuer are being fetched; see Retry-After."),
))]
async fn login(
    State(deps): State<Deps>,
    Client(origin): Client,
    Body(wish): Body<CiLogin>,
) -> Result<Json<CiKey>, Problem> {
    Ok(Json(ci_logins::service::login(&deps, &wish, &origin).await?))
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

/// The unit's trust rules, newest first.
#[utoipa::path(get, path = "/ci-trust-rules", tag = "api-keys", params(ListQuery), responses(
    (status = 200, body = Page<TrustRuleView>),
    (status = 400, description = "Name one business unit."),
))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<TrustRuleView>>, Problem> {
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(ci_logins::service::list(&deps, &ctx, page).await?))
}

/// Says whose tokens are taken, and for what.
#[utoipa::path(post, path = "/ci-trust-rules", tag = "api-keys", request_body = NewTrustRule,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = TrustRuleView),
        (status = 409, description = "The name is taken, or the first request with the key is under way."),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewTrustRule>,
) -> Result<Response, Problem> {
    let response = once
        .answer(&deps, &ctx, async |tx, new| {
            let made = ci_logins::service::create(tx, &deps, &ctx, &new).await?;
            Ok(Created::at(format!("/api/v1/ci-trust-rules/{}", made.id), made))
        })
        .await?;
    deps.waker.wake(std::time::Duration::ZERO).await;
    Ok(response)
}

/// One trust rule.
#[utoipa::path(get, path = "/ci-trust-rules/{id}", tag = "api-keys", params(("id" = Uuid, Path)), responses(
    (status = 200, body = TrustRuleView),
))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<TrustRuleId>,
) -> Result<Json<TrustRuleView>, Problem> {
    Ok(Json(ci_logins::service::get(&deps, &ctx, id).await?))
}

/// Removes a trust rule; the keys that it gave are dead with it.
#[utoipa::path(delete, path = "/ci-trust-rules/{id}", tag = "api-keys", params(("id" = Uuid, Path)), responses(
    (status = 204, description = "Gone."),
))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<TrustRuleId>,
) -> Result<StatusCode, Problem> {
    ci_logins::service::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
