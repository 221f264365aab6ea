//! Decoding of requests with errors that name the field: JSON bodies, paths, queries.

use axum::extract::{FromRequest, FromRequestParts, Request};
use axum::http::request::Parts;
use plumbline_core::Deps;
use serde::de::DeserializeOwned;

use crate::problem::Problem;

/// A JSON body. Unknown fields are refused by the types (`deny_unknown_fields`).
#[derive(Clone, Debug)]
pub struct Body<T>(pub T);

impl<T: DeserializeOwned> FromRequest<Deps> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, deps: &Deps) -> Result<Self, Problem> {
        let _ = (request, deps);
        todo!("identity")
    }
}

/// Parameters in the path.
#[derive(Clone, Debug)]
pub struct Path<T>(pub T);

impl<T: DeserializeOwned + Send> FromRequestParts<Deps> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, Problem> {
        let _ = (parts, deps);
        todo!("identity")
    }
}

/// Parameters in the query. Unknown ones are refused by the types.
#[derive(Clone, Debug)]
pub struct Query<T>(pub T);

impl<T: DeserializeOwned> FromRequestParts<Deps> for Query<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, deps: &Deps) -> Result<Self, Problem> {
        let _ = (parts, deps);
        todo!("identity")
    }
}
