//! Approvals.

use axum::Json;
use axum::extract::State;
use plumbline_core::Deps;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::RunId;
use plumbline_core::runs::{Run, approvals};
use serde::{Deserialize, Serialize};
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::body::{Body, Path};
use crate::caller::Caller;
use crate::problem::Problem;

/// This feature's routes.
pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(approve)).routes(routes!(reject))
}

/// A decision.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Approve {
    /// For the history; at most 1,000 characters.
    #[serde(default)]
    comment: Option<String>,
    /// The `approval_digest` that you were shown: refused if the plan is another one by now.
    #[serde(default)]
    digest: Option<Sha256Digest>,
}

/// Approve the plan of a run. It binds to plan, lock file, commit, tool version and state; any operator may.
#[utoipa::path(post, path = "/approvals/{run_id}/approve", tag = "approvals", params(("run_id" = Uuid, Path)),
    request_body = Approve, responses(
        (status = 200, body = Run, description = "The run, applying"),
        (status = 409, description = "Nothing waits for approval, the plan is stale or too old, or not the one that was seen")))]
async fn approve(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(run_id): Path<RunId>,
    Body(request): Body<Approve>,
) -> Result<Json<Run>, Problem> {
    let run = approvals::approve(&deps, &ctx, run_id, request.comment.as_deref(), request.digest).await?;
    Ok(Json(run))
}

/// A refusal.
#[derive(Debug, Deserialize, Serialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
struct Reject {
    /// For the history; at most 1,000 characters.
    #[serde(default)]
    comment: Option<String>,
}

/// Refuse the plan of a run; the run is cancelled.
#[utoipa::path(post, path = "/approvals/{run_id}/reject", tag = "approvals", params(("run_id" = Uuid, Path)),
    request_body = Reject, responses(
        (status = 200, body = Run, description = "The run, cancelled"),
        (status = 409, description = "Nothing waits for approval")))]
async fn reject(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    Path(run_id): Path<RunId>,
    Body(request): Body<Reject>,
) -> Result<Json<Run>, Problem> {
    Ok(Json(approvals::reject(&deps, &ctx, run_id, request.comment.as_deref()).await?))
}
