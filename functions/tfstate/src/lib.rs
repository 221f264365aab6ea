//! Terraform's HTTP backend: `/api/v1/state/{workspace_id}` and its twin `…/lock` for gateways that know neither LOCK
//! nor UNLOCK.
//!
//! | request | does |
//! |---|---|
//! | `GET` | the newest state; 204 if there is none; 307 to the object store if it is large |
//! | `POST`, `PUT` | write; `?ID=` names the lock |
//! | `LOCK`, `POST …/lock` | lock; 423 with the holder's lock info as the whole body |
//! | `UNLOCK`, `DELETE …/lock` | unlock; with an empty body it takes the lock away, as `terraform force-unlock` asks |
//! | `DELETE` | refused: every version is kept |
//!
//! Never 301, 302 or 303: a client then repeats a write as a GET, takes the 200 for success and loses the state. So odd
//! paths (slashes doubled or at the end) are served, not redirected. A refusal is 4xx: clients repeat a 5xx and drop
//! its reason. It writes nothing but the state's tables and the audit log.

mod answers;
mod request;
mod routes;

use axum::Router;
use axum::routing::any;
use plumbline_core::Deps;

/// Every route of this function.
pub fn router(deps: Deps) -> Router {
    // One route for everything: methods that axum has no filter for, and paths that must not be redirected.
    let router = Router::new().route("/", any(routes::handle)).route("/{*path}", any(routes::handle));
    plumbline_api::layers::wrap(router.with_state(deps))
}
