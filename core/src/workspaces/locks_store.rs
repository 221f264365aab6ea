//! SQL of a person's lock of a workspace.

use crate::db::{DbError, Query as _, Tx};
use crate::ids::{UserId, WorkspaceId};

// With another reason the lock is the same: it is as old as it was.
const SET_LOCKED: &str = "
    UPDATE workspaces SET locked_at = coalesce(locked_at, plumbline_now()), locked_by = $2, locked_who = $3,
        locked_reason = $4
    WHERE id = $1";

pub(super) async fn set_locked(
    tx: &Tx<'_>,
    id: WorkspaceId,
    by: UserId,
    who: &str,
    reason: &str,
) -> Result<(), DbError> {
    tx.execute(SET_LOCKED, &[&id, &by, &who, &reason]).await?;
    Ok(())
}

const SET_UNLOCKED: &str = "
    UPDATE workspaces SET locked_at = NULL, locked_by = NULL, locked_who = NULL, locked_reason = NULL
    WHERE id = $1";

pub(super) async fn set_unlocked(tx: &Tx<'_>, id: WorkspaceId) -> Result<(), DbError> {
    tx.execute(SET_UNLOCKED, &[&id]).await?;
    Ok(())
}
