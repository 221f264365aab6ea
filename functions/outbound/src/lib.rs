//! Short tasks that reach addresses which a tenant chose. It may not launch anything, or reach private addresses.
//!
//! The worker hands over a task that it has claimed, and settles it with the answer: in the same process on one
//! machine, by an invocation on AWS.

mod asking;
mod aws_accounts;
mod azure_subscriptions;
mod clusters;
mod gcp_projects;
mod integrations;

use plumbline_core::Deps;
use plumbline_core::ids::TaskId;
use plumbline_core::tasks::{self, ClaimedTask, FailedAttempt, Lease, TaskError, TaskKind};
use plumbline_core::{ci_logins, discovery, git_credentials, workspaces};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Does a claimed task and gives its result. Does not settle it.
pub async fn handle(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    match task.kind {
        TaskKind::RepositoryDiscover => discovery::tasks::look(deps, task).await,
        TaskKind::WorkspaceImport => discovery::tasks::import(deps, task).await,
        TaskKind::WorkspaceBranches => workspaces::tasks::branches(deps, task).await,
        TaskKind::GitCredentialTest => git_credentials::tasks::test(deps, task).await,
        TaskKind::AwsAccountTest => aws_accounts::test(deps, task).await,
        TaskKind::AzureSubscriptionTest => azure_subscriptions::test(deps, task).await,
        TaskKind::GcpProjectTest => gcp_projects::test(deps, task).await,
        TaskKind::ClusterTest => clusters::test(deps, task).await,
        TaskKind::SlackTest => integrations::slack(deps, task).await,
        TaskKind::InfracostTest => integrations::infracost(deps, task).await,
        TaskKind::IssuerKeys => ci_logins::tasks::fetch_keys(deps, task).await,
        TaskKind::RunPlan | TaskKind::RunApply => {
            Err(FailedAttempt::Permanent("this kind of task needs an executor".into()))
        }
        TaskKind::StateIndex => {
            Err(FailedAttempt::Permanent("the worker itself does this kind of task".into()))
        }
    }
}

/// Names a claimed task: what an invocation carries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TaskReference {
    /// The task.
    pub task_id: TaskId,
    /// The attempt.
    pub lease_token: i64,
}

/// What became of it: what an invocation answers.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum TaskAnswer {
    /// The result.
    Done(Value),
    /// Trying again may work.
    Retry(String),
    /// Trying again will give the same.
    Permanent(String),
    /// The work was not begun.
    NotBegun(String),
}

impl From<Result<Value, FailedAttempt>> for TaskAnswer {
    fn from(ended: Result<Value, FailedAttempt>) -> Self {
        match ended {
            Ok(result) => Self::Done(result),
            Err(FailedAttempt::Retry(why)) => Self::Retry(why),
            Err(FailedAttempt::Permanent(why)) => Self::Permanent(why),
            Err(FailedAttempt::NotBegun(why)) => Self::NotBegun(why),
        }
    }
}

impl From<TaskAnswer> for Result<Value, FailedAttempt> {
    fn from(answer: TaskAnswer) -> Self {
        match answer {
            TaskAnswer::Done(result) => Ok(result),
            TaskAnswer::Retry(why) => Err(FailedAttempt::Retry(why)),
            TaskAnswer::Permanent(why) => Err(FailedAttempt::Permanent(why)),
            TaskAnswer::NotBegun(why) => Err(FailedAttempt::NotBegun(why)),
        }
    }
}

/// Does the task that the reference names, if the attempt still holds it.
pub async fn invoke(deps: &Deps, reference: TaskReference) -> Result<TaskAnswer, TaskError> {
    let lease = Lease { task_id: reference.task_id, token: reference.lease_token };
    // The transaction ends before the work begins: no network call inside one.
    let task = deps.db.transaction(async |tx| tasks::service::lock_held(tx, lease).await).await?;
    Ok(handle(deps, &task).await.into())
}
