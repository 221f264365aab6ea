//! The users' routes under `/api/v1`: decode, one use case, encode.
//!
//! It may not launch anything, reach the outside, or run tenants' code.

pub mod body;
pub mod caller;
pub mod etag;
pub mod guard;
pub mod idempotency;
pub mod layers;
pub mod openapi;
pub mod problem;
pub mod routes;

use std::sync::LazyLock;

use axum::Router;
use axum::middleware::from_fn_with_state;
use plumbline_core::Deps;

/// Every route of this function, each behind its rule.
///
/// # Panics
/// If a route has no rule, or a rule no route: neither is ever deployed.
pub fn router(deps: Deps) -> Router {
    let guarded = ROUTES.clone().layer(from_fn_with_state(deps.clone(), guard::guard));
    // Not behind the guard, whose rules are those of the API: what clouds read is open to everybody.
    layers::wrap(guarded.merge(routes::issuer_keys::documents()).with_state(deps))
}

static ROUTES: LazyLock<Router<Deps>> = LazyLock::new(|| {
    let (router, document) = openapi::documented_router();
    let wrong = guard::mismatches(&document);
    assert!(wrong.is_empty(), "routes without a rule, or rules without a route: {wrong:?}");
    router.merge(openapi::route(&document))
});
