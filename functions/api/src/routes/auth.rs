//! Sign-in, who one is, and the end of it.

use axum::Json;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use plumbline_core::Deps;
use plumbline_core::oidc_logins;
use plumbline_core::oidc_logins::settings::Mode;
use plumbline_core::oidc_logins::trade::CodeTrade;
use plumbline_core::sessions::{self, TokenPair};
use plumbline_core::users::{self, Me, Password};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::Body;
use crate::caller::{Caller, Client, Own, bearer};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .routes(routes!(login))
        .routes(routes!(refresh))
        .routes(routes!(logout))
        .routes(routes!(logout_all))
        .routes(routes!(accept_invite))
        .routes(routes!(trade))
        .routes(routes!(config))
        .routes(routes!(me))
        .routes(routes!(change_password))
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

/// An invitation, and the password that its bearer wants.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Acceptance {
    /// As it was handed over.
    token: String,
    /// At least 12 characters.
    #[schema(format = Password)]
    password: Password,
}

/// An old and a new password.
#[derive(Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct PasswordChange {
    /// The one that is good now.
    #[schema(format = Password)]
    current_password: Password,
    /// At least 12 characters, and another one.
    #[schema(format = Password)]
    new_password: Password,
}

/// How people sign in here.
#[derive(Serialize, utoipa::ToSchema)]
struct AuthConfig {
    /// `local` with e-mail and password, `oidc` through the identity provider, `both` either way.
    mode: &'static str,
    /// Whether people can sign in through an identity provider.
    oidc_enabled: bool,
    /// The identity provider's issuer, where people sign in through it.
    oidc_issuer: Option<String>,
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
    Client(origin): Client,
    Body(given): Body<Credentials>,
) -> Result<Json<TokenPair>, Problem> {
    Ok(Json(sessions::service::login(&deps, &given.email, &given.password, &origin).await?))
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

/// Ends every session of the caller, with all their tokens. Open to those who must change their password first.
#[utoipa::path(post, path = "/auth/logout-all", tag = "auth", responses((status = 204, description = "Ended.")))]
async fn logout_all(State(deps): State<Deps>, Own(bearer): Own) -> Result<StatusCode, Problem> {
    sessions::own::end_everywhere(&deps, &bearer).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// Sets the password of whoever was invited. The token is used up; sign in with the password afterwards.
#[utoipa::path(post, path = "/auth/accept-invite", tag = "auth", security(()), request_body = Acceptance, responses(
    (status = 204, description = "The password is set."),
    (status = 401, description = "The invitation was used, replaced or revoked, or has expired."),
    (status = 429, description = "Too many attempts; see Retry-After."),
))]
async fn accept_invite(
    State(deps): State<Deps>,
    Client(origin): Client,
    Body(given): Body<Acceptance>,
) -> Result<StatusCode, Problem> {
    users::credentials::accept_invite(&deps, &given.token, &given.password, &origin).await?;
    Ok(StatusCode::NO_CONTENT)
}

/// How people sign in here.
#[utoipa::path(get, path = "/auth/config", tag = "auth", security(()), responses((status = 200, body = AuthConfig)))]
async fn config(State(deps): State<Deps>) -> Result<Json<AuthConfig>, Problem> {
    let (mode, issuer) = oidc_logins::settings::advertised(&deps.db.conn().await?, &deps).await?;
    let enabled = mode != Mode::Local && issuer.is_some();
    Ok(Json(AuthConfig {
        mode: mode.as_str(),
        oidc_enabled: enabled,
        oidc_issuer: issuer.filter(|_| enabled),
        cli_loopback: enabled,
    }))
}

/// Trades the one-time code of a sign-in through the identity provider for tokens. A code is good for a minute and once;
/// if it comes twice, the session that it opened ends.
#[utoipa::path(post, path = "/auth/oidc/token", tag = "auth", security(()), request_body = CodeTrade, responses(
    (status = 200, body = TokenPair),
    (status = 401, description = "The code was used, has expired, or belongs to another program."),
    (status = 429, description = "Too many attempts; see Retry-After."),
))]
async fn trade(
    State(deps): State<Deps>,
    Client(origin): Client,
    Body(given): Body<CodeTrade>,
) -> Result<Json<TokenPair>, Problem> {
    Ok(Json(oidc_logins::trade::trade(&deps, &given, &origin).await?))
}

/// The caller. Open to those who must change their password first.
#[utoipa::path(get, path = "/me", tag = "auth", responses((status = 200, body = Me)))]
async fn me(State(deps): State<Deps>, Caller(ctx): Caller) -> Result<Json<Me>, Problem> {
    Ok(Json(users::service::me(&deps, &ctx).await?))
}

/// Changes the caller's password. Their other sessions end; this one goes on.
#[utoipa::path(put, path = "/me/password", tag = "auth", request_body = PasswordChange, responses(
    (status = 204, description = "Changed."),
    (status = 429, description = "Too many attempts; see Retry-After."),
))]
async fn change_password(
    State(deps): State<Deps>,
    Own(bearer): Own,
    Body(given): Body<PasswordChange>,
) -> Result<StatusCode, Problem> {
    let PasswordChange { current_password, new_password } = given;
    users::credentials::change_own_password(&deps, &bearer, &current_password, &new_password).await?;
    Ok(StatusCode::NO_CONTENT)
}
