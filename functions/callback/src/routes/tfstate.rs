//! The workspace's state, for the executor's loopback proxy.

use axum::Router;
use plumbline_core::Deps;

/// Routes of the state.
pub(crate) fn routes() -> Router<Deps> {
    Router::new()
}
