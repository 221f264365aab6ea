//! The protocol's routes, relative to `/executor/v1`. Messages: `plumbline_core::protocol`.

mod artifacts;
mod ends;
mod steps;
mod tfstate;
mod trade;

use axum::Router;
use axum::extract::DefaultBodyLimit;
use axum::routing::{get, post, put};
use plumbline_core::Deps;

/// Largest inline state, plus what its encoding may add.
const STATE_BODY_BYTES_MAX: usize = 6 << 20;

/// Every route.
pub(crate) fn all() -> Router<Deps> {
    let reports = Router::new()
        .route("/trade", post(trade::trade))
        .route("/heartbeat", post(trade::heartbeat))
        .route("/steps/{position}", put(steps::report))
        .route("/steps/{position}/log", put(steps::append_log))
        .route("/artifacts", post(artifacts::begin))
        .route("/artifacts/{kind}", get(artifacts::read))
        .route("/artifacts/{kind}/commit", post(artifacts::commit))
        .route("/plan/complete", post(ends::plan_complete))
        .route("/apply/begin", post(ends::apply_begin))
        .route("/apply/touched", post(ends::apply_touched))
        .route("/apply/complete", post(ends::apply_complete))
        .route("/fail", post(ends::fail))
        .layer(DefaultBodyLimit::max(1 << 20));
    reports.merge(tfstate::routes().layer(DefaultBodyLimit::max(STATE_BODY_BYTES_MAX)))
}
