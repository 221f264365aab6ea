//! Use cases of workspaces. The functions that take a transaction and a scope are what runs call.

use serde_json::{Value, json};

use super::store::{self, DeletionFacts};
use super::{
    LocalRepos, NewWorkspace, Settings, Workspace, WorkspaceChange, WorkspaceError, WorkspaceFilter,
};
use crate::Deps;
use crate::access::{Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{RunId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::runs::RunStatus;

/// Longest note with which a person unblocks a workspace, in characters.
const NOTE_CHARS_MAX: usize = 1000;

/// Makes a workspace in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewWorkspace,
) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::AdministerWorkspaces)?;
    let unit = ctx.unit()?;
    let settings = Settings::validate(new, local_repos(deps))?;
    let id: WorkspaceId = deps.ids.mint();
    store::insert(tx, id, unit, ctx.actor.user_id(), &settings).await?;
    let made = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    audit::service::record(tx, &entry(ctx, Action::WorkspaceCreate, &made, place(&made))).await?;
    Ok(made)
}

/// One workspace.
pub async fn get(deps: &Deps, ctx: &Ctx, id: WorkspaceId) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::Read)?;
    store::find(&deps.db.conn().await?, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)
}

/// The workspaces of the scope, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    filter: &WorkspaceFilter,
    page: PageRequest,
) -> Result<Page<Workspace>, WorkspaceError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.scope, filter, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |workspace| workspace.id.into()))
}

/// Edits a workspace. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: WorkspaceId,
    version: Option<i32>,
    change: WorkspaceChange,
) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::AdministerWorkspaces)?;
    let local = local_repos(deps);
    deps.db
        .transaction(async |tx| {
            let before = lock_version(tx, ctx.scope, id, version).await?;
            let settings = Settings::validate(change.over(before.clone()), local)?;
            // A run under way pinned these; under its feet they would name another state or another code.
            if let Some(run_id) = before.active_run_id.filter(|_| moves(&before, &settings)) {
                return Err(WorkspaceError::RunActive { run_id });
            }
            if !store::update(tx, id, before.version, &settings).await? {
                return Err(WorkspaceError::VersionMismatch { actual: before.version });
            }
            let after = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
            let details = json!({ "changed": changed_fields(&before, &after) });
            audit::service::record(tx, &entry(ctx, Action::WorkspaceUpdate, &after, details)).await?;
            Ok(after)
        })
        .await
}

