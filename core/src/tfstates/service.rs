//! Use cases of the state.

use super::StateHead;
use crate::db::{DbError, Query};
use crate::ids::{ExecutorId, WorkspaceId};

/// The head of a workspace's state; `None` before the first write.
pub async fn find_head(query: &impl Query, workspace_id: WorkspaceId) -> Result<Option<StateHead>, DbError> {
    let _ = (query, workspace_id);
    todo!("tfstates")
}

/// Frees the lock that an executor holds, once the executor is known to have stopped. Returns whether it held one.
pub async fn free_lock_of_stopped(query: &impl Query, executor_id: ExecutorId) -> Result<bool, DbError> {
    let _ = (query, executor_id);
    todo!("tfstates")
}
