//! What a load balancer and a client ask before anything else.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::db::pending_migrations;
use serde::Serialize;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(live)).routes(routes!(ready)).routes(routes!(server_info))
}

#[derive(Serialize, utoipa::ToSchema)]
struct Health {
    /// `ok`; anything else is a problem document.
    status: &'static str,
}

#[derive(Serialize, utoipa::ToSchema)]
struct ServerInfo {
    /// Of the program.
    version: &'static str,
    /// Of the interface.
    api: &'static str,
}

/// Whether the process lives.
#[utoipa::path(get, path = "/health/live", tag = "health", security(()), responses((status = 200, body = Health)))]
async fn live() -> Json<Health> {
    Json(Health { status: "ok" })
}

/// Whether requests can be served: the database answers and has the schema that this program needs.
#[utoipa::path(get, path = "/health/ready", tag = "health", security(()), responses((status = 200, body = Health)))]
async fn ready(State(deps): State<Deps>) -> Result<Json<Health>, Problem> {
    let pending = pending_migrations(&deps.db.conn().await?).await?;
    if pending.is_empty() {
        return Ok(Json(Health { status: "ok" }));
    }
    Err(Problem::unavailable(
        "The database is being brought to this version; migrations are still to be applied.",
    ))
}

/// What this server is.
#[utoipa::path(get, path = "/server-info", tag = "health", security(()), responses((status = 200, body = ServerInfo)))]
async fn server_info() -> Json<ServerInfo> {
    Json(ServerInfo { version: env!("CARGO_PKG_VERSION"), api: "v1" })
}
