//! What executors trade, report and upload, under `/executor/v1`.
//!
//! It may not act for another task than the token's. Every route but the trade resolves the bearer token to one
//! attempt; the use cases refuse an attempt that lost its lease. State routes go by lock, not by lease.

mod caller;
mod problem;
mod routes;

use axum::Router;
use plumbline_core::Deps;

const PREFIX: &str = "/executor/v1";

/// Every route of this function.
pub fn router(deps: Deps) -> Router {
    plumbline_api::layers::wrap(Router::new().nest(PREFIX, routes::all()).with_state(deps))
}

/// Method and path of every route.
pub fn routes() -> Vec<(&'static str, String)> {
    routes::list().into_iter().map(|(method, below)| (method, [PREFIX, below].concat())).collect()
}
