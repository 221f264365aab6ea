//! The OpenAPI document, generated from the handlers.

use axum::Router;
use plumbline_core::Deps;
use utoipa_axum::router::OpenApiRouter;

use crate::routes;

/// The router and the document that describes exactly its routes.
pub fn documented_router() -> (Router<Deps>, utoipa::openapi::OpenApi) {
    OpenApiRouter::new().nest("/api/v1", routes::all()).split_for_parts()
}
