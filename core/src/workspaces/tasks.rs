//! What queued tasks about workspaces do.

use serde_json::{Value, json};

use super::{RepoUrl, service};
use crate::Deps;
use crate::access::Scope;
use crate::adapters::{Git, GitError};
use crate::db::DbError;
use crate::git_credentials;
use crate::tasks::{ClaimedTask, FailedAttempt};

/// Branches in a result. Nobody chooses among more.
const BRANCHES_MAX: usize = 1000;

/// Lists the branches of a workspace's repository: `{default_branch, branches, truncated}`.
pub async fn branches(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let workspace = {
        let conn = deps.db.conn().await.map_err(database)?;
        service::find(&conn, Scope::One(task.business_unit_id), task.subject_id.into())
            .await
            .map_err(database)?
            .ok_or_else(|| FailedAttempt::Permanent("the workspace is gone".into()))?
    };
    let repository = RepoUrl::parse(&workspace.repo_url, service::local_repos(deps))
        .map_err(|reason| FailedAttempt::Permanent(format!("repo_url: {reason}")))?;
    let login = git_credentials::tasks::login(deps, task, &repository).await?;
    let found = Git::new(deps).list_branches(&repository, login.as_ref()).await.map_err(git)?;
    let truncated = found.branches.len() > BRANCHES_MAX;
    let branches = &found.branches[..found.branches.len().min(BRANCHES_MAX)];
    Ok(json!({ "default_branch": found.default_branch, "branches": branches, "truncated": truncated }))
}

pub(crate) fn git(error: GitError) -> FailedAttempt {
    match error {
        GitError::Refused(why) | GitError::HostKey(why) => FailedAttempt::Permanent(why),
        GitError::Unavailable(why) => FailedAttempt::Retry(why),
    }
}

/// A task's error is shown to whoever asked: the cause goes to the log alone.
pub(crate) fn database(error: DbError) -> FailedAttempt {
    tracing::warn!(error = %error, "a short task could not use the database");
    FailedAttempt::Retry("the database could not be used".into())
}
