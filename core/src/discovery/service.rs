//! Asking for a look into a repository, or for an import. Both are short tasks: the caller reads their result.

use serde::{Deserialize, Serialize};
use serde_json::json;
use uuid::Uuid;

use super::rules::clouds_of;
use super::{DiscoverRequest, ImportEntry, ImportRequest};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::adapters::GitLogin;
use crate::audit::{self, Action, Entry};
use crate::db::Tx;
use crate::ids::TaskId;
use crate::secrets::{Domain, Place, SealError, SecretText};
use crate::state_stores::StateBackend;
use crate::tasks::{self, NewTask, TaskKind};
use crate::workspaces::service::local_repos;
use crate::workspaces::{
    InvalidField, NewWorkspace, RepoUrl, Settings, StateWrites, Tool, WorkspaceError, WorkspaceKind,
    check_branch,
};

/// Entries that one import takes at most.
const ENTRIES_MAX: usize = 500;
const USERNAME_CHARS_MAX: usize = 255;
const TOKEN_BYTES_MAX: usize = 4096;
/// What forges take as the name beside a token.
const DEFAULT_USERNAME: &str = "x-access-token";

/// What the task needs. The login is sealed, bound to the task's subject.
#[derive(Debug, Serialize, Deserialize)]
pub(super) struct Payload {
    pub repo_url: String,
    #[serde(rename = "ref")]
    pub reference: Option<String>,
    pub login_sealed: Option<String>,
    /// The login was removed, some time after the task had finished: its replay fails and says so.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub login_removed: bool,
    pub entries: Option<Vec<ImportEntry>>,
    /// Who asked, for the audit entries of what the task makes.
    pub actor: Actor,
}

#[derive(Serialize, Deserialize)]
struct SealedLogin {
    username: String,
    #[serde(serialize_with = "crate::secrets::exposed")]
    token: SecretText,
}

/// Asks for the candidates of a repository.
pub async fn request_discovery(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    request: DiscoverRequest,
) -> Result<TaskId, WorkspaceError> {
    let DiscoverRequest { repo_url, reference, username, token } = request;
    enqueue(
        tx,
        deps,
        ctx,
        TaskKind::RepositoryDiscover,
        Asked { repo_url, reference, username, token, entries: None },
    )
    .await
}

/// Asks for workspaces for the named directories, or for all candidates.
pub async fn request_import(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    request: ImportRequest,
) -> Result<TaskId, WorkspaceError> {
    let ImportRequest { repo_url, reference, username, token, entries } = request;
    if let Some(entries) = &entries {
        check_entries(entries, &repo_url, deps)?;
    }
    enqueue(tx, deps, ctx, TaskKind::WorkspaceImport, Asked { repo_url, reference, username, token, entries })
        .await
}

/// The settings that an entry or a candidate asks for, before they are checked.
pub(super) fn settings_for(entry: ImportEntry, repo_url: &str, repo_ref: &str) -> NewWorkspace {
    let global = || "global".to_owned();
    // Taken only if they are registered, when the workspace is stored.
    let (azure_subscription_id, gcp_project_id) = clouds_of(&entry.path);
    NewWorkspace {
        name: entry.name.unwrap_or_else(|| "workspace".into()),
        environment: entry.environment.unwrap_or_else(|| "dev".into()),
        repo_url: repo_url.to_owned(),
        kind: entry.kind.unwrap_or(WorkspaceKind::Terraform),
        aws_account_id: entry.aws_account_id.unwrap_or_else(global),
        region: entry.region.unwrap_or_else(global),
        repo_ref: repo_ref.to_owned(),
        tf_working_dir: entry.path,
        tool: Tool::Terraform,
        tool_version: None,
        tags: std::collections::BTreeMap::new(),
        state_writes: StateWrites::RunsOnly,
        state_backend: StateBackend::default(),
        webhook_enabled: false,
        state_aws_account_id: None,
        azure_subscription_id,
        gcp_project_id,
        cluster_id: None,
    }
}

impl Payload {
    /// The login that came with the request.
    pub(super) fn open_login(&self, deps: &Deps, subject: Uuid) -> Result<Option<GitLogin>, SealError> {
        if self.login_removed {
            return Err(SealError::Unreadable(
                "it was removed some time after the task had finished: ask anew",
            ));
        }
        let Some(sealed) = &self.login_sealed else { return Ok(None) };
        let opened = deps.keys.open(Domain::Git, place(subject), sealed)?;
        let login: SealedLogin =
            serde_json::from_str(&opened).map_err(|_| SealError::Unreadable("it is not a login"))?;
        Ok(Some(GitLogin::Password { username: login.username, token: login.token }))
    }
}

