//! Replacing the root key.

use axum::Json;
use axum::extract::State;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::rekeys::{self, Rekey};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Caller;
use crate::idempotency::{Created, OnceByPath};
use crate::problem::Problem;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(get, request))
}

/// The newest job that seals everything under the current root key, and how far it is. Superadmins only.
#[utoipa::path(get, path = "/admin/rekey", tag = "admin", responses(
    (status = 200, body = Rekey),
    (status = 404, description = "Nobody has asked for one yet."),
))]
async fn get(State(deps): State<Deps>, Caller(ctx): Caller) -> Result<Json<Rekey>, Problem> {
    Ok(Json(rekeys::service::get(&deps, &ctx).await?))
}

/// Seals everything under the current root key, while everything runs; gives the job that does so already. Superadmins
/// only.
#[utoipa::path(post, path = "/admin/rekey", tag = "admin",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same job")),
    responses((status = 202, body = Rekey, description = "The job")))]
async fn request(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    once.answer(&deps, &ctx, async |tx, ()| {
        let job = rekeys::service::request(tx, &deps, &ctx).await?;
        Ok(Created::later("/api/v1/admin/rekey".into(), job))
    })
    .await
}