/// Deletes a workspace with its runs and state history. Never destroys what the state names: a workspace whose state
/// has resources, or whose state cannot be read, needs `force`.
pub async fn delete(
    deps: &Deps,
    ctx: &Ctx,
    id: WorkspaceId,
    version: Option<i32>,
    force: bool,
) -> Result<(), WorkspaceError> {
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
            let workspace = lock_version(tx, ctx.scope, id, version).await?;
            let facts =
                store::deletion_facts(tx, id, &ended_statuses()).await?.ok_or(WorkspaceError::NotFound)?;
            if let Some(run_id) = workspace.active_run_id.or(facts.running) {
                return Err(WorkspaceError::RunActive { run_id });
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

/// A person has looked at what a lost apply left behind, and lets the workspace go on. In the caller's transaction,
/// which also starts the next waiting run.
pub async fn unblock(
    tx: &Tx<'_>,
    ctx: &Ctx,
    id: WorkspaceId,
    note: &str,
) -> Result<Workspace, WorkspaceError> {
    ctx.require(Permission::AdministerState)?;
    let length = note.trim().chars().count();
    if length == 0 || length > NOTE_CHARS_MAX {
        return Err(super::InvalidField::new("note", "must have 1 to 1,000 characters").into());
    }
    let before = store::lock(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    let blocked = before.blocked.ok_or(WorkspaceError::NotBlocked)?;
    if store::has_quarantined_state(tx, id).await? {
        return Err(WorkspaceError::StateQuarantined);
    }
    store::unblock(tx, id).await?;
    let after = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    let details = json!({ "note": note, "reason": blocked.reason });
    let mut entry = entry(ctx, Action::WorkspaceUnblock, &after, details);
    entry.run_id = blocked.run_id;
    audit::service::record(tx, &entry).await?;
    Ok(after)
}

/// The workspace, if the scope has it.
pub async fn find(query: &impl Query, scope: Scope, id: WorkspaceId) -> Result<Option<Workspace>, DbError> {
    store::find(query, scope, id).await
}

/// The workspace, locked against other changes until the transaction ends.
pub async fn lock(tx: &Tx<'_>, scope: Scope, id: WorkspaceId) -> Result<Option<Workspace>, DbError> {
    store::lock(tx, scope, id).await
}

/// Says which run may change the workspace now. The caller holds its lock.
pub async fn set_active_run(tx: &Tx<'_>, id: WorkspaceId, run_id: Option<RunId>) -> Result<(), DbError> {
    store::set_active_run(tx, id, run_id).await
}

/// Lets no run change the workspace until a person has resolved it. A workspace that is blocked already keeps its
/// first reason. The caller records it.
pub async fn block(tx: &Tx<'_>, id: WorkspaceId, run_id: RunId, reason: &str) -> Result<(), DbError> {
    store::block(tx, id, run_id, reason).await
}

/// Whether this process may use repositories on its own disk.
pub(crate) fn local_repos(deps: &Deps) -> LocalRepos {
    if deps.local_repos_root.is_some() { LocalRepos::Allowed } else { LocalRepos::Refused }
}

/// What identifies a workspace to people, for the audit log.
pub(super) fn place(workspace: &Workspace) -> Value {
    json!({
        "name": workspace.name,
        "aws_account_id": workspace.aws_account_id,
        "region": workspace.region,
        "environment": workspace.environment,
        "repo_url": workspace.repo_url,
        "tf_working_dir": workspace.tf_working_dir,
    })
}

async fn lock_version(
    tx: &Tx<'_>,
    scope: Scope,
    id: WorkspaceId,
    version: Option<i32>,
) -> Result<Workspace, WorkspaceError> {
    let workspace = store::lock(tx, scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    match version {
        Some(seen) if seen != workspace.version => {
            Err(WorkspaceError::VersionMismatch { actual: workspace.version })
        }
        _ => Ok(workspace),
    }
}

fn moves(before: &Workspace, after: &Settings) -> bool {
    before.repo_url != after.repo_url()
        || before.tf_working_dir != after.tf_working_dir()
        || before.aws_account_id != after.aws_account_id()
        || before.region != after.region()
        || before.tool != after.tool()
}

/// The names of the fields that an edit changed; their values may be long.
fn changed_fields(before: &Workspace, after: &Workspace) -> Vec<String> {
    let (before, after) = (json!(before), json!(after));
    let fields = before.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| {
            !["version", "updated_at"].contains(&name.as_str()) && after[*name] != **value
        })
        .map(|(name, _)| name.clone())
        .collect()
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
        #[serde(default)]
        resources: Vec<serde::de::IgnoredAny>,
    }
    let Some(head) = &facts.head else { return Ok(false) };
    if head.opaque {
        return Ok(true);
    }
    let body = match deps.blobs.get(&head.key).await {
        Ok(body) => body,
        Err(crate::ports::BlobError::NotFound(_)) => return Ok(true),
        Err(error) => return Err(error.into()),
    };
    Ok(serde_json::from_slice::<Resources>(&body).map_or(true, |state| !state.resources.is_empty()))
}

fn entry(ctx: &Ctx, action: Action, workspace: &Workspace, details: Value) -> Entry {
    Entry {
        business_unit_id: Some(workspace.business_unit_id),
        actor: ctx.actor.clone(),
        action,
        resource_type: "workspace",
        resource_id: workspace.id.to_string(),
        workspace_id: Some(workspace.id),
        run_id: None,
        details,
    }
}
