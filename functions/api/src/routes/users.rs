//! People, for those who administer them.

use axum::Json;
use axum::extract::State;
use axum::http::StatusCode;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::ids::{BusinessUnitId, UserId};
use plumbline_core::page::{Page, PageRequest};
use plumbline_core::users::{self, Invite, NewUser, Password, UserChange, UserFilter, UserView};
use serde::Deserialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;
use uuid::Uuid;

use crate::body::{Body, Path, Query};
use crate::caller::Caller;
use crate::idempotency::{Created, Once};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(list, create))
        .routes(routes!(get, update, delete))
        .routes(routes!(disable))
        .routes(routes!(enable))
        .routes(routes!(set_password))
        .routes(routes!(invite, revoke_invite))
        .routes(routes!(end_sessions))
}

#[derive(Deserialize, utoipa::IntoParams)]
#[into_params(parameter_in = Query)]
#[serde(deny_unknown_fields)]
struct ListQuery {
    /// The one with this e-mail.
    email: Option<String>,
    /// Members of one unit.
    #[param(value_type = Option<Uuid>)]
    business_unit_id: Option<BusinessUnitId>,
    /// Rows per page.
    limit: Option<i64>,
    /// `next_cursor` of the page before.
    cursor: Option<Uuid>,
}

/// A password that somebody else will have to change.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct OneTimePassword {
    /// At least 12 characters.
    #[schema(format = Password)]
    password: Password,
}

/// People, newest first: everybody for a superadmin, otherwise members of the units where the caller is admin.
#[utoipa::path(get, path = "/users", tag = "users", params(ListQuery), responses(
    (status = 200, body = Page<UserView>),
))]
async fn list(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Query(query): Query<ListQuery>,
) -> Result<Json<Page<UserView>>, Problem> {
    let filter = UserFilter { email: query.email, business_unit_id: query.business_unit_id };
    let page = PageRequest::new(query.limit, query.cursor, &deps.limits);
    Ok(Json(users::service::list(&deps, &ctx, &filter, page).await?))
}

/// Makes somebody: with a password that they must change when they sign in, or without one, to be invited. A unit's admin
/// names at least one of their own units.
#[utoipa::path(post, path = "/users", tag = "users", request_body = NewUser,
    params(("Idempotency-Key" = Option<String>, Header, description = "Makes a repetition answer what the first did.")),
    responses(
        (status = 201, body = UserView),
        (status = 409, description = "The e-mail is taken, a unit is archived, or the first request with the key is under way."),
    ))]
async fn create(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    once: Once<NewUser>,
) -> Result<Response, Problem> {
    let checked = users::changes::check_new(&deps, &ctx, once.body().clone()).await?;
    once.answer(&deps, &ctx, async |tx, _| {
        let made = users::changes::create(tx, &deps, &ctx, checked).await?;
        Ok(Created::at(format!("/api/v1/users/{}", made.id), made))
    })
    .await
}

/// One person.
#[utoipa::path(get, path = "/users/{id}", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 200, body = UserView),
))]
async fn get(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<Json<UserView>, Problem> {
    Ok(Json(users::service::get(&deps, &ctx, id).await?))
}

/// Changes a person's name, power and memberships, all or nothing.
#[utoipa::path(patch, path = "/users/{id}", tag = "users", params(("id" = Uuid, Path)), request_body = UserChange,
    responses(
        (status = 200, body = UserView),
        (status = 409, description = "The last superadmin would go, or a unit is archived."),
    ))]
async fn update(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
    Body(change): Body<UserChange>,
) -> Result<Json<UserView>, Problem> {
    Ok(Json(users::changes::update(&deps, &ctx, id, change).await?))
}

/// Removes a person. What they did keeps their id; their sessions end at once.
#[utoipa::path(delete, path = "/users/{id}", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 204, description = "Gone."),
    (status = 409, description = "The last superadmin would go."),
))]
async fn delete(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<StatusCode, Problem> {
    users::changes::delete(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Keeps a person out. Their sessions and tokens end at once.
#[utoipa::path(post, path = "/users/{id}/disable", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 200, body = UserView),
    (status = 409, description = "The last superadmin would go."),
))]
async fn disable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<Json<UserView>, Problem> {
    Ok(Json(users::changes::disable(&deps, &ctx, id).await?))
}

/// Lets a disabled person in again.
#[utoipa::path(post, path = "/users/{id}/enable", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 200, body = UserView),
))]
async fn enable(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<Json<UserView>, Problem> {
    Ok(Json(users::changes::enable(&deps, &ctx, id).await?))
}

/// Gives a person a password that they must change when they sign in. Their sessions end at once.
#[utoipa::path(put, path = "/users/{id}/password", tag = "users", params(("id" = Uuid, Path)),
    request_body = OneTimePassword, responses((status = 204, description = "Set.")))]
async fn set_password(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
    Body(given): Body<OneTimePassword>,
) -> Result<StatusCode, Problem> {
    users::credentials::set_password(&deps, &ctx, id, &given.password).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// A one-time token with which the person sets a password of their own. It takes the place of an older one, and is shown
/// only here.
#[utoipa::path(post, path = "/users/{id}/invite", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 200, body = Invite),
    (status = 409, description = "The account is disabled."),
))]
async fn invite(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<Json<Invite>, Problem> {
    Ok(Json(users::credentials::invite(&deps, &ctx, id).await?))
}

/// Voids a person's invitation. That there is none is no error.
#[utoipa::path(delete, path = "/users/{id}/invite", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 204, description = "Void."),
))]
async fn revoke_invite(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<StatusCode, Problem> {
    users::credentials::revoke_invite(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Ends every session of a person.
#[utoipa::path(delete, path = "/users/{id}/sessions", tag = "users", params(("id" = Uuid, Path)), responses(
    (status = 204, description = "Ended."),
))]
async fn end_sessions(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(id): Path<UserId>,
) -> Result<StatusCode, Problem> {
    users::changes::end_sessions(&deps, &ctx, id).await?;
    Ok(StatusCode::NO_CONTENT)
}
