//! History: list, compare, roll back.

use md5::Digest as _;
use serde_json::json;

use super::reads::fetch;
use super::writes::{accept, discard_body};
use super::{Author, find_row, key_of, lock_row};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Draft};
use crate::business_units;
use crate::digest::Sha256Digest;
use crate::ids::{StateVersionId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::tfstates::store::{self, NewVersion, VersionRow};
use crate::tfstates::{StateDiff, StateError, StateVersionView, diff, with_serial};

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
            store::find_version_before(&conn, &newer).await?
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
    let before = match &older {
        Some(older) => fetch(deps, &older.key).await?,
        None => bytes::Bytes::from_static(b"{}"),
    };
    let after = fetch(deps, &newer.key).await?;
    let compared = diff(&before, &after).ok_or(StateError::Opaque)?;
    Ok((oldest, compared))
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
    let body = with_serial(&fetch(deps, &old.key).await?, serial).ok_or(StateError::Opaque)?;
    let new_id: StateVersionId = deps.ids.mint();
    let key = key_of(&row, new_id.0);
    let new = NewVersion {
        id: new_id,
        serial,
        lineage: &old.view.lineage,
        lock_id: None,
        md5: md5::Md5::digest(&body).into(),
        sha256: Sha256Digest::of(&body),
        size_bytes: i64::try_from(body.len()).unwrap_or(i64::MAX),
        key: &key,
        terraform_version: old.view.terraform_version.as_deref(),
        opaque: false,
        run_id: None,
        created_by: ctx.actor.user_id(),
        rolled_back_from: Some(id),
    };
    deps.blobs.put(&key, body.into(), "application/json").await?;
    let committed = commit(deps, ctx, &old, head.version_id, &new).await;
    // A database error may hide a commit that stands: then the row needs the body.
    if matches!(&committed, Err(error) if !matches!(error, StateError::Db(_))) {
        discard_body(deps, &key).await;
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
    if let Some(lock) = &row.lock {
        return Err(StateError::Locked { holder: lock.info.clone() });
    }
    if row.head.as_ref().map(|head| head.version_id) != Some(seen_head) {
        return Err(StateError::HeadMoved);
    }
    let details = json!({
        "version_id": new.id, "serial": new.serial, "rolled_back_from": old.view.id, "old_serial": old.view.serial,
    });
    let entry = Author::person(ctx).entry(&row, Action::StateRollback, details);
    accept(&tx, &row, new, &Draft::of(&entry)).await?;
    tx.commit().await?;
    Ok(())
}

async fn get(deps: &Deps, ctx: &Ctx, id: StateVersionId) -> Result<VersionRow, StateError> {
    let conn = deps.db.conn().await?;
    store::find_version(&conn, ctx.scope.unit(), id).await?.ok_or(StateError::NotFound("state version"))
}
