//! Who may read the outputs of a workspace's state, and reading them.

use std::collections::BTreeSet;

use md5::Digest as _;
use serde_json::json;

use super::bodies::{BodyAt, stream};
use super::reads::StateBody;
use super::{Author, find_row};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::db::Tx;
use crate::executors::readers::RunReader;
use crate::ids::WorkspaceId;
use crate::tfstates::contents::{self, Shared};
use crate::tfstates::{StateConsumer, StateError, store};
use crate::workspaces;

/// Workspaces that one workspace shares its outputs with.
const CONSUMERS_MAX: usize = 200;

/// Whose runs may read the workspace's outputs, by name.
pub async fn list_consumers(
    deps: &Deps,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
) -> Result<Vec<StateConsumer>, StateError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    find_row(&conn, ctx.scope.unit(), workspace_id).await?;
    Ok(store::list_consumers(&conn, workspace_id).await?)
}

/// Says whose runs may read the workspace's outputs: these and no others. Counts from their next read on.
pub async fn share(
    tx: &Tx<'_>,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
    consumers: &[WorkspaceId],
) -> Result<Vec<StateConsumer>, StateError> {
    ctx.require(Permission::AdministerState)?;
    let wanted: BTreeSet<WorkspaceId> = consumers.iter().copied().collect();
    if wanted.len() > CONSUMERS_MAX {
        return Err(StateError::BadConsumers("at most 200 workspaces"));
    }
    if wanted.contains(&workspace_id) {
        return Err(StateError::BadConsumers("a workspace reads its own state anyway"));
    }
    // Two lists at once: the second replaces the first as a whole.
    let workspace = workspaces::service::lock(tx, ctx.scope, workspace_id).await?;
    let unit = workspace.ok_or(StateError::NotFound("workspace"))?.business_unit_id;
    business_units::service::require_in_use::<StateError>(tx, ctx, unit).await?;
    let before = store::list_consumers(tx, workspace_id).await?;
    let ids: Vec<WorkspaceId> = wanted.iter().copied().collect();
    let known = store::replace_consumers(tx, unit, workspace_id, &ids, ctx.actor.user_id()).await?;
    if usize::try_from(known) != Ok(ids.len()) {
        return Err(StateError::BadConsumers("one is not a workspace of this business unit"));
    }
    let before: BTreeSet<WorkspaceId> = before.iter().map(|consumer| consumer.workspace_id).collect();
    let details = json!({
        "added": wanted.difference(&before).collect::<Vec<_>>(),
        "removed": before.difference(&wanted).collect::<Vec<_>>(),
    });
    let after = store::list_consumers(tx, workspace_id).await?;
    let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateShare, details);
    audit::service::record(tx, &entry).await?;
    Ok(after)
}

/// The outputs of another workspace, for a run of one that it shares them with: a state of the same lineage and serial
/// without resources.
pub async fn read_shared(
    deps: &Deps,
    reader: &RunReader,
    workspace_id: WorkspaceId,
) -> Result<StateBody, StateError> {
    let (unit, conn) = (reader.business_unit_id, deps.db.conn().await?);
    let row = find_row(&conn, Some(unit), workspace_id).await?;
    if !store::is_shared(&conn, unit, workspace_id, reader.workspace_id).await? {
        return Err(StateError::NotShared);
    }
    let Some(head) = &row.head else { return Ok(StateBody::Empty) };
    let details = json!({
        "version_id": head.version_id, "serial": head.serial, "consumer_workspace_id": reader.workspace_id,
        "executor_id": reader.executor_id,
    });
    let author = Author { actor: Actor::System, run_id: Some(reader.run_id) };
    audit::service::record(&conn, &author.entry(&row, Action::StateSharedRead, details)).await?;
    drop(conn);
    let bytes_max = deps.limits.inline_state_bytes_max;
    let (serial, lineage) = (head.serial, head.lineage.clone());
    let body = BodyAt::of_head(deps, head).await?;
    let shared = stream(&body, move |body| contents::shared(body, serial, &lineage, bytes_max)).await??;
    match shared {
        Shared::State(bytes) => {
            Ok(StateBody::Inline { md5: md5::Md5::digest(&bytes).into(), bytes: bytes.into() })
        }
        Shared::TooLong => Err(StateError::OutputsTooLong { max_bytes: bytes_max }),
    }
}
