//! SQL of `state_consumers`.

use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, UserId, WorkspaceId};
use crate::tfstates::StateConsumer;

const LIST: &str = "
    SELECT c.consumer_id, w.name FROM state_consumers c JOIN workspaces w ON w.id = c.consumer_id
    WHERE c.workspace_id = $1 ORDER BY w.name, w.id";

pub(in crate::tfstates) async fn list_consumers(
    query: &impl Query,
    workspace: WorkspaceId,
) -> Result<Vec<StateConsumer>, DbError> {
    let rows = query.query(LIST, &[&workspace]).await?;
    Ok(rows.iter().map(|row| StateConsumer { workspace_id: row.get(0), name: row.get(1) }).collect())
}

const REPLACE: &str = "
    WITH gone AS (
        DELETE FROM state_consumers WHERE workspace_id = $2 AND consumer_id <> ALL ($3)
    ), known AS (
        SELECT id FROM workspaces WHERE business_unit_id = $1 AND id = ANY ($3)
    ), added AS (
        INSERT INTO state_consumers (business_unit_id, workspace_id, consumer_id, created_by)
        SELECT $1, $2, id, $4 FROM known ON CONFLICT DO NOTHING
    )
    SELECT count(*) FROM known";

/// Makes the list what it shall be. Returns how many of the workspaces the unit has. The caller holds the row of the
/// workspace whose list it is.
pub(in crate::tfstates) async fn replace_consumers(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    workspace: WorkspaceId,
    consumers: &[WorkspaceId],
    by: Option<UserId>,
) -> Result<i64, DbError> {
    let consumers: Vec<uuid::Uuid> = consumers.iter().map(|id| id.0).collect();
    Ok(tx.query_one(REPLACE, &[&unit, &workspace, &consumers, &by]).await?.get(0))
}

const IS_SHARED: &str = "
    SELECT 1 FROM state_consumers WHERE business_unit_id = $1 AND workspace_id = $2 AND consumer_id = $3";

pub(in crate::tfstates) async fn is_shared(
    query: &impl Query,
    unit: BusinessUnitId,
    workspace: WorkspaceId,
    consumer: WorkspaceId,
) -> Result<bool, DbError> {
    Ok(query.query_opt(IS_SHARED, &[&unit, &workspace, &consumer]).await?.is_some())
}
