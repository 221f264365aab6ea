//! The protocol's routes, relative to `/executor/v1`. Messages: `plumbline_core::protocol`.

mod artifacts;
mod ends;
mod identity_tokens;
mod steps;
mod tfstate;
mod trade;

use axum::Router;
use axum::handler::Handler;
use axum::routing::{MethodRouter, any, get, post, put};
use plumbline_core::Deps;

/// One path, the methods that mean something there, and what answers them.
pub(crate) struct Route {
    path: &'static str,
    methods: Vec<&'static str>,
    answer: MethodRouter<Deps>,
}

fn get_at<H: Handler<T, Deps>, T: 'static>(path: &'static str, handler: H) -> Route {
    Route { path, methods: vec!["GET"], answer: get(handler) }
}

fn post_at<H: Handler<T, Deps>, T: 'static>(path: &'static str, handler: H) -> Route {
    Route { path, methods: vec!["POST"], answer: post(handler) }
}

fn put_at<H: Handler<T, Deps>, T: 'static>(path: &'static str, handler: H) -> Route {
    Route { path, methods: vec!["PUT"], answer: put(handler) }
}

/// The handler itself says what it thinks of other methods.
fn any_at<H: Handler<T, Deps>, T: 'static>(
    path: &'static str,
    methods: Vec<&'static str>,
    handler: H,
) -> Route {
    Route { path, methods, answer: any(handler) }
}

fn table() -> Vec<Route> {
    let mut all = vec![
        post_at("/trade", trade::trade),
        post_at("/heartbeat", trade::heartbeat),
        post_at("/identity-token", identity_tokens::issue),
        put_at("/steps/{position}", steps::report),
        put_at("/steps/{position}/log", steps::append_log),
        post_at("/artifacts", artifacts::begin),
        get_at("/artifacts/{kind}", artifacts::read),
        post_at("/artifacts/{kind}/commit", artifacts::commit),
        post_at("/plan/complete", ends::plan_complete),
        post_at("/apply/begin", ends::apply_begin),
        post_at("/apply/touched", ends::apply_touched),
        post_at("/apply/complete", ends::apply_complete),
        post_at("/fail", ends::fail),
    ];
    all.extend(tfstate::table());
    all
}

/// Every route. Each reads its body by itself, within a limit of its own.
pub(crate) fn all() -> Router<Deps> {
    table().into_iter().fold(Router::new(), |router, route| router.route(route.path, route.answer))
}

/// Method and path of every route.
pub(crate) fn list() -> Vec<(&'static str, &'static str)> {
    let each = |route: Route| route.methods.into_iter().map(move |method| (method, route.path));
    table().into_iter().flat_map(each).collect()
}
