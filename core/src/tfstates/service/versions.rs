//! History: list, compare, roll back.

use serde_json::json;

use super::bodies::{BodyAt, copy_with_serial, stream};
use super::writes::{accept, discard_body, home_of};
use super::{Author, StateActor, find_row, key_of, lock_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Draft};
use crate::business_units;
use crate::ids::{StateVersionId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::resources;
use crate::tfstates::contents::{self, Comparison};
use crate::tfstates::store::{self, NewVersion, VersionRow};
use crate::tfstates::{StateDiff, StateError, StateVersionView, Unreadable};

/// Versions of a workspace's state, newest first.
pub async fn list_versions(
    deps: &Deps,
    ctx: &Ctx,
    workspace_id: WorkspaceId,
    page: PageRequest,
) -> Result<Page<StateVersionView>, StateError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let unit = ctx.scope.unit();
    let rows = store::list_versions(&conn, unit, workspace_id, page).await?;
    if rows.is_empty() {
        find_row(&conn, unit, workspace_id).await?;
    }
    Ok(Page::from_rows(rows, page.limit, |version| version.id.0))
}

/// One version, without its body.
pub async fn get_version(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<StateVersionView, StateError> {
    ctx.require(Permission::Read)?;
    Ok(get(deps, ctx, id).await?.view)
}

/// What changed from one version to another; by default from the one before. Returns both ids, older first; the first
/// version is compared with nothing.
pub async fn diff_versions(
    deps: &Deps,
    ctx: &Ctx,
    id: StateVersionId,
    against: Option<StateVersionId>,
) -> Result<(Option<StateVersionId>, StateDiff), StateError> {
    ctx.require(Permission::ReadState)?;
    let newer = get(deps, ctx, id).await?;
    let older = match against {
        Some(id) => Some(get(deps, ctx, id).await?),
        None => {
            let conn = deps.db.conn().await?;
            let place = (newer.business_unit_id, newer.view.workspace_id);
            store::find_version_before(&conn, place, newer.view.id).await?
        }
    };
    if older.as_ref().is_some_and(|older| older.view.workspace_id != newer.view.workspace_id) {
        return Err(StateError::Invalid("both versions must belong to one workspace"));
    }
    let (newest, oldest) = (newer.view.id, older.as_ref().map(|older| older.view.id));
    let details = json!({ "version_id": newest, "against": oldest });
    let (unit, workspace_id) = (newer.business_unit_id, newer.view.workspace_id);
    let entry = Author::person(ctx).entry_in(unit, workspace_id, Action::StateRead, details);
    audit::service::record(&deps.db.conn().await?, &entry).await?;
    let mut comparison = Comparison::default();
    if let Some(older) = &older {
        let older = older.body(deps).await?;
        comparison = stream(&older, |body| comparison.read_older(body)).await??;
    }
    let newer = newer.body(deps).await?;
    let comparison = stream(&newer, |body| comparison.read_newer(body)).await??;
    Ok((oldest, comparison.finish()))
}

/// Makes an old version's content the newest version: the same body with the next serial. Nothing of the history is
/// changed, and nothing in the cloud. Asked again, it answers the version that it made.
pub async fn rollback(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<StateVersionView, StateError> {
    ctx.require(Permission::AdministerState)?;
    ctx.person()?;
    let old = get(deps, ctx, id).await?;
    if old.view.is_current {
        return Err(StateError::AlreadyCurrent);
    }
    let (workspace_id, unit) = (old.view.workspace_id, old.business_unit_id);
    let row = find_row(&deps.db.conn().await?, Some(unit), workspace_id).await?;
    let head = row.head.as_ref().ok_or(StateError::HeadMoved)?;
    let current = get(deps, ctx, head.version_id).await?;
    // The same request again, perhaps because its answer was lost: the newest version has this content already.
    if current.view.rolled_back_from == Some(id) {
        return Ok(current.view);
    }
    let serial = head.serial + 1;
    let body = old.body(deps).await?;
    let facts = stream(&body, contents::read_facts).await??;
    let serial_at = facts.serial_at.as_ref().ok_or(Unreadable::NoState)?;
    // The serial is sealed inside, too.
    if facts.says.is_opaque {
        return Err(StateError::Opaque);
    }
    let new_id: StateVersionId = deps.ids.mint();
    let key = key_of(&row, new_id.0);
    let home = home_of(deps, &row).await?;
    let copied = copy_with_serial(&body, (&*home.blobs, &key), (serial_at, serial)).await?;
    let new = NewVersion {
        id: new_id,
        serial,
        lineage: &old.view.lineage,
        lock_id: None,
        md5: copied.md5,
        sha256: copied.sha256,
        size_bytes: copied.size_bytes,
        key: &key,
        store_id: home.store_id,
        terraform_version: old.view.terraform_version.as_deref(),
        opaque: false,
        run_id: None,
        created_by: ctx.actor.user_id(),
        rolled_back_from: Some(id),
        resource_count: i64::try_from(facts.resource_count).ok(),
    };
    let committed = commit(deps, ctx, &old, head.version_id, &new).await;
    // A database error may hide a commit that stands: then the row needs the body.
    if matches!(&committed, Err(error) if !matches!(error, StateError::Db(_))) {
        discard_body(&*home.blobs, &key).await;
    }
    committed?;
    get_version(deps, ctx, new_id).await
}

async fn commit(
    deps: &Deps,
    ctx: &Ctx,
    old: &VersionRow,
    seen_head: StateVersionId,
    new: &NewVersion<'_>,
) -> Result<(), StateError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, Some(old.business_unit_id), old.view.workspace_id).await?;
    business_units::service::require_in_use::<StateError>(&tx, ctx, row.business_unit_id).await?;
    StateActor::Person(ctx).require_not_locked_out(&row)?;
    // Not expired since it was read: under the row's lock it cannot expire until this is committed.
    if store::find_version(&tx, Some(old.business_unit_id), old.view.id).await?.is_none() {
        return Err(StateError::NotFound("state version"));
    }
    if let Some(lock) = &row.lock {
        return Err(StateError::Locked { holder: lock.info.clone() });
    }
    if row.head.as_ref().map(|head| head.version_id) != Some(seen_head) {
        return Err(StateError::HeadMoved);
    }
    let details = json!({
        "version_id": new.id, "serial": new.serial, "rolled_back_from": old.view.id, "old_serial": old.view.serial,
        "resource_count": new.resource_count, "emptied": row.is_emptied_by(new),
    });
    let entry = Author::person(ctx).entry(&row, Action::StateRollback, details);
    resources::tasks::enqueue(&tx, deps.ids, row.business_unit_id, row.workspace_id).await?;
    accept(&tx, &row, new, &Draft::of(&entry)).await?;
    tx.commit().await?;
    Ok(())
}

impl VersionRow {
    pub(super) async fn body(&self, deps: &Deps) -> Result<BodyAt, StateError> {
        BodyAt::open(deps, self.store_id, &self.key, self.view.size_bytes).await
    }
}

async fn get(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<VersionRow, StateError> {
    let conn = deps.db.conn().await?;
    store::find_version(&conn, ctx.scope.unit(), id).await?.ok_or(StateError::NotFound("state version"))
}
