//! Sign-in through the identity provider that the installation named.
//!
//! It is the one function that speaks with the provider, because `api` reaches nothing outside. It decides nothing about
//! anybody (`core/src/oidc_logins` does), holds no secret that tokens are signed with, reads no password and opens no
//! session: what it hands out is a one-time code, in the fragment of an address of ours or to a port of this very
//! machine, and in no place where a server would log it.

mod answers;
mod claims;
mod cookie;
mod page;
mod provider;
mod routes;
mod web;

use std::sync::Arc;

use axum::Router;
use axum::routing::get;
use plumbline_core::Deps;
use plumbline_core::oidc_logins::settings::CALLBACK;

use provider::Providers;

const LOGIN: &str = "/api/v1/auth/oidc/login";
/// Where a browser ends: the code or the reason stands in the fragment, which no server sees.
const FINISH: &str = "/auth/oidc-finish";

/// What the routes share.
#[derive(Clone)]
struct Signin {
    deps: Deps,
    providers: Arc<Providers>,
}

/// Whether this function answers the path.
pub fn serves(path: &str) -> bool {
    [LOGIN, CALLBACK, FINISH].contains(&path)
}

/// Every route of this function.
pub fn router(deps: Deps) -> Router {
    let signin = Signin { deps, providers: Arc::default() };
    let router = Router::new()
        .route(LOGIN, get(routes::login))
        .route(CALLBACK, get(routes::callback))
        .route(FINISH, get(page::finish));
    plumbline_api::layers::wrap(router.with_state(signin))
}
