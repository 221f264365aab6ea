//! One file per feature; each gives its routes relative to `/api/v1`.

mod api_keys;
mod approvals;
mod audit;
mod auth;
mod business_units;
mod config;
mod health;
mod integrations;
mod jwt_secrets;
mod runs;
mod state_locks;
mod state_versions;
mod tasks;
mod workspaces;

use plumbline_core::Deps;
use utoipa_axum::router::OpenApiRouter;

/// Every feature's routes.
pub fn all() -> OpenApiRouter<Deps> {
    OpenApiRouter::new()
        .merge(api_keys::routes())
        .merge(approvals::routes())
        .merge(audit::routes())
        .merge(auth::routes())
        .merge(business_units::routes())
        .merge(config::routes())
        .merge(health::routes())
        .merge(integrations::routes())
        .merge(jwt_secrets::routes())
        .merge(runs::routes())
        .merge(state_locks::routes())
        .merge(state_versions::routes())
        .merge(tasks::routes())
        .merge(workspaces::routes())
}
