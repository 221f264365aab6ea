//! One file per feature; each gives its routes relative to `/api/v1`.

pub mod approvals;
pub mod runs;

use plumbline_core::Deps;
use utoipa_axum::router::OpenApiRouter;

/// Every feature's routes.
pub fn all() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().merge(approvals::routes()).merge(runs::routes())
}
