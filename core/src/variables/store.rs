//! SQL of variables.

use std::collections::HashMap;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::Origin;
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, VariableId, VariableSetId, WorkspaceId};

/// A variable as it is stored.
#[derive(Clone, Debug)]
pub(super) struct StoredVariable {
    pub id: VariableId,
    pub unit: BusinessUnitId,
    pub set: Option<VariableSetId>,
    pub workspace: Option<WorkspaceId>,
    pub key: String,
    pub value_sealed: String,
    pub value_bytes: i32,
    pub is_secret: bool,
    pub is_hcl: bool,
    pub description: Option<String>,
    pub version: i32,
    pub created_at: DateTime<Utc>,
    pub updated_at: DateTime<Utc>,
}

macro_rules! columns {
    () => {
        "id, business_unit_id, variable_set_id, workspace_id, key, value_sealed, value_bytes, is_secret, is_hcl,
         description, version, created_at, updated_at"
    };
}

fn stored(row: &Row) -> StoredVariable {
    StoredVariable {
        id: row.get("id"),
        unit: row.get("business_unit_id"),
        set: row.get("variable_set_id"),
        workspace: row.get("workspace_id"),
        key: row.get("key"),
        value_sealed: row.get("value_sealed"),
        value_bytes: row.get("value_bytes"),
        is_secret: row.get("is_secret"),
        is_hcl: row.get("is_hcl"),
        description: row.get("description"),
        version: row.get("version"),
        created_at: row.get("created_at"),
        updated_at: row.get("updated_at"),
    }
}

/// Whose variables a statement is about: of one owner, or of every unit itself, which only superadmins ask for.
#[derive(Clone, Copy, Debug)]
pub(super) enum Of {
    Owner(Uuid),
    AnyUnit,
}

// `id < $2` with the greatest id on the first page, rather than a NULL test: an index can serve it.
const LIST_OF_OWNER: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM variables WHERE owner_id = $1 AND id < $2 ORDER BY id DESC LIMIT $3"
);
const LIST_OF_UNITS: &str = concat!(
    "SELECT ",
    columns!(),
    " FROM variables WHERE owner_id = business_unit_id AND id < $1 ORDER BY id DESC LIMIT $2"
);

pub(super) async fn list(
    query: &impl Query,
    of: Of,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<StoredVariable>, DbError> {
    let before = before.unwrap_or(Uuid::max());
    let rows = match of {
        Of::Owner(owner) => query.query(LIST_OF_OWNER, &[&owner, &before, &limit]).await?,
        Of::AnyUnit => query.query(LIST_OF_UNITS, &[&before, &limit]).await?,
    };
    Ok(rows.iter().map(stored).collect())
}

macro_rules! find {
    ($lock:literal) => {
        concat!(
            "SELECT ",
            columns!(),
            " FROM variables
              WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) AND owner_id = coalesce($3, business_unit_id)",
            $lock
        )
    };
}

const FIND: &str = find!("");
const LOCK: &str = find!(" FOR NO KEY UPDATE");

fn owner_of(of: Of) -> Option<Uuid> {
    match of {
        Of::Owner(owner) => Some(owner),
        Of::AnyUnit => None,
    }
}

pub(super) async fn find(
    query: &impl Query,
    scope: Scope,
    of: Of,
    id: VariableId,
) -> Result<Option<StoredVariable>, DbError> {
    Ok(query.query_opt(FIND, &[&id, &scope.unit(), &owner_of(of)]).await?.as_ref().map(stored))
}

pub(super) async fn lock(
    tx: &Tx<'_>,
    scope: Scope,
    of: Of,
    id: VariableId,
) -> Result<Option<StoredVariable>, DbError> {
    Ok(tx.query_opt(LOCK, &[&id, &scope.unit(), &owner_of(of)]).await?.as_ref().map(stored))
}

const ROOM: &str = "
    SELECT count(*), coalesce(sum(length(key) + value_bytes), 0)::bigint FROM variables WHERE owner_id = $1";

/// How many an owner has, and how long they are together. Exact while the owner is locked.
pub(super) async fn room(tx: &Tx<'_>, owner: Uuid) -> Result<(i64, i64), DbError> {
    let row = tx.query_one(ROOM, &[&owner]).await?;
    Ok((row.get(0), row.get(1)))
}

