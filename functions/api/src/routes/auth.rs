//! Sign-in and who one is.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use plumbline_core::Deps;
use plumbline_core::sessions::{self, TokenPair};
use plumbline_core::users::{self, Me};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::{Caller, ClientAddress, bearer};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(refresh))
        .routes(routes!(logout))
        .routes(routes!(config))
        .routes(routes!(me))
}

/// E-mail and password.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Credentials {
    /// The e-mail, in any case.
    email: String,
    /// The password.
    #[schema(format = Password)]
    password: String,
}

/// A refresh token.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct RefreshRequest {
    /// The newest one; it is used up by this call.
    refresh_token: String,
}

/// How people sign in here.
#[derive(Serialize, utoipa::ToSchema)]
struct AuthConfig {
    /// `local`: with e-mail and password.
    mode: &'static str,
    /// Whether an identity provider is connected.
    oidc_enabled: bool,
    /// Whether the command line can sign in through the browser.
    cli_loopback: bool,
}

/// Signs in with e-mail and password.
#[utoipa::path(post, path = "/auth/token", tag = "auth", security(()), request_body = Credentials, responses(
    (status = 200, body = TokenPair),
    (status = 401, description = "E-mail or password is wrong."),
    (status = 429, description = "Too many attempts; see Retry-After."),
))]
async fn login(
    State(deps): State<Deps>,
    ClientAddress(address): ClientAddress,
    Body(given): Body<Credentials>,
) -> Result<Json<TokenPair>, Problem> {
    Ok(Json(sessions::service::login(&deps, &given.email, &given.password, address.as_deref()).await?))
}

/// The next pair of tokens for a refresh token, which is used up.
#[utoipa::path(post, path = "/auth/refresh", tag = "auth", security(()), request_body = RefreshRequest, responses(
    (status = 200, body = TokenPair),
    (status = 401, description = "The token is not valid, was used before, or its session has ended."),
))]
async fn refresh(
    State(deps): State<Deps>,
    Body(given): Body<RefreshRequest>,
) -> Result<Json<TokenPair>, Problem> {
    Ok(Json(sessions::service::refresh(&deps, &given.refresh_token).await?))
}

/// Ends the session of the access token, with all its tokens.
#[utoipa::path(post, path = "/auth/logout", tag = "auth", responses((status = 204, description = "Ended.")))]
async fn logout(State(deps): State<Deps>, headers: HeaderMap) -> Result<StatusCode, Problem> {
    sessions::service::logout(&deps, bearer(&headers)?).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How people sign in here.
#[utoipa::path(get, path = "/auth/config", tag = "auth", security(()), responses((status = 200, body = AuthConfig)))]
async fn config() -> Json<AuthConfig> {
    Json(AuthConfig { mode: "local", oidc_enabled: false, cli_loopback: false })
}

/// The caller.
#[utoipa::path(get, path = "/me", tag = "auth", responses((status = 200, body = Me)))]
async fn me(State(deps): State<Deps>, Caller(ctx): Caller) -> Result<Json<Me>, Problem> {
    Ok(Json(users::service::me(&deps, &ctx).await?))
}
