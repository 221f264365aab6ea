//! Trying what a unit has set up: short tasks.

use std::time::Duration;

use axum::extract::State;
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::access::Ctx;
use plumbline_core::config::{self, Integration};
use plumbline_core::tasks::TaskKind;
use utoipa_axum::router::OpenApiRouter;
use utoipa_axum::routes;

use crate::caller::Caller;
use crate::idempotency::{Once, OnceByPath};
use crate::problem::Problem;
use crate::routes::workspaces::TaskAccepted;

pub(super) fn routes() -> OpenApiRouter<Deps> {
    OpenApiRouter::new().routes(routes!(slack)).routes(routes!(infracost))
}

/// Asks Slack who the unit's bot is. Admins only.
#[utoipa::path(post, path = "/integrations/slack/test", tag = "integrations",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn slack(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    request(&deps, &ctx, once, Integration::SLACK, TaskKind::SlackTest).await
}

/// Asks Infracost whether it takes the unit's API key. Admins only.
#[utoipa::path(post, path = "/integrations/infracost/test", tag = "integrations",
    params(("Idempotency-Key" = Option<String>, Header, description = "The same key gives the same task")),
    responses((status = 202, body = TaskAccepted, description = "A task asks; its result says whether it works, and why not")))]
async fn infracost(
    State(deps): State<Deps>,
    Caller(ctx): Caller,
    OnceByPath(once): OnceByPath,
) -> Result<Response, Problem> {
    request(&deps, &ctx, once, Integration::INFRACOST, TaskKind::InfracostTest).await
}

async fn request(
    deps: &Deps,
    ctx: &Ctx,
    once: Once<()>,
    integration: &Integration,
    kind: TaskKind,
) -> Result<Response, Problem> {
    let response = once
        .answer(deps, ctx, async |tx, ()| {
            Ok(TaskAccepted::later(config::service::request_test(tx, deps, ctx, integration, kind).await?))
        })
        .await?;
    deps.waker.wake(Duration::ZERO).await;
    Ok(response)
}