/// A row to insert.
pub(super) struct InsertVariable<'a> {
    pub id: VariableId,
    pub unit: BusinessUnitId,
    pub set: Option<VariableSetId>,
    pub workspace: Option<WorkspaceId>,
    pub key: &'a str,
    pub value_sealed: &'a str,
    pub value_bytes: i32,
    pub is_secret: bool,
    pub is_hcl: bool,
    pub description: Option<&'a str>,
}

const INSERT: &str = concat!(
    "INSERT INTO variables (id, business_unit_id, variable_set_id, workspace_id, key, value_sealed, value_bytes,
                            is_secret, is_hcl, description)
     VALUES ($1, $2, $3, $4, $5, $6, $7, $8, $9, $10)
     RETURNING ",
    columns!()
);

pub(super) async fn insert(tx: &Tx<'_>, new: &InsertVariable<'_>) -> Result<StoredVariable, DbError> {
    let row = tx
        .query_one(
            INSERT,
            &[
                &new.id,
                &new.unit,
                &new.set,
                &new.workspace,
                &new.key,
                &new.value_sealed,
                &new.value_bytes,
                &new.is_secret,
                &new.is_hcl,
                &new.description,
            ],
        )
        .await?;
    Ok(stored(&row))
}

const UPDATE: &str = concat!(
    "UPDATE variables
     SET value_sealed = $2, value_bytes = $3, is_secret = $4, is_hcl = $5, description = $6,
         version = version + 1, updated_at = plumbline_now()
     WHERE id = $1
     RETURNING ",
    columns!()
);

/// Writes what may change of a row that is locked.
pub(super) async fn update(tx: &Tx<'_>, new: &StoredVariable) -> Result<StoredVariable, DbError> {
    let description = new.description.as_deref();
    let row = tx
        .query_one(
            UPDATE,
            &[&new.id, &new.value_sealed, &new.value_bytes, &new.is_secret, &new.is_hcl, &description],
        )
        .await?;
    Ok(stored(&row))
}

const DELETE: &str = "DELETE FROM variables WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: VariableId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}

/// A value that takes part in a merge; the value itself is read once it has won.
#[derive(Clone, Debug)]
pub(super) struct Contender {
    pub id: VariableId,
    pub value_bytes: i32,
    pub is_secret: bool,
    pub is_hcl: bool,
}

fn reaching(row: &Row) -> (Origin, String, Contender) {
    let value = Contender {
        id: row.get("id"),
        value_bytes: row.get("value_bytes"),
        is_secret: row.get("is_secret"),
        is_hcl: row.get("is_hcl"),
    };
    let origin = match row.get("set_id") {
        Some(id) => Origin::VariableSet { priority: row.get("set_priority"), name: row.get("set_name"), id },
        None if row.get::<_, Option<WorkspaceId>>("workspace_id").is_some() => Origin::Workspace,
        None => Origin::Global,
    };
    (origin, row.get("key"), value)
}

const OF_WORKSPACE: &str = include_str!("sql/of_workspace.sql");

/// Everything that reaches a workspace, in no order, without the values: those of many sets together may be more than a
/// function holds.
pub(super) async fn of_workspace(
    query: &impl Query,
    unit: BusinessUnitId,
    workspace: WorkspaceId,
) -> Result<Vec<(Origin, String, Contender)>, DbError> {
    Ok(query.query(OF_WORKSPACE, &[&unit, &workspace]).await?.iter().map(reaching).collect())
}

const SEALED_VALUES: &str =
    "SELECT id, value_sealed FROM variables WHERE business_unit_id = $1 AND id = ANY ($2)";

/// The sealed values of variables.
pub(super) async fn sealed_values(
    query: &impl Query,
    unit: BusinessUnitId,
    ids: impl Iterator<Item = VariableId>,
) -> Result<HashMap<VariableId, String>, DbError> {
    let ids: Vec<Uuid> = ids.map(Uuid::from).collect();
    let rows = query.query(SEALED_VALUES, &[&unit, &ids]).await?;
    Ok(rows.iter().map(|row| (row.get("id"), row.get("value_sealed"))).collect())
}
