//! The users' routes under `/api/v1`: decode, one use case, encode.
//!
//! It may not launch anything, reach the outside, or run tenants' code.

pub mod body;
pub mod caller;
pub mod etag;
pub mod idempotency;
pub mod layers;
pub mod openapi;
pub mod problem;
pub mod routes;

use axum::Router;
use plumbline_core::Deps;

/// Every route of this function.
pub fn router(deps: Deps) -> Router {
    let (router, document) = openapi::documented_router();
    let router = router.merge(openapi::route(&document));
    layers::wrap(router.with_state(deps))
}
