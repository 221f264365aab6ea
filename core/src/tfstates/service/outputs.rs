//! Outputs of a state, for people who may not see the state itself.

use serde_json::json;

use super::bodies::stream;
use super::{Author, find_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::ids::{StateVersionId, WorkspaceId};
use crate::tfstates::contents;
use crate::tfstates::store::{self, VersionRow};
use crate::tfstates::{StateError, StateOutputs, StateVersionView};

/// The outputs of a version. Sensitive values are a part of the state: they need its permission and are audited.
pub async fn version_outputs(
    deps: &Deps,
    ctx: &Ctx,
    id: StateVersionId,
    shows_sensitive: bool,
) -> Result<(StateVersionView, StateOutputs), StateError> {
    ctx.require(permission(shows_sensitive))?;
    let version = store::find_version(&deps.db.conn().await?, ctx.scope.unit(), id).await?;
    read(deps, ctx, version.ok_or(StateError::NotFound("state version"))?, shows_sensitive).await
}

/// The outputs of a workspace's newest version; `None` before the first one.
pub async fn workspace_outputs(
    deps: &Deps,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
    shows_sensitive: bool,
) -> Result<Option<(StateVersionView, StateOutputs)>, StateError> {
    ctx.require(permission(shows_sensitive))?;
    let unit = ctx.scope.unit();
    let version = {
        let conn = deps.db.conn().await?;
        let Some(head) = find_row(&conn, unit, workspace_id).await?.head else { return Ok(None) };
        store::find_version(&conn, unit, head.version_id).await?
    };
    let version = version.ok_or(StateError::NotFound("state version"))?;
    read(deps, ctx, version, shows_sensitive).await.map(Some)
}

fn permission(shows_sensitive: bool) -> Permission {
    if shows_sensitive { Permission::ReadState } else { Permission::Read }
}

async fn read(
    deps: &Deps,
    ctx: &Ctx,
    version: VersionRow,
    shows_sensitive: bool,
) -> Result<(StateVersionView, StateOutputs), StateError> {
    if shows_sensitive {
        let details = json!({
            "version_id": version.view.id, "serial": version.view.serial, "sensitive_outputs": true,
        });
        let (unit, workspace_id) = (version.business_unit_id, version.view.workspace_id);
        let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateRead, details);
        audit::service::record(&deps.db.conn().await?, &entry).await?;
    }
    let body = version.body(deps).await?;
    let outputs = stream(&body, move |body| contents::outputs(body, shows_sensitive)).await??;
    Ok((version.view, outputs))
}
