//! Use cases of people: store, look, edit, delete, ask for a test.

use serde_json::{Value, json};

use super::model::{
    GitCredential, GitCredentialChange, GitCredentialKind, GitCredentialUsage, NewGitCredential,
    TestGitCredential, UsingWorkspace,
};
use super::places::{self, Place};
use super::rules::Settings;
use super::store::{self, Stored};
use super::{GitCredentialError, app_tokens, uses};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::business_units;
use crate::db::{DbError, Query, Tx};
use crate::ids::{GitCredentialId, TaskId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place as Seat};
use crate::tasks::{self, NewTask, TaskKind};
use crate::workspaces::service::local_repos;
use crate::workspaces::{self, InvalidField, LocalRepos, RepoUrl};

/// Workspaces that are looked at to say who uses a credential.
const LOOKED_AT_MAX: i64 = 10_000;
/// Of these so many are shown.
const SHOWN_MAX: usize = 100;

/// Stores a credential in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    new: NewGitCredential,
) -> Result<GitCredential, GitCredentialError> {
    ctx.require(Permission::AdministerGitCredentials)?;
    let unit = ctx.unit()?;
    let settings = Settings::validate(new, deps.allow_private_addresses)?;
    let id: GitCredentialId = deps.ids.mint();
    let sealed = seal(deps, id, &settings)?.ok_or(InvalidField::new("token", "is needed"))?;
    store::insert(tx, id, unit, ctx.actor.user_id(), &settings, &sealed).await?;
    let made = find(tx, ctx, id).await?.shown;
    audit::service::record(tx, &entry(ctx, Action::GitCredentialCreate, &made, place(&made))).await?;
    Ok(made)
}

/// One credential.
pub async fn get(deps: &Deps, ctx: &Ctx, id: GitCredentialId) -> Result<GitCredential, GitCredentialError> {
    ctx.require(Permission::ReadGitCredentials)?;
    let conn = deps.db.conn().await?;
    Ok(find(&conn, ctx, id).await?.shown)
}

/// The credentials of the scope, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    page: PageRequest,
) -> Result<Page<GitCredential>, GitCredentialError> {
    ctx.require(Permission::ReadGitCredentials)?;
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, ctx.scope, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |credential| credential.id.into()))
}

/// The workspaces that would miss it.
pub async fn usage(
    deps: &Deps,
    ctx: &Ctx,
    id: GitCredentialId,
) -> Result<GitCredentialUsage, GitCredentialError> {
    ctx.require(Permission::ReadGitCredentials)?;
    let conn = deps.db.conn().await?;
    let credential = find(&conn, ctx, id).await?.shown;
    let mut workspaces = users_of(&conn, &credential).await?;
    let workspaces_total = workspaces.len();
    workspaces.truncate(SHOWN_MAX);
    Ok(GitCredentialUsage { workspaces_total, workspaces, last_used_at: credential.last_used_at })
}

/// Edits a credential. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: GitCredentialId,
    version: Option<i32>,
    change: GitCredentialChange,
) -> Result<GitCredential, GitCredentialError> {
    ctx.require(Permission::AdministerGitCredentials)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(GitCredentialError::NotFound)?.shown;
            business_units::service::require_in_use::<GitCredentialError>(tx, ctx, before.business_unit_id)
                .await?;
            if version.is_some_and(|seen| seen != before.version) {
                return Err(GitCredentialError::VersionMismatch { actual: before.version });
            }
            let settings = Settings::change(before.clone(), change, deps.allow_private_addresses)?;
            let sealed = seal(deps, id, &settings)?;
            let is_replaced = sealed.is_some();
            store::update(tx, id, &settings, sealed).await?;
            let after = find(tx, ctx, id).await?.shown;
            let details = json!({ "changed": changed(&before, &after), "secret_replaced": is_replaced });
            audit::service::record(tx, &entry(ctx, Action::GitCredentialUpdate, &after, details)).await?;
            Ok(after)
        })
        .await
}

/// Deletes a credential; one that workspaces use only with `force`.
pub async fn delete(
    deps: &Deps,
    ctx: &Ctx,
    id: GitCredentialId,
    force: bool,
) -> Result<(), GitCredentialError> {
    ctx.require(Permission::AdministerGitCredentials)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, ctx.scope, id).await?.ok_or(GitCredentialError::NotFound)?.shown;
            business_units::service::require_in_use::<GitCredentialError>(tx, ctx, before.business_unit_id)
                .await?;
            let workspaces = users_of(tx, &before).await?.len();
            if workspaces > 0 && !force {
                return Err(GitCredentialError::InUse { workspaces });
            }
            store::delete(tx, id).await?;
            let mut details = place(&before);
            details["workspaces"] = json!(workspaces);
            audit::service::record(tx, &entry(ctx, Action::GitCredentialDelete, &before, details)).await?;
            Ok(())
        })
        .await
}

