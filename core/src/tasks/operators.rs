//! What operators may do with the queue: look, and try a dead letter once more.

use super::rules::{attempts_max, replay_needs};
use super::store::{self, TaskFilter};
use super::{TaskClass, TaskError, TaskStatus, TaskView};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::Tx;
use crate::ids::TaskId;
use crate::page::{Page, PageRequest};

/// Live and finished tasks, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    filter: &TaskFilter,
    page: PageRequest,
) -> Result<Page<TaskView>, TaskError> {
    ctx.require(Permission::ReadTasks)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.scope.unit(), filter, page).await?;
    Ok(Page::from_rows(rows, page.limit, |task| task.id.into()))
}

/// One task. Whoever asked for a short task may read it without being an operator.
pub async fn get(deps: &Deps, ctx: &Ctx, id: TaskId) -> Result<TaskView, TaskError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let task = store::find(&conn, ctx.scope.unit(), id).await?.ok_or(TaskError::NotFound)?;
    let own = task.class == TaskClass::Short
        && task.requested_by.is_some()
        && task.requested_by == ctx.actor.user_id();
    if !own {
        ctx.require(Permission::ReadTasks)?;
    }
    Ok(task)
}

/// A dead letter's work once more: a new task, linked to the old one. The caller wakes the worker.
pub async fn replay(tx: &Tx<'_>, deps: &Deps, ctx: &Ctx, id: TaskId) -> Result<TaskView, TaskError> {
    ctx.require(Permission::ReplayTasks)?;
    let unit = ctx.scope.unit();
    let old = store::find(tx, unit, id).await?.ok_or(TaskError::NotFound)?;
    if old.status != TaskStatus::Dead {
        return Err(TaskError::NotReplayable("it is not a dead letter"));
    }
    let Some(permission) = replay_needs(old.kind) else {
        return Err(TaskError::NotReplayable("its run has ended with it; start a new run"));
    };
    ctx.require(permission)?;
    business_units::service::require_in_use::<TaskError>(tx, ctx, old.business_unit_id).await?;
    let mut again = store::find_dead(tx, unit, id).await?.ok_or(TaskError::NotFound)?;
    let has_login = again.payload.get("login_sealed").is_some_and(|sealed| !sealed.is_null());
    if has_login && old.requested_by != ctx.actor.user_id() {
        return Err(TaskError::NotReplayable("it was asked for with somebody else's login; ask for it anew"));
    }
    again.requested_by = ctx.actor.user_id();
    // Whoever asks again is who does it.
    if let Some(actor) = again.payload.get_mut("actor") {
        *actor = serde_json::json!(ctx.actor);
    }
    let new = store::insert(tx, deps.ids.mint(), &again, attempts_max(again.kind), Some(id)).await?;
    let task = store::find(tx, unit, new).await?.ok_or(TaskError::NotFound)?;
    let entry = Entry {
        business_unit_id: Some(task.business_unit_id),
        actor: ctx.actor.clone(),
        action: Action::TaskReplay,
        resource_type: "task",
        resource_id: new.to_string(),
        workspace_id: None,
        run_id: None,
        details: serde_json::json!({ "replay_of": id, "kind": task.kind }),
    };
    audit::service::record(tx, &entry).await?;
    Ok(task)
}
