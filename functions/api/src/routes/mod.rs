//! One file per feature; each gives its routes relative to `/api/v1`.

mod api_keys;
mod approvals;
mod audit;
mod auth;
mod aws_accounts;
mod azure_subscriptions;
mod business_units;
mod ci_logins;
mod clusters;
mod config;
mod gcp_projects;
mod git_credentials;
mod health;
mod integrations;
pub(crate) mod issuer_keys;
mod jwt_secrets;
mod presence;
mod rekeys;
mod resources;
mod runs;
mod sessions;
mod state_consumers;
mod state_locks;
mod state_outputs;
mod state_versions;
mod tasks;
mod users;
mod variable_sets;
mod variables;
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
        .merge(aws_accounts::routes())
        .merge(azure_subscriptions::routes())
        .merge(business_units::routes())
        .merge(config::routes())
        .merge(git_credentials::routes())
        .merge(clusters::routes())
        .merge(gcp_projects::routes())
        .merge(ci_logins::routes())
        .merge(health::routes())
        .merge(rekeys::routes())
        .merge(presence::routes())
        .merge(integrations::routes())
        .merge(issuer_keys::routes())
        .merge(jwt_secrets::routes())
        .merge(resources::routes())
        .merge(runs::routes())
        .merge(sessions::routes())
        .merge(state_consumers::routes())
        .merge(state_locks::routes())
        .merge(state_outputs::routes())
        .merge(state_versions::routes())
        .merge(tasks::routes())
        .merge(users::routes())
        .merge(variable_sets::routes())
        .merge(variables::routes())
        .merge(workspaces::routes())
}
