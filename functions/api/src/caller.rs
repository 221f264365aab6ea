//! Who calls: turns the `Authorization` and `X-Business-Unit` headers into a [`Ctx`], once per request.

use axum::extract::FromRequestParts;
use axum::http::request::Parts;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;

use crate::problem::Problem;

/// The caller of a route that needs one.
#[derive(Clone, Debug)]
pub struct Caller(pub Ctx);

impl FromRequestParts<Deps> for Caller {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, Problem> {
        let _ = (parts, deps);
        todo!("identity")
    }
}
