//! What operators may do with the queue: look, and try a dead letter once more.

use super::rules::{attempts_max, is_replayable};
use super::store::{self, TaskFilter};
use super::{TaskClass, TaskError, TaskKind, TaskStatus, TaskView};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Entry};
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
    if !is_replayable(old.kind) {
        return Err(TaskError::NotReplayable("its run has ended with it; start a new run"));
    }
    // Once more is as much as the first time: a replay makes workspaces, too.
    if matches!(old.kind, TaskKind::RepositoryDiscover | TaskKind::WorkspaceImport) {
        ctx.require(Permission::AdministerWorkspaces)?;
    }
    let mut again = store::find_dead(tx, unit, id).await?.ok_or(TaskError::NotFound)?;
    again.requested_by = ctx.actor.user_id();
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
