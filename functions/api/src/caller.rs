//! Who calls: turns the `Authorization` and `X-Business-Unit` headers into a [`Ctx`], once per request and before its
//! route is reached: a stranger learns nothing from how their request is wrong.

use std::net::SocketAddr;

use axum::extract::{ConnectInfo, FromRequestParts};
use axum::http::request::Parts;
use axum::http::{HeaderMap, StatusCode, header};
use lambda_http::request::RequestContext;
use plumbline_core::Deps;
use plumbline_core::access::{Ctx, TraceParent};
use plumbline_core::callers;
use plumbline_core::sessions::{self, Origin};

use crate::problem::Problem;

/// Names the business unit of a request.
pub const BUSINESS_UNIT: &str = "x-business-unit";

/// The caller of a route that needs one.
#[derive(Clone, Debug)]
pub struct Caller(pub Ctx);

impl FromRequestParts<Deps> for Caller {
    type Rejection = Problem;

    /// A route that is open to anybody has no caller: its rule and its handler contradict each other.
    async fn from_request_parts(parts: &mut Parts, _deps: &Deps) -> Result<Self, Problem> {
        parts.extensions.get().cloned().map(Self).ok_or_else(Problem::closed)
    }
}

/// The caller as a person, in no unit, for what is theirs alone. They may have to change their password first: the use
/// cases that are not about that refuse them.
#[derive(Clone, Debug)]
pub struct Own(pub sessions::Bearer);

impl FromRequestParts<Deps> for Own {
    type Rejection = Problem;

    /// Only where the route's rule says that it is a person's own.
    async fn from_request_parts(parts: &mut Parts, _deps: &Deps) -> Result<Self, Problem> {
        parts.extensions.get().cloned().map(Self).ok_or_else(Problem::closed)
    }
}

/// The caller that a request's headers prove.
pub(crate) async fn authenticate(deps: &Deps, headers: &HeaderMap) -> Result<Ctx, Problem> {
    let ctx = callers::authenticate(deps, bearer(headers)?, unit_header(headers)).await?;
    Ok(with_trace(ctx, headers))
}

/// The same for a person who may have to change their password first.
pub(crate) async fn authenticate_newcomer(deps: &Deps, headers: &HeaderMap) -> Result<Ctx, Problem> {
    let ctx = callers::authenticate_newcomer(deps, bearer(headers)?, unit_header(headers)).await?;
    Ok(with_trace(ctx, headers))
}

/// The person that a request's headers prove, in no unit.
pub(crate) async fn identify(deps: &Deps, headers: &HeaderMap) -> Result<sessions::Bearer, Problem> {
    Ok(callers::identify(deps, bearer(headers)?).await?)
}

fn unit_header(headers: &HeaderMap) -> Option<&str> {
    // Bytes that are no text name no unit; the answer is that of an unknown slug.
    headers.get(BUSINESS_UNIT).map(|value| value.to_str().unwrap_or("?"))
}

fn with_trace(mut ctx: Ctx, headers: &HeaderMap) -> Ctx {
    ctx.traceparent =
        headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(TraceParent::parse);
    ctx
}

/// The token of `Authorization: Bearer`.
pub fn bearer(headers: &HeaderMap) -> Result<&str, Problem> {
    let text = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
    match text.split_once(' ') {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") && !token.trim().is_empty() => {
            Ok(token.trim())
        }
        _ => Err(Problem::new(
            StatusCode::UNAUTHORIZED,
            "unauthenticated",
            "Not signed in",
            "Sign in and send the access token as Authorization: Bearer.",
        )),
    }
}

/// Where a request comes from, for throttling. What headers such as `X-Forwarded-For` claim is not believed.
#[derive(Clone, Debug)]
pub struct Client(pub Origin);

impl<S: Send + Sync> FromRequestParts<S> for Client {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _state: &S) -> Result<Self, Self::Rejection> {
        let gateway = match parts.extensions.get::<RequestContext>() {
            Some(RequestContext::ApiGatewayV2(context)) => context.http.source_ip.clone(),
            _ => None,
        };
        let socket = || parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_string());
        let agent = parts.headers.get(header::USER_AGENT).and_then(|value| value.to_str().ok());
        Ok(Self(Origin::new(gateway.or_else(socket).as_deref(), agent)))
    }
}
