//! Who calls: Terraform sends Basic with a token as the password, OpenTofu may send a bearer token.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::sessions::{self, SessionError};

/// The person behind a request. Their unit is the one they name, or their first.
pub(crate) async fn authenticate(deps: &Deps, headers: &HeaderMap) -> Result<Ctx, Problem> {
    let token = token(headers).ok_or(SessionError::Unauthenticated(
        "send a token as the password of Basic authentication, or as a bearer token",
    ))?;
    let unit = headers.get(plumbline_api::caller::BUSINESS_UNIT).and_then(|value| value.to_str().ok());
    Ok(sessions::service::authenticate(deps, &token, unit).await?)
}

fn token(headers: &HeaderMap) -> Option<String> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, credentials) = value.split_once(' ')?;
    if scheme.eq_ignore_ascii_case("bearer") {
        return Some(credentials.trim().to_owned());
    }
    if !scheme.eq_ignore_ascii_case("basic") {
        return None;
    }
    let decoded = String::from_utf8(STANDARD.decode(credentials.trim()).ok()?).ok()?;
    decoded.split_once(':').map(|(_, password)| password.to_owned())
}
