//! One file per feature; each gives its routes relative to `/api/v1`.

mod audit;
mod auth;
mod business_units;
mod health;

use plumbline_core::Deps;
use utoipa_axum::router::OpenApiRouter;

/// Every feature's routes.
pub fn all() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .merge(auth::routes())
        .merge(business_units::routes())
        .merge(audit::routes())
        .merge(health::routes())
}
