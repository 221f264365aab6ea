//! Use cases of variable sets.

use serde_json::{Value, json};

use super::model::{Attachment, NewVariableSet, VariableSet, VariableSetChange};
use super::{InvalidVariable, VariableError, rules, sets_store};
use crate::access::{Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{VariableSetId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::{Deps, business_units, workspaces};

/// Makes a set in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    mut new: NewVariableSet,
) -> Result<VariableSet, VariableError> {
    ctx.require(Permission::AdministerVariables)?;
    let unit = ctx.unit()?;
    new.check()?;
    new.description = new.description.filter(|text| !text.is_empty());
    // Makers of sets go one after the other: the limit is exact.
    if !business_units::service::lock(tx, unit).await? {
        return Err(VariableError::NotFound("business unit"));
    }
    if sets_store::count(tx, unit).await? >= rules::SETS_MAX {
        let reason =
            format!("there is no room for another: at most {} in one business unit", rules::SETS_MAX);
        return Err(InvalidVariable::new("name", reason).into());
    }
    let made = sets_store::insert(tx, deps.ids.mint(), unit, &new).await?;
    record(tx, ctx, &made, Action::VariableSetCreate, json!({})).await?;
    Ok(made)
}

/// One set.
pub async fn get(deps: &Deps, ctx: &Ctx, id: VariableSetId) -> Result<VariableSet, VariableError> {
    ctx.require(Permission::Read)?;
    find(&deps.db.conn().await?, ctx.scope, id).await
}

/// The sets of the scope, newest first.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<VariableSet>, VariableError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let rows = sets_store::list(&conn, ctx.scope, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |set| set.id.into()))
}

/// Edits a set. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: VariableSetId,
    version: Option<i32>,
    change: &VariableSetChange,
) -> Result<VariableSet, VariableError> {
    ctx.require(Permission::AdministerVariables)?;
    deps.db
        .transaction(async |tx| {
            let before = lock(tx, ctx.scope, id).await?.ok_or(VariableError::NotFound("variable set"))?;
            business_units::service::require_in_use::<VariableError>(tx, ctx, before.business_unit_id)
                .await?;
            if version.is_some_and(|seen| seen != before.version) {
                return Err(VariableError::VersionMismatch { actual: before.version });
            }
            let description = change.description.clone().or(before.description);
            let new = NewVariableSet {
                name: change.name.clone().unwrap_or(before.name),
                description: description.filter(|text| !text.is_empty()),
                priority: change.priority.unwrap_or(before.priority),
                all_workspaces: change.all_workspaces.unwrap_or(before.all_workspaces),
            };
            new.check()?;
            let after = sets_store::update(tx, id, &new).await?;
            record(tx, ctx, &after, Action::VariableSetUpdate, json!({})).await?;
            Ok(after)
        })
        .await
}

/// Removes a set with its variables.
pub async fn delete(deps: &Deps, ctx: &Ctx, id: VariableSetId) -> Result<(), VariableError> {
    ctx.require(Permission::AdministerVariables)?;
    deps.db
        .transaction(async |tx| {
            let set = lock(tx, ctx.scope, id).await?.ok_or(VariableError::NotFound("variable set"))?;
            business_units::service::require_in_use::<VariableError>(tx, ctx, set.business_unit_id).await?;
            sets_store::delete(tx, id).await?;
            record(tx, ctx, &set, Action::VariableSetDelete, json!({})).await
        })
        .await
}

/// Attaches a set to a workspace of the same unit. Attaching again changes nothing.
pub async fn attach(
    deps: &Deps,
    ctx: &Ctx,
    id: VariableSetId,
    workspace_id: WorkspaceId,
) -> Result<(), VariableError> {
    ctx.require(Permission::AdministerVariables)?;
    deps.db
        .transaction(async |tx| {
            let set = lock(tx, ctx.scope, id).await?.ok_or(VariableError::NotFound("variable set"))?;
            business_units::service::require_in_use::<VariableError>(tx, ctx, set.business_unit_id).await?;
            let unit = Scope::One(set.business_unit_id);
            let workspace = workspaces::service::find(tx, unit, workspace_id).await?;
            let workspace = workspace.ok_or(VariableError::NotFound("workspace"))?;
            if sets_store::attach(tx, &set, workspace_id).await.map_err(gone)? {
                let details = json!({"workspace_id": workspace_id, "workspace": workspace.name});
                record(tx, ctx, &set, Action::VariableSetAttach, details).await?;
            }
            Ok(())
        })
        .await
}

/// Detaches a set from a workspace.
pub async fn detach(
    deps: &Deps,
    ctx: &Ctx,
    id: VariableSetId,
    workspace_id: WorkspaceId,
) -> Result<(), VariableError> {
    ctx.require(Permission::AdministerVariables)?;
    deps.db
        .transaction(async |tx| {
            let set = lock(tx, ctx.scope, id).await?.ok_or(VariableError::NotFound("variable set"))?;
            business_units::service::require_in_use::<VariableError>(tx, ctx, set.business_unit_id).await?;
            if !sets_store::detach(tx, id, workspace_id).await? {
                return Err(VariableError::NotFound("workspace"));
            }
            let details = json!({"workspace_id": workspace_id});
            record(tx, ctx, &set, Action::VariableSetDetach, details).await
        })
        .await
}

/// The workspaces that a set is attached to by name; not those that have it because all have.
pub async fn attachments(
    deps: &Deps,
    ctx: &Ctx,
    id: VariableSetId,
    page: PageRequest,
) -> Result<Page<Attachment>, VariableError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    find(&conn, ctx.scope, id).await?;
    let rows = sets_store::attachments(&conn, id, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |attachment| attachment.workspace_id.into()))
}

/// The set, if the scope has it.
pub(super) async fn find(
    query: &impl Query,
    scope: Scope,
    id: VariableSetId,
) -> Result<VariableSet, VariableError> {
    sets_store::find(query, scope, id).await?.ok_or(VariableError::NotFound("variable set"))
}

/// The same, locked until the transaction ends.
pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    id: VariableSetId,
) -> Result<Option<VariableSet>, DbError> {
    sets_store::lock(tx, scope, id).await
}

/// The workspace was deleted between the look and the write.
fn gone(error: DbError) -> VariableError {
    match error {
        DbError::Missing { .. } => VariableError::NotFound("workspace"),
        other => other.into(),
    }
}

async fn record(
    tx: &Tx<'_>,
    ctx: &Ctx,
    set: &VariableSet,
    action: Action,
    more: Value,
) -> Result<(), VariableError> {
    let mut details =
        json!({"name": set.name, "priority": set.priority, "all_workspaces": set.all_workspaces});
    if let (Some(details), Value::Object(more)) = (details.as_object_mut(), more) {
        details.extend(more);
    }
    let entry = Entry {
        business_unit_id: Some(set.business_unit_id),
        actor: ctx.actor.clone(),
        action,
        resource_type: "variable_set",
        resource_id: set.id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}
