//! SQL of `resources` and `state_indexes`.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{ResourceView, Search};
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, IdSource, ResourceId, StateVersionId, WorkspaceId};
use crate::page::PageRequest;

/// Resources in one statement.
const BATCH: usize = 1_000;

const SEARCH: &str = include_str!("sql/search.sql");

/// One more than a page holds, if there is one.
pub(super) async fn search(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspaces: Option<Vec<uuid::Uuid>>,
    search: &Search,
    page: PageRequest,
) -> Result<Vec<ResourceView>, DbError> {
    let rows = query
        .query(
            SEARCH,
            &[
                &unit,
                &workspaces,
                &search.workspace_id,
                &search.kind,
                &search.provider,
                &search.patterns,
                &page.cursor,
                &(page.limit + 1),
            ],
        )
        .await?;
    rows.iter().map(read).collect()
}

fn read(row: &Row) -> Result<ResourceView, DbError> {
    let names: Value = row.get("names");
    let indexed_at: Option<DateTime<Utc>> = row.get("indexed_at");
    let version_id: Option<StateVersionId> = row.get("version_id");
    let incomplete = || DbError::Row("a resource of no indexed version".into());
    Ok(ResourceView {
        id: row.get("id"),
        workspace_id: row.get("workspace_id"),
        workspace_name: row.get("workspace_name"),
        address: row.get("address"),
        mode: row.get("mode"),
        kind: row.get("type"),
        name: row.get("name"),
        module: row.get("module"),
        provider: row.get("provider"),
        index_key: row.get("index_key"),
        resource_id: row.get("resource_id"),
        arn: row.get("arn"),
        names: serde_json::from_value(names).map_err(|error| DbError::Row(error.to_string()))?,
        state_version_id: version_id.ok_or_else(incomplete)?,
        indexed_at: indexed_at.ok_or_else(incomplete)?,
    })
}

const LOCK_INDEX: &str = "
    INSERT INTO state_indexes AS i (workspace_id, business_unit_id)
    SELECT id, business_unit_id FROM workspaces WHERE id = $2 AND business_unit_id = $1
    ON CONFLICT (workspace_id, business_unit_id) DO UPDATE SET truncated = i.truncated";

/// Locks the workspace's index until the transaction ends: one task writes it at a time. `false`: the workspace is gone.
pub(super) async fn lock_index(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    workspace_id: WorkspaceId,
) -> Result<bool, DbError> {
    Ok(tx.execute(LOCK_INDEX, &[&unit, &workspace_id]).await? == 1)
}

const FIND_INDEXED: &str =
    "SELECT version_id FROM state_indexes WHERE workspace_id = $2 AND business_unit_id = $1";

/// The version in the index.
pub(super) async fn find_indexed(
    query: &impl Query,
    unit: BusinessUnitId,
    workspace_id: WorkspaceId,
) -> Result<Option<StateVersionId>, DbError> {
    Ok(query.query_opt(FIND_INDEXED, &[&unit, &workspace_id]).await?.and_then(|row| row.get("version_id")))
}

const PUT: &str = include_str!("sql/put.sql");
const DELETE_OTHERS: &str = "
    DELETE FROM resources r WHERE workspace_id = $2 AND business_unit_id = $1
        AND NOT EXISTS (SELECT FROM unnest($3::text[]) AS kept (address) WHERE kept.address = r.address)";

/// Makes the resources of a workspace these, given as JSON objects by address.
pub(super) async fn replace(
    tx: &Tx<'_>,
    ids: IdSource,
    (unit, workspace_id): (BusinessUnitId, WorkspaceId),
    resources: BTreeMap<Box<str>, Box<str>>,
) -> Result<(), DbError> {
    let addresses: Vec<&str> = resources.keys().map(|address| &**address).collect();
    tx.execute(DELETE_OTHERS, &[&unit, &workspace_id, &addresses]).await?;
    let mut rows = resources.values().peekable();
    while rows.peek().is_some() {
        let mut batch = String::from("[");
        for row in rows.by_ref().take(BATCH) {
            let id: ResourceId = ids.mint();
            if batch.len() > 1 {
                batch.push(',');
            }
            batch.push_str(&["{\"id\":\"", &id.to_string(), "\",", row.trim_start_matches('{')].concat());
        }
        batch.push(']');
        tx.execute(PUT, &[&unit, &workspace_id, &batch]).await?;
    }
    Ok(())
}

const SET_INDEXED: &str = "
    UPDATE state_indexes SET version_id = $3, failed_version_id = NULL, truncated = $4, unreadable = $5,
        indexed_at = plumbline_now()
    WHERE workspace_id = $2 AND business_unit_id = $1";

/// Says which version the resources are of.
pub(super) async fn set_indexed(
    tx: &Tx<'_>,
    (unit, workspace_id): (BusinessUnitId, WorkspaceId),
    version_id: StateVersionId,
    truncated: bool,
    unreadable: Option<&str>,
) -> Result<(), DbError> {
    tx.execute(SET_INDEXED, &[&unit, &workspace_id, &version_id, &truncated, &unreadable]).await?;
    Ok(())
}

const SET_FAILED: &str = "
    INSERT INTO state_indexes (workspace_id, business_unit_id, failed_version_id)
    SELECT t.workspace_id, t.business_unit_id, t.head_version_id FROM tfstates t
    WHERE t.workspace_id = $2 AND t.business_unit_id = $1
    ON CONFLICT (workspace_id, business_unit_id) DO UPDATE SET failed_version_id = excluded.failed_version_id";

/// Gives up the head: it is not found as due again.
pub(super) async fn set_failed(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    workspace_id: WorkspaceId,
) -> Result<(), DbError> {
    tx.execute(SET_FAILED, &[&unit, &workspace_id]).await?;
    Ok(())
}

const LIST_DUE: &str = "
    SELECT t.business_unit_id, t.workspace_id
    FROM tfstates t LEFT JOIN state_indexes i ON i.workspace_id = t.workspace_id
    WHERE t.head_version_id IS NOT NULL
      AND t.head_version_id IS DISTINCT FROM i.version_id
      AND t.head_version_id IS DISTINCT FROM i.failed_version_id
      -- One that is at work looks for the newest head before it ends.
      AND NOT EXISTS (SELECT FROM tasks k WHERE k.kind = 'state_index' AND k.subject_id = t.workspace_id)
    ORDER BY t.workspace_id LIMIT $1";

/// Workspaces whose newest state is not in the index.
pub(super) async fn list_due(
    query: &impl Query,
    limit: i64,
) -> Result<Vec<(BusinessUnitId, WorkspaceId)>, DbError> {
    let rows = query.query(LIST_DUE, &[&limit]).await?;
    Ok(rows.iter().map(|row| (row.get("business_unit_id"), row.get("workspace_id"))).collect())
}
