//! Who is behind a bearer token: a person's session or an API key.

use crate::Deps;
use crate::access::Ctx;
use crate::api_keys;
use crate::sessions::{self, Bearer, SessionError};

/// The caller, in one round trip to the database. `unit_header` is what `X-Business-Unit` says; a key has its own unit.
pub async fn authenticate(deps: &Deps, bearer: &str, unit_header: Option<&str>) -> Result<Ctx, SessionError> {
    if bearer.starts_with(api_keys::TOKEN_PREFIX) {
        api_keys::service::authenticate(deps, bearer).await
    } else {
        sessions::service::authenticate(deps, bearer, unit_header).await
    }
}

/// The same for a person who may have to change their password first. No key has one.
pub async fn authenticate_newcomer(
    deps: &Deps,
    bearer: &str,
    unit_header: Option<&str>,
) -> Result<Ctx, SessionError> {
    refuse_key(deps, bearer).await?;
    sessions::service::authenticate_newcomer(deps, bearer, unit_header).await
}

/// The person, wherever they may act. No key is one.
pub async fn identify(deps: &Deps, bearer: &str) -> Result<Bearer, SessionError> {
    refuse_key(deps, bearer).await?;
    sessions::service::identify(deps, bearer).await
}

/// A key that is good is told that it may not; one that is dead is told that.
async fn refuse_key(deps: &Deps, bearer: &str) -> Result<(), SessionError> {
    if bearer.starts_with(api_keys::TOKEN_PREFIX) {
        api_keys::service::authenticate(deps, bearer).await?;
        return Err(SessionError::KeyForbidden);
    }
    Ok(())
}
