//! Bodies that wait for a person: list, promote, discard; and the switch that lets another lineage in.

use serde_json::json;

use super::bodies::{BodyAt, copy_with_serial, stream};
use super::writes::{accept, discard_body, home_of};
use super::{Author, StateActor, find_row, key_of, lock_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Draft};
use crate::business_units;
use crate::ids::{QuarantinedStateId, StateVersionId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::resources;
use crate::tfstates::contents;
use crate::tfstates::store::{self, NewVersion, QuarantinedRow, StateRow};
use crate::tfstates::{QuarantinedStateView, RefuseReason, StateError, StateVersionView, Unreadable};

/// What lies in a workspace's quarantine, newest first, decided ones included.
pub async fn list_quarantined(
    deps: &Deps,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
    page: PageRequest,
) -> Result<Page<QuarantinedStateView>, StateError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let unit = ctx.scope.unit();
    let rows = store::list_quarantined(&conn, unit, workspace_id, page).await?;
    if rows.is_empty() {
        find_row(&conn, unit, workspace_id).await?;
    }
    Ok(Page::from_rows(rows, page.limit, |quarantined| quarantined.id.0))
}

/// Makes a quarantined body the head. If its serial is not above the head's, it gets the next one.
pub async fn promote(deps: &Deps, ctx: &Ctx, id: QuarantinedStateId) -> Result<StateVersionView, StateError> {
    ctx.require(Permission::AdministerState)?;
    ctx.person()?;
    let quarantined = find_open(deps, ctx, id).await?;
    let (unit, workspace_id) = (quarantined.business_unit_id, quarantined.view.workspace_id);
    let early = find_row(&deps.db.conn().await?, Some(unit), workspace_id).await?;
    let new_id: StateVersionId = deps.ids.mint();
    let (key, size_bytes) = (&quarantined.key, quarantined.view.size_bytes);
    let body = BodyAt::open(deps, quarantined.store_id, key, size_bytes).await?;
    let contents = stream(&body, contents::read_facts).await??;
    let facts = contents.says.judge()?;
    let lowest = early.head.as_ref().map_or(0, |head| head.serial + 1);
    let (copied, key, store_id) = match &contents.serial_at {
        // As it is, it stays where it is.
        _ if facts.serial >= lowest => (None, quarantined.key.clone(), quarantined.store_id),
        // The serial is sealed inside, too.
        _ if facts.opaque => return Err(StateError::Opaque),
        None => return Err(Unreadable::NoState.into()),
        Some(serial_at) => {
            let (home, key) = (home_of(deps, &early).await?, key_of(&early, new_id.0));
            let copied = copy_with_serial(&body, (&*home.blobs, &key), (serial_at, lowest)).await?;
            (Some((copied, home.blobs)), key, home.store_id)
        }
    };
    let copy = copied.as_ref().map(|(copy, _)| *copy);
    let new = NewVersion {
        id: new_id,
        serial: facts.serial.max(lowest),
        lineage: &facts.lineage,
        lock_id: quarantined.view.lock_id.as_deref(),
        md5: copy.map_or(quarantined.md5, |copy| copy.md5),
        sha256: copy.map_or(quarantined.view.sha256, |copy| copy.sha256),
        size_bytes: copy.map_or(quarantined.view.size_bytes, |copy| copy.size_bytes),
        key: &key,
        store_id,
        terraform_version: facts.terraform_version.as_deref(),
        opaque: facts.opaque,
        run_id: quarantined.view.run_id,
        created_by: ctx.actor.user_id(),
        rolled_back_from: None,
        resource_count: (!facts.opaque).then(|| i64::try_from(contents.resource_count).unwrap_or(i64::MAX)),
    };
    let committed = commit_promotion(deps, ctx, &early, &quarantined, &new).await;
    // A database error may hide a commit that stands: then the row needs the body.
    if let Some((_, blobs)) = &copied
        && matches!(&committed, Err(error) if !matches!(error, StateError::Db(_)))
    {
        discard_body(&**blobs, &key).await;
    }
    committed?;
    super::get_version(deps, ctx, new_id).await
}

