//! One file per feature; each gives its routes relative to `/api/v1`.

use plumbline_core::Deps;
use utoipa_axum::router::OpenApiRouter;

/// Every feature's routes.
pub fn all() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
}
