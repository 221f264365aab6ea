//! Taking, giving back and taking away the lock.

use std::borrow::Cow;

use serde_json::json;

use super::{StateActor, find_row, lock_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Draft};
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};
use crate::tfstates::{HeldBy, LockInfo, LockView, StateError, store};

/// How often a call looks again after losing a race for the row. Every lost race is somebody else's success.
const RACES_MAX: usize = 16;

/// Whoever has not asked for so long waits no more: clients pause for 16 s at most.
const WAITER_PATIENCE_SECONDS: f64 = 40.0;
/// Waiters of one state that are remembered.
const WAITERS_MAX: i64 = 20;

/// Takes the lock. The holder's own request once more succeeds: its answer may have been lost.
///
/// Like [`unlock`], decided by a plain read and done by one statement that does nothing if the row has changed since:
/// two round trips, and no lock of the database is held between them.
pub async fn lock(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    info: &LockInfo,
) -> Result<(), StateError> {
    let by = actor.require_write()?;
    let info = &told(deps, actor, info);
    let conn = deps.db.conn().await?;
    for _ in 0..RACES_MAX {
        let row = find_row(&conn, actor.unit(), workspace_id).await?;
        actor.require_writable(&row)?;
        actor.require_unit_in_use(&conn, &row).await?;
        if let Some(held) = &row.lock {
            let own = held.id == info.id() && held.held_by().is_some_and(|holder| holder.lets(by));
            if own {
                return Ok(());
            }
            remember_waiter(&conn, &row, info).await;
            return Err(StateError::Locked { holder: held.info.clone() });
        }
        if let Err(refused) = actor.require_not_locked_out(&row) {
            remember_waiter(&conn, &row, info).await;
            return Err(refused);
        }
        let details = json!({ "lock_id": info.id(), "generation": row.generation + 1 });
        let entry = Draft::of(&actor.author().entry(&row, Action::StateLock, details));
        if store::take_lock(&conn, &row, info, (actor.run_id(), by), &entry).await? {
            return Ok(());
        }
        if let HeldBy::Executor(id) = by
            && !store::may_live(&conn, id).await?
        {
            return Err(StateError::ExecutorStopped);
        }
    }
    Err(too_many_races())
}

fn run_url(deps: &Deps, run: RunId) -> String {
    format!("{}/api/v1/runs/{run}", deps.public_url)
}

/// What whoever meets the lock is shown: a person's words as they sent them, of a run which one it is and where.
fn told<'a>(deps: &Deps, actor: &StateActor<'_>, info: &'a LockInfo) -> Cow<'a, LockInfo> {
    let StateActor::Executor { run_id, .. } = actor else { return Cow::Borrowed(info) };
    let url = run_url(deps, *run_id);
    Cow::Owned(
        info.told_by_us(&format!("Plumbline, run {run_id}"), &format!("plumb run show {run_id}, {url}")),
    )
}

/// Only when a lock is refused, so that taking and giving back cost nothing more. What is lost here is a line that somebody
/// would have looked at.
async fn remember_waiter(query: &impl Query, row: &store::StateRow, info: &LockInfo) {
    if let Err(error) = store::record_waiter(query, row, info, WAITER_PATIENCE_SECONDS, WAITERS_MAX).await {
        tracing::warn!(%error, workspace.id = %row.workspace_id, "who waits for a state's lock was not remembered");
    }
}

/// Gives the lock back. The last holder's request once more succeeds: its answer may have been lost.
pub async fn unlock(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    info: &LockInfo,
) -> Result<(), StateError> {
    let by = actor.require_write()?;
    let conn = deps.db.conn().await?;
    for _ in 0..RACES_MAX {
        let row = find_row(&conn, actor.unit(), workspace_id).await?;
        let Some(held) = &row.lock else {
            return if row.last_lock_id.as_deref() == Some(info.id()) {
                Ok(())
            } else {
                Err(StateError::NotTheHolder("nobody holds one, it was taken away or never taken".into()))
            };
        };
        if held.id != info.id() {
            return Err(StateError::NotTheHolder(format!("the lock {} is held", held.id)));
        }
        if held.held_by().is_some_and(|holder| !holder.lets(by)) {
            return Err(StateError::NotTheHolder("it belongs to a run; force-unlock takes it away".into()));
        }
        let details = json!({ "lock_id": info.id(), "generation": row.generation });
        let entry = Draft::of(&actor.author().entry(&row, Action::StateUnlock, details));
        if store::release_lock(&conn, &row, &entry).await? {
            return Ok(());
        }
        if store::has_pending_upload(&conn, &row, info.id()).await? {
            return Err(StateError::UploadUnresolved);
        }
    }
    Err(too_many_races())
}

fn too_many_races() -> StateError {
    DbError::TryAgain("the state's row changed again and again".into()).into()
}

/// How many states of a unit are locked by people.
pub async fn count_locks_of_people(query: &impl Query, unit: BusinessUnitId) -> Result<i64, DbError> {
    store::count_locks_of_people(query, unit).await
}

/// Takes the lock away from whoever holds it, unless its executor may still act.
pub async fn force_unlock(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
) -> Result<(), StateError> {
    let StateActor::Person(ctx) = actor else { return Err(StateError::NotForExecutors) };
    ctx.require(Permission::AdministerState)?;
    ctx.person()?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, actor.unit(), workspace_id).await?;
    let Some(held) = &row.lock else {
        return Err(row.workspace_lock.map_or(StateError::NotLocked, StateError::WorkspaceLocked));
    };
    if let Some(executor_id) = held.executor_id
        && store::may_live(&tx, executor_id).await?
    {
        return Err(StateError::HolderMayLive);
    }
    store::take_away_lock(&tx, &row).await?;
    let details = json!({
        "lock_id": held.id, "generation": row.generation, "run_id": held.run_id, "user_id": held.user_id,
    });
    audit::service::record(&tx, &actor.author().entry(&row, Action::StateForceUnlock, details)).await?;
    tx.commit().await?;
    Ok(())
}

/// Who holds the lock, since when, and who waits for it.
pub async fn get_lock(deps: &Deps, ctx: &Ctx, workspace_id: WorkspaceId) -> Result<LockView, StateError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let mut view = find_row(&conn, ctx.scope.unit(), workspace_id).await?.lock_view();
    let holder = view.lock_id.as_deref();
    view.waiters = store::list_waiters(&conn, workspace_id, holder, WAITER_PATIENCE_SECONDS).await?;
    view.run_url = view.run_id.map(|run| run_url(deps, run));
    Ok(view)
}