async fn commit_promotion(
    deps: &Deps,
    ctx: &Ctx,
    early: &StateRow,
    quarantined: &QuarantinedRow,
    new: &NewVersion<'_>,
) -> Result<(), StateError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, Some(quarantined.business_unit_id), quarantined.view.workspace_id).await?;
    business_units::service::require_in_use::<StateError>(&tx, ctx, row.business_unit_id).await?;
    StateActor::Person(ctx).require_not_locked_out(&row)?;
    if let Some(lock) = &row.lock {
        return Err(StateError::Locked { holder: lock.info.clone() });
    }
    let head_of = |row: &StateRow| row.head.as_ref().map(|head| head.version_id);
    if head_of(&row) != head_of(early) {
        return Err(StateError::HeadMoved);
    }
    let foreign = row.head.as_ref().is_some_and(|head| head.lineage != new.lineage);
    if foreign && !row.accept_next_lineage {
        return Err(StateError::Refused(RefuseReason::OtherLineage));
    }
    if !store::resolve_quarantined(&tx, quarantined, ctx.actor.user_id(), "promoted").await? {
        return Err(StateError::AlreadyResolved("promoted or discarded".into()));
    }
    let details = json!({
        "quarantined_id": quarantined.view.id, "version_id": new.id, "serial": new.serial,
        "reason": quarantined.view.reason, "resource_count": new.resource_count, "emptied": row.is_emptied_by(new),
    });
    let entry = Author::person(ctx).entry(&row, Action::StatePromote, details);
    resources::tasks::enqueue(&tx, deps.ids, row.business_unit_id, row.workspace_id).await?;
    accept(&tx, &row, new, &Draft::of(&entry)).await?;
    tx.commit().await?;
    Ok(())
}

/// Decides that a quarantined body is not wanted. Its bytes stay in the object store.
pub async fn discard(
    deps: &Deps,
    ctx: &Ctx,
    id: QuarantinedStateId,
) -> Result<QuarantinedStateView, StateError> {
    ctx.require(Permission::AdministerState)?;
    ctx.person()?;
    let quarantined = find_open(deps, ctx, id).await?;
    let (unit, workspace_id) = (quarantined.business_unit_id, quarantined.view.workspace_id);
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    business_units::service::require_in_use::<StateError>(&tx, ctx, unit).await?;
    if !store::resolve_quarantined(&tx, &quarantined, ctx.actor.user_id(), "discarded").await? {
        return Err(StateError::AlreadyResolved("promoted or discarded".into()));
    }
    let decided = store::find_quarantined(&tx, Some(unit), id)
        .await?
        .ok_or(StateError::NotFound("quarantined state"))?;
    let details = json!({ "quarantined_id": id, "reason": quarantined.view.reason });
    let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateDiscard, details);
    audit::service::record(&tx, &entry).await?;
    tx.commit().await?;
    Ok(decided.view)
}

/// Lets the next write bring another lineage: for pushing a state that was kept elsewhere. One shot.
pub async fn accept_next_lineage(
    deps: &Deps,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
) -> Result<(), StateError> {
    ctx.require(Permission::AdministerState)?;
    ctx.person()?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, ctx.scope.unit(), workspace_id).await?;
    business_units::service::require_in_use::<StateError>(&tx, ctx, row.business_unit_id).await?;
    store::set_accept_next_lineage(&tx, &row).await?;
    let details = json!({ "lineage": row.head.as_ref().map(|head| &head.lineage) });
    let entry = Author::person(ctx).entry(&row, Action::StateAcceptLineage, details);
    audit::service::record(&tx, &entry).await?;
    tx.commit().await?;
    Ok(())
}

async fn find_open(deps: &Deps, ctx: &Ctx, id: QuarantinedStateId) -> Result<QuarantinedRow, StateError> {
    let conn = deps.db.conn().await?;
    let quarantined = store::find_quarantined(&conn, ctx.scope.unit(), id)
        .await?
        .ok_or(StateError::NotFound("quarantined state"))?;
    match &quarantined.view.resolution {
        None => Ok(quarantined),
        Some(word) => Err(StateError::AlreadyResolved(word.clone())),
    }
}
