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

/// The caller that a request's headers prove.
pub(crate) async fn authenticate(deps: &Deps, headers: &HeaderMap) -> Result<Ctx, Problem> {
    let unit = match headers.get(BUSINESS_UNIT) {
        None => None,
        // Bytes that are no text name no unit; the answer is that of an unknown slug.
        Some(value) => Some(value.to_str().unwrap_or("?")),
    };
    let mut ctx = callers::authenticate(deps, bearer(headers)?, unit).await?;
    ctx.traceparent =
        headers.get("traceparent").and_then(|value| value.to_str().ok()).and_then(TraceParent::parse);
    Ok(ctx)
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
pub struct ClientAddress(pub Option<String>);

impl FromRequestParts<Deps> for ClientAddress {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _deps: &Deps) -> Result<Self, Self::Rejection> {
        let gateway = match parts.extensions.get::<RequestContext>() {
            Some(RequestContext::ApiGatewayV2(context)) => context.http.source_ip.clone(),
            _ => None,
        };
        let socket = || parts.extensions.get::<ConnectInfo<SocketAddr>>().map(|info| info.0.ip().to_string());
        Ok(Self(gateway.or_else(socket)))
    }
}
