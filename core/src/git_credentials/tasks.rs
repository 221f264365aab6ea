//! What short tasks do with Git credentials: get a login for a repository, and test a credential.

use serde::Deserialize;
use serde_json::{Value, json};

use super::app_tokens::{self, AppTokenError};
use super::model::{GitSecret, TestOutcome, TestResult};
use super::uses::{self, Opened, UsedBy};
use super::{GitCredentialError, places};
use crate::Deps;
use crate::adapters::{Git, GitError, GitLogin};
use crate::ids::GitCredentialId;
use crate::tasks::{ClaimedTask, FailedAttempt};
use crate::workspaces::RepoUrl;
use crate::workspaces::service::local_repos;
use crate::workspaces::tasks::database;

#[derive(Deserialize)]
struct Payload {
    repo_url: String,
}

/// The unit's login for a repository; `None` if it has none.
pub(crate) async fn login(
    deps: &Deps,
    task: &ClaimedTask,
    repository: &RepoUrl,
) -> Result<Option<GitLogin>, FailedAttempt> {
    let unit = task.business_unit_id;
    let found = deps
        .db
        .transaction(async |tx| {
            let found = uses::find(tx, deps, unit, repository).await?;
            if let Some(opened) = &found {
                let used_by = UsedBy::Task(task.lease.task_id);
                uses::record(tx, std::slice::from_ref(opened), used_by, repository.as_str()).await?;
            }
            Ok::<_, GitCredentialError>(found)
        })
        .await
        .map_err(failed)?;
    let Some(opened) = found else { return Ok(None) };
    match log_in(deps, opened).await {
        Ok(login) => Ok(Some(login)),
        Err(GitError::Refused(why) | GitError::HostKey(why)) => Err(FailedAttempt::Permanent(why)),
        Err(GitError::Unavailable(why)) => Err(FailedAttempt::Retry(why)),
    }
}

/// Looks at a repository with one credential: a [`TestResult`]. That it cannot be reached is a result, too.
pub async fn test(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let payload: Payload = serde_json::from_value(task.payload.clone())
        .map_err(|_| FailedAttempt::Permanent("the task's payload cannot be read".into()))?;
    let repository = RepoUrl::parse(&payload.repo_url, local_repos(deps))
        .map_err(|reason| FailedAttempt::Permanent(format!("repo_url: {reason}")))?;
    let (unit, id) = (task.business_unit_id, GitCredentialId(task.subject_id));
    let found = deps
        .db
        .transaction(async |tx| {
            let found = uses::open_one(tx, deps, unit, id).await?;
            // It may have been edited since the test was asked for.
            let place = places::Place::of(&repository).filter(|place| uses::is_safe(deps, place));
            let found = found.filter(|opened| {
                let (transport, host, prefix) = uses::terms(&opened.shown);
                place.as_ref().is_some_and(|place| places::covers(transport, host, prefix, place))
            });
            if let Some(opened) = &found {
                let used_by = UsedBy::Task(task.lease.task_id);
                uses::record(tx, std::slice::from_ref(opened), used_by, repository.as_str()).await?;
            }
            Ok::<_, GitCredentialError>(found)
        })
        .await
        .map_err(failed)?;
    let opened = found.ok_or_else(|| {
        FailedAttempt::Permanent("the credential is gone, or is not for this repository any more".into())
    })?;
    let (outcome, detail) = match look(deps, opened, &repository).await {
        Ok(()) => (TestOutcome::Ok, "the repository can be read".to_owned()),
        Err(GitError::Refused(why)) => (TestOutcome::Refused, why),
        Err(GitError::HostKey(why)) => (TestOutcome::HostKeyMismatch, why),
        Err(GitError::Unavailable(why)) => (TestOutcome::Unreachable, why),
    };
    Ok(json!(TestResult { outcome, detail, repo_url: repository.as_str().to_owned() }))
}

async fn look(deps: &Deps, opened: Opened, repository: &RepoUrl) -> Result<(), GitError> {
    let login = log_in(deps, opened).await?;
    Git::new(deps).list_branches(repository, Some(&login)).await?;
    Ok(())
}

/// What Git can use. The token of an app is made now.
async fn log_in(deps: &Deps, opened: Opened) -> Result<GitLogin, GitError> {
    Ok(match opened.secret {
        GitSecret::Token { username, token } => GitLogin::Password { username, token: token.into() },
        GitSecret::SshKey { private_key, host_keys } => {
            GitLogin::Key { private_key: private_key.into(), host_keys }
        }
        GitSecret::GithubApp(app) => {
            let minted = app_tokens::mint(&app, deps.allow_private_addresses).await;
            let token = minted.map_err(|error| match error {
                AppTokenError::Refused(why) => GitError::Refused(why),
                AppTokenError::Unavailable(why) => GitError::Unavailable(why),
            })?;
            GitLogin::Password { username: app_tokens::USERNAME.into(), token: token.into_text().into() }
        }
    })
}

fn failed(error: GitCredentialError) -> FailedAttempt {
    match error {
        GitCredentialError::Db(error) => database(error),
        other => FailedAttempt::Permanent(format!("the Git credential cannot be used: {other}")),
    }
}
