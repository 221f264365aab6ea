//! SQL of variable sets and what they are attached to.

use uuid::Uuid;

use super::model::{Attachment, NewVariableSet, VariableSet};
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, VariableSetId, WorkspaceId};

macro_rules! columns {
    () => {
        "id, business_unit_id, name, description, priority, all_workspaces, version, created_at, updated_at"
    };
}

fn set(row: &Row) -> VariableSet {
    VariableSet {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        name: row.get("name"),
        description: row.get("description"),
        priority: row.get("priority"),
        all_workspaces: row.get("all_workspaces"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

macro_rules! find {
    ($lock:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM variable_sets WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)",
            $lock
        )
    };
}

const FIND: &str = find!("");
const LOCK: &str = find!(" FOR NO KEY UPDATE");

pub(super) async fn find(
    query: &impl Query,
    scope: Scope,
    id: VariableSetId,
) -> Result<Option<VariableSet>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(set))
}

pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    id: VariableSetId,
) -> Result<Option<VariableSet>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(set))
}

// `id < $2` with the greatest id on the first page, rather than a NULL test: an index can serve it.
macro_rules! list {
    ($scope:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM variable_sets WHERE ",
            $scope,
            " AND id < $2 ORDER BY id DESC LIMIT $3"
        )
    };
}

const LIST_OF_UNIT: &str = list!("business_unit_id = $1");
const LIST_OF_ALL: &str = list!("$1::uuid IS NULL");

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<VariableSet>, DbError> {
    let statement = match scope {
        Scope::One(_) => LIST_OF_UNIT,
        Scope::All => LIST_OF_ALL,
    };
    let rows = query.query(statement, &[&scope.unit(), &before.unwrap_or(Uuid::max()), &limit]).await?;
    Ok(rows.iter().map(set).collect())
}

const COUNT: &str = "SELECT count(*) FROM variable_sets WHERE business_unit_id = $1";

/// Exact while the unit is locked.
pub(super) async fn count(tx: &Tx<'_>, unit: BusinessUnitId) -> Result<i64, DbError> {
    Ok(tx.query_one(COUNT, &[&unit]).await?.get(0))
}

const INSERT: &str = concat!(
    "INSERT INTO variable_sets (id, business_unit_id, name, description, priority, all_workspaces)
     VALUES ($1, $2, $3, $4, $5, $6) RETURNING ",
    columns!()
);

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: VariableSetId,
    unit: BusinessUnitId,
    new: &NewVariableSet,
) -> Result<VariableSet, DbError> {
    let row = tx
        .query_one(INSERT, &[&id, &unit, &new.name, &new.description, &new.priority, &new.all_workspaces])
        .await?;
    Ok(set(&row))
}

const UPDATE: &str = concat!(
    "UPDATE variable_sets
     SET name = $2, description = $3, priority = $4, all_workspaces = $5, version = version + 1,
         updated_at = plumbline_now()
     WHERE id = $1 RETURNING ",
    columns!()
);

/// Writes a row that is locked.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: VariableSetId,
    new: &NewVariableSet,
) -> Result<VariableSet, DbError> {
    let row =
        tx.query_one(UPDATE, &[&id, &new.name, &new.description, &new.priority, &new.all_workspaces]).await?;
    Ok(set(&row))
}

const DELETE: &str = "DELETE FROM variable_sets WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: VariableSetId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}

const ATTACH: &str = "
    INSERT INTO variable_set_workspaces (business_unit_id, variable_set_id, workspace_id) VALUES ($1, $2, $3)
    ON CONFLICT DO NOTHING";

/// Whether it was not attached before.
pub(super) async fn attach(tx: &Tx<'_>, set: &VariableSet, workspace: WorkspaceId) -> Result<bool, DbError> {
    Ok(tx.execute(ATTACH, &[&set.business_unit_id, &set.id, &workspace]).await? == 1)
}

const DETACH: &str = "
    DELETE FROM variable_set_workspaces WHERE variable_set_id = $1 AND workspace_id = $2";

/// Whether it was attached.
pub(super) async fn detach(tx: &Tx<'_>, set: VariableSetId, workspace: WorkspaceId) -> Result<bool, DbError> {
    Ok(tx.execute(DETACH, &[&set, &workspace]).await? == 1)
}

const ATTACHMENTS: &str = "
    SELECT a.workspace_id, w.name, a.created_at
    FROM variable_set_workspaces a JOIN workspaces w ON w.id = a.workspace_id
    WHERE a.variable_set_id = $1 AND a.workspace_id < $2 ORDER BY a.workspace_id DESC LIMIT $3";

pub(super) async fn attachments(
    query: &impl Query,
    set: VariableSetId,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<Attachment>, DbError> {
    let rows = query.query(ATTACHMENTS, &[&set, &before.unwrap_or(Uuid::max()), &limit]).await?;
    let attachment = |row: &Row| Attachment {
        workspace_id: row.get(0),
        workspace_name: row.get(1),
        created_at: row.get(2),
    };
    Ok(rows.iter().map(attachment).collect())
}