/// Asks for a look at a repository with the credential. What was found is the result of the task.
pub async fn request_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    id: GitCredentialId,
    request: TestGitCredential,
) -> Result<TaskId, GitCredentialError> {
    ctx.require(Permission::AdministerGitCredentials)?;
    let credential = store::lock(tx, ctx.scope, id).await?.ok_or(GitCredentialError::NotFound)?.shown;
    business_units::service::require_in_use::<GitCredentialError>(tx, ctx, credential.business_unit_id)
        .await?;
    let asked_by = ctx.person()?;
    let wrong = |reason: &str| InvalidField::new("repo_url", reason);
    let url = request.repo_url.or(credential.test_repo_url.clone());
    let url = url.ok_or_else(|| wrong("is needed: no repository was tested before"))?;
    let repository = RepoUrl::parse(&url, local_repos(deps)).map_err(wrong)?;
    let place = Place::of(&repository).ok_or_else(|| wrong("needs no credential"))?;
    let kind = credential.kind;
    if !places::covers(kind.transport(), &credential.host, &credential.path_prefix, &place) {
        return Err(wrong("is not a repository that this credential is for").into());
    }
    if !uses::is_safe(deps, &place) {
        return Err(wrong("must begin with https://: nothing secret is sent in the clear").into());
    }
    store::remember_test(tx, id, repository.as_str()).await?;
    let task_kind = TaskKind::GitCredentialTest;
    let key = format!("{}:{id}:{}:{}", task_kind.as_str(), asked_by, repository.as_str());
    let mut task = NewTask::new(task_kind, credential.business_unit_id, id, key);
    task.payload = json!({ "repo_url": repository.as_str() });
    task.traceparent = ctx.traceparent.clone();
    task.requested_by = Some(asked_by);
    let task_id = tasks::service::enqueue(tx, deps.ids, &task).await?.task_id();
    let details = json!({ "repo_url": repository.as_str(), "task_id": task_id });
    audit::service::record(tx, &entry(ctx, Action::GitCredentialTest, &credential, details)).await?;
    Ok(task_id)
}

/// Where a credential's secret belongs.
pub(super) fn seat(id: GitCredentialId) -> Seat {
    Seat { table: "git_credentials", column: "secret_sealed", row: id.0 }
}

fn seal(deps: &Deps, id: GitCredentialId, settings: &Settings) -> Result<Option<String>, GitCredentialError> {
    let Some(secret) = &settings.secret else { return Ok(None) };
    if settings.kind == GitCredentialKind::GithubApp {
        app_tokens::check_key(&secret.text).map_err(|reason| InvalidField::new("private_key", reason))?;
    }
    Ok(Some(deps.keys.seal(Domain::Git, seat(id), &secret.text)?))
}

async fn find(query: &impl Query, ctx: &Ctx, id: GitCredentialId) -> Result<Stored, GitCredentialError> {
    store::find(query, ctx.scope, id).await?.ok_or(GitCredentialError::NotFound)
}

/// The workspaces for whose repository this credential is the one that is used.
async fn users_of(query: &impl Query, credential: &GitCredential) -> Result<Vec<UsingWorkspace>, DbError> {
    let (unit, transport) = (credential.business_unit_id, credential.kind.transport());
    let rivals = uses::of_host(query, unit, transport, &credential.host).await?;
    let name = match credential.host.strip_prefix('[') {
        Some(address) => address.split(']').next().unwrap_or_default(),
        None => credential.host.split(':').next().unwrap_or_default(),
    };
    let mut users = Vec::new();
    for (id, name, repo_url) in workspaces::service::at_host(query, unit, name, LOOKED_AT_MAX).await? {
        let place = RepoUrl::parse(&repo_url, LocalRepos::Allowed).ok().and_then(|url| Place::of(&url));
        let is_used = place.is_some_and(|place| {
            places::best(&rivals, &place, |one| uses::terms(&one.shown))
                .is_some_and(|used| used.shown.id == credential.id)
        });
        if is_used {
            users.push(UsingWorkspace { id, name, repo_url });
        }
    }
    Ok(users)
}

/// What identifies a credential to people, for the audit log.
fn place(credential: &GitCredential) -> Value {
    json!({
        "name": credential.name,
        "kind": credential.kind,
        "host": credential.host,
        "path_prefix": credential.path_prefix,
    })
}

/// The names of the fields that an edit changed.
fn changed(before: &GitCredential, after: &GitCredential) -> Vec<String> {
    let (before, after) = (json!(before), json!(after));
    let fields = before.as_object().into_iter().flatten();
    fields
        .filter(|(name, value)| {
            !["version", "updated_at", "secret"].contains(&name.as_str()) && after[*name] != **value
        })
        .map(|(name, _)| name.clone())
        .collect()
}

fn entry(ctx: &Ctx, action: Action, credential: &GitCredential, details: Value) -> Entry {
    Entry {
        business_unit_id: Some(credential.business_unit_id),
        actor: ctx.actor.clone(),
        action,
        resource_type: "git_credential",
        resource_id: credential.id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    }
}
