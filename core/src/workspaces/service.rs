//! Use cases of workspaces. The functions that take a transaction and a scope are what runs call.

use serde_json::{Value, json};

use super::store;
use super::{
    LocalRepos, NewWorkspace, Settings, Workspace, WorkspaceChange, WorkspaceError, WorkspaceFilter,
};
use crate::Deps;
use crate::access::{AccessError, Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, RunId, TaskId, WorkspaceId};
use crate::page::{Page, PageRequest};
use crate::tasks::{self, NewTask, TaskKind};

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
    let rows =
        store::list(&conn, ctx.scope, ctx.workspaces_param(), filter, page.cursor, page.limit + 1).await?;
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
            business_units::service::require_in_use::<WorkspaceError>(tx, ctx, before.business_unit_id)
                .await?;
            let settings = Settings::validate(change.over(before.clone()), local)?;
            // A key of some workspaces could reach the clouds of all others by it.
            if ctx.workspaces().is_some() && changes_credentials(&before, &settings) {
                return Err(AccessError::KeyConfined.into());
            }
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
    business_units::service::require_in_use::<WorkspaceError>(tx, ctx, before.business_unit_id).await?;
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

/// Asks for the branches of a workspace's repository. They are the result of the task.
pub async fn request_branches(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: WorkspaceId,
) -> Result<TaskId, WorkspaceError> {
    ctx.require(Permission::Read)?;
    let workspace = store::find(tx, ctx.scope, id).await?.ok_or(WorkspaceError::NotFound)?;
    business_units::service::require_in_use::<WorkspaceError>(tx, ctx, workspace.business_unit_id).await?;
    // Only who asked may read the result, so two people's requests are two tasks.
    let asked_by = ctx.person()?;
    let kind = TaskKind::WorkspaceBranches;
    let key = format!("{}:{id}:{asked_by}", kind.as_str());
    let mut task = NewTask::new(kind, workspace.business_unit_id, id, key);
    task.traceparent = ctx.traceparent.clone();
    task.requested_by = Some(asked_by);
    Ok(tasks::service::enqueue(tx, deps.ids, &task).await?.task_id())
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

/// Id, name and repository of a unit's workspaces whose repository may be at the host, newest first.
pub async fn at_host(
    query: &impl Query,
    unit: BusinessUnitId,
    host_name: &str,
    limit: i64,
) -> Result<Vec<(WorkspaceId, String, String)>, DbError> {
    store::naming(query, unit, host_name, limit).await
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
        || before.region != after.region()
        || before.tool != after.tool()
        || changes_credentials(before, after)
}

/// Whether runs would get other credentials after an edit.
fn changes_credentials(before: &Workspace, after: &Settings) -> bool {
    let links = after.links();
    before.aws_account_id != after.aws_account_id()
        || before.state_aws_account_id != links.state_aws_account_id
        || before.azure_subscription_id != links.azure_subscription_id
        || before.gcp_project_id != links.gcp_project_id
        || before.cluster_id != links.cluster_id
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

pub(super) fn entry(ctx: &Ctx, action: Action, workspace: &Workspace, details: Value) -> Entry {
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
