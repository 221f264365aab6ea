//! Who calls: people, and runs that read what others share. Terraform sends Basic with an access token or an API key as the password, OpenTofu may send a bearer token.

use axum::http::{HeaderMap, header};
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use plumbline_api::problem::Problem;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::callers;
use plumbline_core::executors::readers::{self, RunReader};
use plumbline_core::sessions::SessionError;

/// Who is behind a request.
pub(crate) enum Caller {
    /// Somebody with an access token or an API key.
    Person(Ctx),
    /// A run's terraform, with the password of its attempt.
    Run(RunReader),
}

/// The caller of a request. A person's unit is the one that `X-Business-Unit` names, or a user name `unit/<slug>` from
/// clients that cannot send headers, or their first; any other user name means nothing.
pub(crate) async fn authenticate(deps: &Deps, headers: &HeaderMap) -> Result<Caller, Problem> {
    let credentials = Credentials::read(headers).ok_or(SessionError::Unauthenticated(
        "send an access token or an API key as the password of Basic authentication, or as a bearer token",
    ))?;
    if credentials.token.starts_with(readers::RUN_PASSWORD_PREFIX) {
        let reader = readers::find(&deps.db.conn().await?, &credentials.token).await?;
        return reader.map(Caller::Run).ok_or_else(|| {
            SessionError::Unauthenticated("this run password is not known, or its run's attempt has ended")
                .into()
        });
    }
    let unit = match headers.get(plumbline_api::caller::BUSINESS_UNIT) {
        // Bytes that are no text name no unit; the answer is that of an unknown slug.
        Some(value) => Some(value.to_str().unwrap_or("?")),
        None => credentials.user.strip_prefix("unit/"),
    };
    Ok(Caller::Person(callers::authenticate(deps, &credentials.token, unit).await?))
}

struct Credentials {
    user: String,
    token: String,
}

impl Credentials {
    fn read(headers: &HeaderMap) -> Option<Self> {
        let (scheme, rest) = headers.get(header::AUTHORIZATION)?.to_str().ok()?.split_once(' ')?;
        if scheme.eq_ignore_ascii_case("bearer") {
            return Some(Self { user: String::new(), token: rest.trim().to_owned() });
        }
        if !scheme.eq_ignore_ascii_case("basic") {
            return None;
        }
        let decoded = String::from_utf8(STANDARD.decode(rest.trim()).ok()?).ok()?;
        let (user, token) = decoded.split_once(':')?;
        Some(Self { user: user.to_owned(), token: token.to_owned() })
    }
}