struct Asked {
    repo_url: String,
    reference: Option<String>,
    username: Option<String>,
    token: Option<SecretText>,
    entries: Option<Vec<ImportEntry>>,
}

async fn enqueue(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    kind: TaskKind,
    asked: Asked,
) -> Result<TaskId, WorkspaceError> {
    ctx.require(Permission::AdministerWorkspaces)?;
    let unit = ctx.unit()?;
    let repository = RepoUrl::parse(&asked.repo_url, local_repos(deps))
        .map_err(|reason| InvalidField::new("repo_url", reason))?;
    if let Some(reference) = &asked.reference {
        check_branch(reference).map_err(|reason| InvalidField::new("ref", reason))?;
    }
    let subject: Uuid = deps.ids.mint();
    let login_sealed = login(deps, &repository, asked.username, asked.token)?
        .map(|login| seal_login(deps, subject, &login))
        .transpose()?;
    let details = json!({
        "repo_url": repository.as_str(),
        "ref": asked.reference,
        "with_login": login_sealed.is_some(),
        "entries": asked.entries.as_ref().map(Vec::len),
    });
    let payload = Payload {
        repo_url: repository.as_str().to_owned(),
        reference: asked.reference,
        login_sealed,
        login_removed: false,
        entries: asked.entries,
        actor: ctx.actor.clone(),
    };
    let mut task = NewTask::new(kind, unit, subject, format!("{}:{subject}", kind.as_str()));
    task.payload = json!(payload);
    task.traceparent = ctx.traceparent.clone();
    task.requested_by = Some(ctx.person()?);
    let task_id = tasks::service::enqueue(tx, deps.ids, &task).await?.task_id();
    let action = match kind {
        TaskKind::WorkspaceImport => Action::WorkspaceImport,
        _ => Action::RepositoryDiscover,
    };
    let entry = Entry {
        business_unit_id: Some(unit),
        actor: ctx.actor.clone(),
        action,
        resource_type: "task",
        resource_id: task_id.to_string(),
        workspace_id: None,
        run_id: None,
        details,
    };
    audit::service::record(tx, &entry).await?;
    Ok(task_id)
}

fn seal_login(deps: &Deps, subject: Uuid, login: &SealedLogin) -> Result<String, SealError> {
    let text = SecretText::new(serde_json::to_string(login).expect("plain text is JSON"));
    deps.keys.seal(Domain::Git, place(subject), &text)
}

fn place(subject: Uuid) -> Place {
    Place { table: "tasks", column: "payload", row: subject }
}

/// A login that Git's line protocol can carry, for a transport that keeps it secret.
fn login(
    deps: &Deps,
    repository: &RepoUrl,
    username: Option<String>,
    token: Option<SecretText>,
) -> Result<Option<SealedLogin>, InvalidField> {
    let Some(token) = token else {
        return match username {
            Some(_) => Err(InvalidField::new("username", "needs a token beside it")),
            None => Ok(None),
        };
    };
    // On one machine the wire is the machine's own.
    let encrypted = repository.as_str().starts_with("https://");
    let local_wire = deps.allow_private_addresses && repository.as_str().starts_with("http://");
    if !encrypted && !local_wire {
        return Err(InvalidField::new("token", "is for https alone: elsewhere it is not needed or not safe"));
    }
    let plain = |text: &str| !text.is_empty() && !text.chars().any(char::is_control);
    let username = username.unwrap_or_else(|| DEFAULT_USERNAME.into());
    if !plain(&username) || username.chars().count() > USERNAME_CHARS_MAX {
        return Err(InvalidField::new("username", "must have 1 to 255 characters, no control characters"));
    }
    if !plain(&token) || token.len() > TOKEN_BYTES_MAX {
        return Err(InvalidField::new("token", "must have 1 to 4,096 bytes, no control characters"));
    }
    Ok(Some(SealedLogin { username, token }))
}

/// Every field as strictly as when a workspace is made.
fn check_entries(entries: &[ImportEntry], repo_url: &str, deps: &Deps) -> Result<(), InvalidField> {
    if entries.is_empty() || entries.len() > ENTRIES_MAX {
        return Err(InvalidField::new("entries", "must be 1 to 500, or absent for everything"));
    }
    for (at, entry) in entries.iter().enumerate() {
        Settings::validate(settings_for(entry.clone(), repo_url, "main"), local_repos(deps)).map_err(
            |wrong| match wrong.field {
                "repo_url" => wrong,
                "tf_working_dir" => InvalidField::new("entries", format!("{at}.path: {}", wrong.reason)),
                field => InvalidField::new("entries", format!("{at}.{field}: {}", wrong.reason)),
            },
        )?;
    }
    Ok(())
}
