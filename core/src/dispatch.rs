//! From a task's kind to the feature that handles it. The only place that knows every kind.

use crate::Deps;
use crate::db::{DbError, Tx};
use crate::ids::{IdSource, RunId};
use crate::resources;
use crate::runs::{self, RunError};
use crate::tasks::{self, Backoff, ClaimedTask, FailedAttempt, TaskError, TaskKind};

/// An attempt failed: its task is queued again, or is a dead letter, and then its feature learns of it.
pub async fn fail_attempt(
    tx: &Tx<'_>,
    deps: &Deps,
    task: &ClaimedTask,
    failure: &FailedAttempt,
) -> Result<(), TaskError> {
    let next = tasks::service::fail(tx, task.lease, failure, rand::random(), &deps.limits).await?;
    if next == Backoff::DeadLettered {
        dead_lettered(tx, deps.ids, task, failure.why()).await?;
    }
    Ok(())
}

/// What follows from a dead letter, in the transaction that made it one.
pub async fn dead_lettered(
    tx: &Tx<'_>,
    ids: IdSource,
    task: &ClaimedTask,
    error: &str,
) -> Result<(), DbError> {
    match task.kind {
        TaskKind::RunPlan | TaskKind::RunApply => {
            match runs::tasks::dead_lettered(tx, ids, task, error).await {
                Ok(()) => Ok(()),
                Err(RunError::Db(error)) => Err(error),
                Err(other) => Err(DbError::Row(other.to_string())),
            }
        }
        // Recorded as it is: the requester reads the error from the task.
        TaskKind::RepositoryDiscover
        | TaskKind::WorkspaceBranches
        | TaskKind::WorkspaceImport
        | TaskKind::GitCredentialTest
        | TaskKind::AwsAccountTest
        | TaskKind::AzureSubscriptionTest
        | TaskKind::GcpProjectTest
        | TaskKind::ClusterTest
        | TaskKind::SlackTest
        | TaskKind::InfracostTest
        | TaskKind::IssuerKeys => Ok(()),
        TaskKind::StateIndex => resources::tasks::dead_lettered(tx, task).await,
    }
}

/// Locks the rows of the task's feature, in their own order, before the task itself is locked: everything else that
/// touches both does the same, so there are no deadlocks.
pub async fn lock_subject(tx: &Tx<'_>, kind: TaskKind, subject_id: uuid::Uuid) -> Result<(), DbError> {
    match kind {
        TaskKind::RunPlan | TaskKind::RunApply => runs::tasks::lock_subject(tx, RunId(subject_id)).await,
        TaskKind::RepositoryDiscover
        | TaskKind::WorkspaceBranches
        | TaskKind::WorkspaceImport
        | TaskKind::GitCredentialTest
        | TaskKind::AwsAccountTest
        | TaskKind::AzureSubscriptionTest
        | TaskKind::GcpProjectTest
        | TaskKind::ClusterTest
        | TaskKind::SlackTest
        | TaskKind::InfracostTest
        | TaskKind::IssuerKeys
        | TaskKind::StateIndex => Ok(()),
    }
}
