//! Handing credentials out: to a run's bundle, and to a short task. Always within one unit, always recorded.

use serde_json::json;

use super::model::{GitCredential, GitSecret};
use super::places::{self, Place};
use super::store::{self, Stored};
use super::{GitCredentialError, service};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, GitCredentialId, RunId, TaskId, WorkspaceId};
use crate::protocol::{GitCredential as HandedOut, RunPhase};
use crate::secrets::Domain;
use crate::workspaces::{RepoUrl, Transport};

/// Credentials of one host that one run gets at most.
const OF_A_HOST_MAX: i64 = 20;

/// A credential in the clear.
#[derive(Clone, Debug)]
pub struct Opened {
    /// As people see it.
    pub shown: GitCredential,
    /// What lets Git in.
    pub secret: GitSecret,
}

/// Who gets a credential.
#[derive(Clone, Copy, Debug)]
pub enum UsedBy {
    /// The supervisor of a run.
    Run {
        /// The run's workspace.
        workspace_id: WorkspaceId,
        /// The run.
        run_id: RunId,
        /// Which half of it.
        phase: RunPhase,
    },
    /// A short task.
    Task(TaskId),
}

/// Whether a secret may be sent to the repository: not in the clear, but on one machine.
pub(super) fn is_safe(deps: &Deps, place: &Place) -> bool {
    place.is_encrypted || deps.allow_private_addresses
}

/// What a credential is matched by.
pub(super) fn terms(shown: &GitCredential) -> (Transport, &str, &str) {
    (shown.kind.transport(), &shown.host, &shown.path_prefix)
}

/// The credentials of a unit for a host.
pub(super) async fn of_host(
    query: &impl Query,
    unit: BusinessUnitId,
    transport: Transport,
    host: &str,
) -> Result<Vec<Stored>, DbError> {
    store::of_host(query, unit, transport, host, OF_A_HOST_MAX).await
}

/// The credential for one repository; `None` if the unit has none.
pub async fn find(
    query: &impl Query,
    deps: &Deps,
    unit: BusinessUnitId,
    repository: &RepoUrl,
) -> Result<Option<Opened>, GitCredentialError> {
    let Some(place) = Place::of(repository).filter(|place| is_safe(deps, place)) else { return Ok(None) };
    let all = of_host(query, unit, place.transport, &place.host).await?;
    places::best(all, &place, |one| terms(&one.shown)).map(|found| open(deps, found)).transpose()
}

/// What a run may need at its repository's host: the repository's own credential, and those for modules beside it. A
/// key is for the repository alone, because ssh cannot tell which path asks.
pub async fn find_for_run(
    query: &impl Query,
    deps: &Deps,
    unit: BusinessUnitId,
    repo_url: &str,
) -> Result<Vec<Opened>, GitCredentialError> {
    // An address that is no address any more has no credential; whoever clones says what is wrong with it.
    let Ok(repository) = RepoUrl::parse(repo_url, crate::workspaces::service::local_repos(deps)) else {
        return Ok(Vec::new());
    };
    if repository.transport() != Transport::Http {
        return Ok(find(query, deps, unit, &repository).await?.into_iter().collect());
    }
    let Some(place) = Place::of(&repository).filter(|place| is_safe(deps, place)) else {
        return Ok(Vec::new());
    };
    let all = of_host(query, unit, place.transport, &place.host).await?;
    let own = places::best(&all, &place, |one| terms(&one.shown)).map(|own| own.shown.id);
    let mut opened = Vec::new();
    for stored in all {
        let id = stored.shown.id;
        match open(deps, stored) {
            Ok(one) => opened.push(one),
            Err(error) if own == Some(id) => return Err(error),
            // Modules that need it will say so; others must not wait for its repair.
            Err(error) => {
                tracing::warn!(git_credential.id = %id, %error, "a Git credential cannot be opened")
            }
        }
    }
    Ok(opened)
}

/// Opens one credential of a unit.
pub(super) async fn open_one(
    query: &impl Query,
    deps: &Deps,
    unit: BusinessUnitId,
    id: GitCredentialId,
) -> Result<Option<Opened>, GitCredentialError> {
    let found = store::find(query, crate::access::Scope::One(unit), id).await?;
    found.map(|stored| open(deps, stored)).transpose()
}

/// Records that credentials were handed out. The last statements of their transaction.
pub async fn record(tx: &Tx<'_>, all: &[Opened], used_by: UsedBy, repo_url: &str) -> Result<(), DbError> {
    // Every row before the audit log's head, as everybody does.
    for opened in all {
        store::used(tx, opened.shown.id).await?;
    }
    for opened in all {
        audit::service::record(tx, &entry(opened, used_by, repo_url)).await?;
    }
    Ok(())
}

fn entry(opened: &Opened, used_by: UsedBy, repo_url: &str) -> Entry {
    let mut details = json!({
        "name": opened.shown.name,
        "kind": opened.shown.kind,
        "host": opened.shown.host,
        "repo_url": repo_url,
    });
    let (workspace_id, run_id) = match used_by {
        UsedBy::Run { workspace_id, run_id, phase } => {
            details["phase"] = json!(phase);
            (Some(workspace_id), Some(run_id))
        }
        UsedBy::Task(task_id) => {
            details["task_id"] = json!(task_id);
            (None, None)
        }
    };
    Entry {
        business_unit_id: Some(opened.shown.business_unit_id),
        actor: Actor::System,
        action: Action::GitCredentialUse,
        resource_type: "git_credential",
        resource_id: opened.shown.id.to_string(),
        workspace_id,
        run_id,
        details,
    }
}

impl From<Opened> for HandedOut {
    fn from(opened: Opened) -> Self {
        Self { host: opened.shown.host, path_prefix: opened.shown.path_prefix, secret: opened.secret }
    }
}

fn open(deps: &Deps, stored: Stored) -> Result<Opened, GitCredentialError> {
    let text = deps.keys.open(Domain::Git, service::seat(stored.shown.id), &stored.secret_sealed)?;
    let secret = stored.shown.with_secret(text.expose().to_owned());
    Ok(Opened { shown: stored.shown, secret })
}
