//! A person's lock of a workspace: while it holds, no run that could change the workspace starts planning or applies.
//!
//! Like `blocked` and `active_run_id` it is decided on under the row lock of the workspace, which triggering, approving,
//! beginning an apply and ending a run take, too. What plans already goes on until its approval; what applies already is
//! not disturbed; runs that only plan go on.

use serde_json::json;

use super::service::entry;
use super::{InvalidField, Workspace, WorkspaceError};
use super::{locks_store, store};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action};
use crate::business_units;
use crate::db::Tx;
use crate::ids::WorkspaceId;
use crate::runs;

/// Longest reason in characters.
const REASON_CHARS_MAX: usize = 1000;

/// Locks a workspace for its caller. The holder's own request once more changes the reason, if it has another.
pub async fn lock(
    tx: &Tx<'_>,
    ctx: &Ctx,
    id: WorkspaceId,
    reason: &str,
) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::ApplyRuns)?;
    let by = ctx.person()?;
    let reason = reason.trim();
    let length = reason.chars().count();
    if length == 0 || length > REASON_CHARS_MAX {
        return Err(InvalidField::new("reason", "must have 1 to 1,000 characters").into());
    }
    let before = store::lock(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    business_units::service::require_in_use::<WorkspaceError>(tx, ctx, before.business_unit_id).await?;
    match &before.locked {
        Some(locked) if locked.by != by => return Err(WorkspaceError::Locked(locked.clone())),
        Some(locked) if locked.reason == reason => return Ok(before),
        Some(_) | None => {}
    }
    locks_store::set_locked(tx, id, by, &who(&ctx.actor), reason).await?;
    if before.locked.is_none()
        && let Some(run) = before.active_run_id
    {
        runs::locks::put_back(tx, run).await?;
    }
    let after = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    let details = json!({ "reason": reason, "active_run_id": after.active_run_id });
    audit::service::record(tx, &entry(ctx, Action::WorkspaceLock, &after, details)).await?;
    Ok(after)
}

/// Ends a lock and lets runs go on. For its holder; an admin may do it for somebody else, which the audit log calls
/// forced.
pub async fn unlock(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: WorkspaceId,
) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::ApplyRuns)?;
    let by = ctx.person()?;
    let before = store::lock(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    business_units::service::require_in_use::<WorkspaceError>(tx, ctx, before.business_unit_id).await?;
    let locked = before.locked.ok_or(WorkspaceError::NotLocked)?;
    let forced = locked.by != by;
    if forced && ctx.require(Permission::AdministerState).is_err() {
        return Err(WorkspaceError::Locked(locked));
    }
    locks_store::set_unlocked(tx, id).await?;
    runs::locks::resume(tx, deps, id, before.active_run_id).await?;
    let after = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    let details = json!({ "forced": forced, "held_by": locked.by, "reason": locked.reason });
    audit::service::record(tx, &entry(ctx, Action::WorkspaceUnlock, &after, details)).await?;
    Ok(after)
}

/// What others read.
fn who(actor: &Actor) -> String {
    match actor {
        Actor::User { email, .. } => email.clone(),
        Actor::Key { name, .. } => format!("API key {name}"),
        Actor::System => "Plumbline".into(),
    }
}
