//! From a task's kind to the feature that handles it. The only place that knows every kind.

use crate::db::{DbError, Tx};
use crate::tasks::ClaimedTask;

/// What follows from a dead letter, in the transaction that made it one.
pub async fn dead_lettered(tx: &Tx<'_>, task: &ClaimedTask, error: &str) -> Result<(), DbError> {
    let _ = (tx, task, error);
    Ok(())
}
