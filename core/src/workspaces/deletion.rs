//! Deleting a workspace, and what stands against it.

use serde_json::json;

use super::WorkspaceError;
use super::service::{entry, place};
use super::store::{self, DeletionFacts};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::ids::WorkspaceId;
use crate::ports::BlobError;
use crate::runs::RunStatus;
use crate::state_stores::{self, StateStoreError};

/// Deletes a workspace with its runs and state history. Never destroys what the state names: a workspace whose state
/// has resources, or whose state cannot be read, needs `force`.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: WorkspaceId, force: bool) -> Result<(), WorkspaceError> {
    ctx.require(Permission::AdministerWorkspaces)?;
    // The state's object is read before the transaction: no network call inside one.
    let seen = {
        let conn = deps.db.conn().await?;
        store::find(&conn, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
        store::deletion_facts(&conn, id, &ended_statuses()).await?.ok_or(WorkspaceError::NotFound)?
    };
    let has_resources = state_has_resources(deps, &seen).await?;
    deps.db
        .transaction(async |tx| {
            let workspace = store::lock(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
            business_units::service::require_in_use::<WorkspaceError>(tx, ctx, workspace.business_unit_id)
                .await?;
            store::lock_state(tx, id).await?;
            let facts =
                store::deletion_facts(tx, id, &ended_statuses()).await?.ok_or(WorkspaceError::NotFound)?;
            if let Some(run_id) = workspace.active_run_id.or(facts.running) {
                return Err(WorkspaceError::RunActive { run_id });
            }
            if let Some(locked) = workspace.locked {
                return Err(WorkspaceError::Locked(locked));
            }
            if facts.state_locked {
                return Err(WorkspaceError::StateLocked);
            }
            if facts.head != seen.head {
                return Err(WorkspaceError::StateMoved);
            }
            if has_resources && !force {
                return Err(WorkspaceError::HasResources);
            }
            store::delete(tx, id).await?;
            let mut details = place(&workspace);
            details["force"] = json!(force);
            details["had_resources"] = json!(has_resources);
            audit::service::record(tx, &entry(ctx, Action::WorkspaceDelete, &workspace, details)).await?;
            Ok(())
        })
        .await
}

fn ended_statuses() -> Vec<&'static str> {
    // A plan-only run rests at `planned`: nothing of it is under way.
    let ended = |status: &RunStatus| status.is_terminal() || *status == RunStatus::Planned;
    RunStatus::ALL.into_iter().filter(ended).map(RunStatus::as_str).collect()
}

/// Fails closed: a state that cannot be read counts as one with resources.
async fn state_has_resources(deps: &Deps, facts: &DeletionFacts) -> Result<bool, WorkspaceError> {
    #[derive(serde::Deserialize)]
    struct Resources {
        /// Absent in what a client has encrypted.
        resources: Option<Vec<serde::de::IgnoredAny>>,
    }
    let Some(head) = &facts.head else { return Ok(false) };
    if head.opaque {
        return Ok(true);
    }
    let read = match state_stores::service::opened(deps, head.store_id).await {
        Ok(blobs) => blobs.get(&head.key).await,
        Err(StateStoreError::Store(error)) => Err(error),
        Err(error) => return Err(error.into()),
    };
    let body = match read {
        Ok(body) => body,
        Err(BlobError::NotFound(_)) => return Ok(true),
        // Somebody's own store, perhaps gone for good: with force the workspace can go, too.
        Err(BlobError::StoreMissing { .. } | BlobError::Unusable { .. }) if head.store_id.is_some() => {
            return Ok(true);
        }
        Err(error) => return Err(error.into()),
    };
    let read = serde_json::from_slice::<Resources>(&body).ok();
    Ok(read.and_then(|state| state.resources).is_none_or(|resources| !resources.is_empty()))
}
