//! Who is behind a bearer token: a person's session or an API key.

use crate::Deps;
use crate::access::Ctx;
use crate::api_keys;
use crate::sessions::{self, SessionError};

/// The caller, in one round trip to the database. `unit_header` is what `X-Business-Unit` says; a key has its own unit.
pub async fn authenticate(deps: &Deps, bearer: &str, unit_header: Option<&str>) -> Result<Ctx, SessionError> {
    if bearer.starts_with(api_keys::TOKEN_PREFIX) {
        api_keys::service::authenticate(deps, bearer).await
    } else {
        sessions::service::authenticate(deps, bearer, unit_header).await
    }
}
