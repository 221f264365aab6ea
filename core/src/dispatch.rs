//! From a task's kind to the feature that handles it. The only place that knows every kind.

use crate::db::{DbError, Tx};
use crate::ids::IdSource;
use crate::runs::{self, RunError};
use crate::tasks::{ClaimedTask, TaskKind};

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
        TaskKind::RepositoryDiscover | TaskKind::WorkspaceBranches | TaskKind::WorkspaceImport => Ok(()),
    }
}
