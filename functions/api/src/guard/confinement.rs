//! API keys that reach only some workspaces: whatever is about another one does not exist for them.

use axum::body::Body;
use axum::extract::Request;
use plumbline_core::Deps;
use plumbline_core::access::{AccessError, Ctx};
use plumbline_core::ids::WorkspaceId;
use plumbline_core::{runs, tfstates};
use serde::Deserialize;
use uuid::Uuid;

use super::rules::{Reach, Rule};
use crate::body::read_within;
use crate::problem::Problem;

#[derive(Deserialize)]
struct Named {
    workspace_id: WorkspaceId,
}

/// Refuses what is beyond the caller's reach. Gives the request back, whose body may have been read.
pub(super) async fn check(deps: &Deps, ctx: &Ctx, rule: &Rule, request: Request) -> Result<Request, Problem> {
    if ctx.workspaces().is_none() {
        return Ok(request);
    }
    match rule.reach {
        Reach::OwnUnit | Reach::Listed => Ok(request),
        Reach::Unit => Err(AccessError::KeyConfined.into()),
        Reach::Body => {
            let (parts, body) = request.into_parts();
            let bytes = read_within(body, deps.limits.body_bytes_max).await?;
            // A body that names no workspace is refused by whoever decodes it.
            if let Ok(Named { workspace_id }) = serde_json::from_slice(&bytes) {
                require(ctx, Some(workspace_id), "workspace")?;
            }
            Ok(Request::from_parts(parts, Body::from(bytes)))
        }
        Reach::Workspace | Reach::Run | Reach::StateVersion | Reach::QuarantinedState => {
            let id = first_parameter(&rule.path(), request.uri().path());
            let (what, workspace) = workspace_of(deps, ctx, rule.reach, id).await?;
            require(ctx, workspace, what)?;
            Ok(request)
        }
    }
}

fn require(ctx: &Ctx, workspace: Option<WorkspaceId>, what: &str) -> Result<(), Problem> {
    match workspace {
        Some(id) if ctx.reaches(id) => Ok(()),
        _ => Err(Problem::not_found(what)),
    }
}

/// The value of the first parameter of a path; `None` if it is no id, which names nothing.
fn first_parameter(pattern: &str, path: &str) -> Option<Uuid> {
    let pairs = pattern.split('/').zip(path.split('/'));
    let (_, value) = pairs.into_iter().find(|(part, _)| part.starts_with('{'))?;
    value.parse().ok()
}

async fn workspace_of(
    deps: &Deps,
    ctx: &Ctx,
    reach: Reach,
    id: Option<Uuid>,
) -> Result<(&'static str, Option<WorkspaceId>), Problem> {
    let what = match reach {
        Reach::Run => "run",
        Reach::StateVersion => "state version",
        Reach::QuarantinedState => "quarantined state",
        _ => "workspace",
    };
    let Some(id) = id else { return Ok((what, None)) };
    if reach == Reach::Workspace {
        return Ok((what, Some(id.into())));
    }
    let (conn, unit) = (deps.db.conn().await?, ctx.unit()?);
    let workspace = match reach {
        Reach::Run => runs::service::find_workspace_of(&conn, unit, id.into()).await?,
        Reach::StateVersion => tfstates::service::find_workspace_of_version(&conn, unit, id.into()).await?,
        _ => tfstates::service::find_workspace_of_quarantined(&conn, unit, id.into()).await?,
    };
    Ok((what, workspace))
}
