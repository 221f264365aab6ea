//! Finds states that are not in the index yet. Writing a state does nothing for the index: an apply with a hundred
//! snapshots is indexed once or twice, and the write takes no longer.

use super::{store, tasks};
use crate::Deps;
use crate::db::DbError;

/// Workspaces that one tick enqueues; the others come with the next ones.
const DUE_MAX: i64 = 500;

/// Enqueues the indexing of what is due. Returns how many.
pub async fn enqueue_due(deps: &Deps) -> Result<usize, DbError> {
    let due = store::list_due(&deps.db.conn().await?, DUE_MAX).await?;
    for (unit, workspace_id) in &due {
        deps.db.transaction(async |tx| tasks::enqueue(tx, deps.ids, *unit, *workspace_id).await).await?;
    }
    Ok(due.len())
}
