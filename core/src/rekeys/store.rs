//! SQL of rekeys.

use uuid::Uuid;

use super::columns::{COUNT, SEALED_COLUMNS, STRANGERS, SealedColumn};
use super::model::{ColumnProgress, Rekey, RekeyStatus, Stranger};
use crate::db::{DbError, Query, Row};
use crate::ids::UserId;

/// Rows named at most as unreadable, for each column.
pub(super) const UNREADABLE_NAMED_MAX: i64 = 20;

/// The job that is under way.
#[derive(Clone, Debug)]
pub(super) struct Running {
    pub id: Uuid,
    pub key_id: String,
}

/// A column whose turn it is.
pub(super) struct Turn {
    pub column: &'static SealedColumn,
    pub position: Uuid,
}

/// One sealed value.
pub(super) struct SealedRow {
    pub id: Uuid,
    pub place: Uuid,
    pub sealed: String,
}

/// What one batch came to.
#[derive(Debug, Default)]
pub(super) struct Batch {
    pub last: Option<Uuid>,
    pub is_end: bool,
    pub resealed: i64,
    pub unreadable: Vec<Uuid>,
}

const RUNNING: &str = "SELECT id, key_id FROM rekeys WHERE status = 'running'";
const LOCK_RUNNING: &str = "SELECT id, key_id FROM rekeys WHERE status = 'running' FOR UPDATE";
const LOCK_RUNNING_OR_SKIP: &str =
    "SELECT id, key_id FROM rekeys WHERE status = 'running' AND id = $1 FOR UPDATE SKIP LOCKED";

fn running(row: &Row) -> Running {
    Running { id: row.get("id"), key_id: row.get("key_id") }
}

pub(super) async fn find_running(query: &impl Query) -> Result<Option<Running>, DbError> {
    Ok(query.query_opt(RUNNING, &[]).await?.as_ref().map(running))
}

pub(super) async fn lock_running(query: &impl Query) -> Result<Option<Running>, DbError> {
    Ok(query.query_opt(LOCK_RUNNING, &[]).await?.as_ref().map(running))
}

/// `false` if it has ended, or somebody else looks after it at this moment.
pub(super) async fn lock_to_judge(query: &impl Query, id: Uuid) -> Result<bool, DbError> {
    Ok(query.query_opt(LOCK_RUNNING_OR_SKIP, &[&id]).await?.is_some())
}

const INSERT: &str = "
    INSERT INTO rekeys (id, key_id, requested_by) VALUES ($1, $2, $3)
    ON CONFLICT (status) WHERE status = 'running' DO NOTHING";

/// `false` if another one began meanwhile.
pub(super) async fn insert(
    query: &impl Query,
    id: Uuid,
    key_id: &str,
    requested_by: Option<UserId>,
) -> Result<bool, DbError> {
    Ok(query.execute(INSERT, &[&id, &key_id, &requested_by]).await? == 1)
}

// A later version of the program may have columns that the job did not know when it began.
const ENSURE_COLUMNS: &str = "
    INSERT INTO rekey_columns (rekey_id, table_name, column_name)
    SELECT $1, known.table_name, known.column_name FROM unnest($2::text[], $3::text[]) AS known (table_name, column_name)
    ON CONFLICT DO NOTHING";

pub(super) async fn ensure_columns(query: &impl Query, id: Uuid) -> Result<(), DbError> {
    let tables: Vec<&str> = SEALED_COLUMNS.iter().map(|column| column.table).collect();
    let columns: Vec<&str> = SEALED_COLUMNS.iter().map(|column| column.column).collect();
    query.execute(ENSURE_COLUMNS, &[&id, &&tables[..], &&columns[..]]).await?;
    Ok(())
}

const TURN: &str = "
    SELECT table_name, column_name, position FROM rekey_columns
    WHERE rekey_id = $1 AND NOT passed AND EXISTS (SELECT 1 FROM rekeys WHERE id = $1 AND status = 'running')
    ORDER BY table_name, column_name LIMIT 1 FOR UPDATE SKIP LOCKED";

/// Takes a column that this pass has not seen whole. `None` if there is none, or each is in somebody's hands.
pub(super) async fn take_turn(query: &impl Query, id: Uuid) -> Result<Option<Turn>, DbError> {
    let Some(row) = query.query_opt(TURN, &[&id]).await? else { return Ok(None) };
    let (table, column): (String, String) = (row.get("table_name"), row.get("column_name"));
    let column = SEALED_COLUMNS
        .iter()
        .find(|known| known.table == table && known.column == column)
        .ok_or_else(|| DbError::Row(format!("{table}.{column} is no sealed column of this version")))?;
    Ok(Some(Turn { column, position: row.get::<_, Option<Uuid>>("position").unwrap_or_default() }))
}

pub(super) async fn take_rows(
    query: &impl Query,
    turn: &Turn,
    prefix: &str,
    limit: i64,
) -> Result<Vec<SealedRow>, DbError> {
    let rows = query.query(turn.column.take, &[&turn.position, &prefix, &limit]).await?;
    let read =
        |row: &Row| SealedRow { id: row.get("id"), place: row.get("place"), sealed: row.get("sealed") };
    Ok(rows.iter().map(read).collect())
}

/// Puts new values where the old ones still stand. Returns how many did.
pub(super) async fn put(
    query: &impl Query,
    column: &SealedColumn,
    ids: &[Uuid],
    old: &[&str],
    new: &[String],
) -> Result<u64, DbError> {
    query.execute(column.put, &[&ids, &old, &new]).await
}

const ADVANCE: &str = "
    UPDATE rekey_columns
    SET position = coalesce($4, position), passed = $5, resealed = resealed + $6,
        unreadable = unreadable + coalesce(cardinality($7::uuid[]), 0),
        unreadable_rows = (unreadable_rows || $7)[1:$8]
    WHERE rekey_id = $1 AND table_name = $2 AND column_name = $3";
const TOUCH: &str =
    "UPDATE rekeys SET resealed_at = plumbline_now(), note = NULL WHERE id = $1 AND status = 'running'";

pub(super) async fn advance(
    query: &impl Query,
    id: Uuid,
    column: &SealedColumn,
    batch: &Batch,
) -> Result<(), DbError> {
    let named = i32::try_from(UNREADABLE_NAMED_MAX).unwrap_or(i32::MAX);
    let unreadable = &batch.unreadable[..];
    query
        .execute(
            ADVANCE,
            &[
                &id,
                &column.table,
                &column.column,
                &batch.last,
                &batch.is_end,
                &batch.resealed,
                &unreadable,
                &named,
            ],
        )
        .await?;
    if batch.resealed > 0 {
        query.execute(TOUCH, &[&id]).await?;
    }
    Ok(())
}

const HAS_OPEN: &str = "SELECT 1 FROM rekey_columns WHERE rekey_id = $1 AND NOT passed LIMIT 1";

pub(super) async fn has_open_columns(query: &impl Query, id: Uuid) -> Result<bool, DbError> {
    Ok(query.query_opt(HAS_OPEN, &[&id]).await?.is_some())
}

const HAS_UNREADABLE: &str = "SELECT 1 FROM rekey_columns WHERE rekey_id = $1 AND unreadable > 0 LIMIT 1";

pub(super) async fn has_unreadable(query: &impl Query, id: Uuid) -> Result<bool, DbError> {
    Ok(query.query_opt(HAS_UNREADABLE, &[&id]).await?.is_some())
}

/// Counts what is under other roots, all columns at one moment, and writes it down.
pub(super) async fn count(query: &impl Query, id: Uuid, prefix: &str) -> Result<(), DbError> {
    let rows = query.query(COUNT, &[&prefix]).await?;
    let tables: Vec<String> = rows.iter().map(|row| row.get("table_name")).collect();
    let columns: Vec<String> = rows.iter().map(|row| row.get("column_name")).collect();
    let counts: Vec<i64> = rows.iter().map(|row| row.get("remaining")).collect();
    query.execute(STORE_COUNTS, &[&id, &&tables[..], &&columns[..], &&counts[..]]).await?;
    Ok(())
}

/// What is under other roots than these, by root.
pub(super) async fn list_strangers(query: &impl Query, known: &[&str]) -> Result<Vec<Stranger>, DbError> {
    let read = |row: &Row| Stranger {
        table: row.get("table_name"),
        column: row.get("column_name"),
        key_id: row.get("key_id"),
        values: row.get("values"),
    };
    Ok(query.query(STRANGERS, &[&known]).await?.iter().map(read).collect())
}

const STORE_COUNTS: &str = "
    UPDATE rekey_columns progress SET remaining = counted.remaining
    FROM unnest($2::text[], $3::text[], $4::bigint[]) AS counted (table_name, column_name, remaining)
    WHERE progress.rekey_id = $1 AND progress.table_name = counted.table_name
      AND progress.column_name = counted.column_name";

// What is left and can be opened gets another pass, and so does what was repaired meanwhile.
const AGAIN: &str = "
    UPDATE rekey_columns SET passed = false, position = NULL, unreadable = 0, unreadable_rows = '{}'
    WHERE rekey_id = $1 AND remaining <> unreadable";

/// Lets columns that still have work begin a new pass. Returns how many.
pub(super) async fn begin_again(query: &impl Query, id: Uuid) -> Result<u64, DbError> {
    query.execute(AGAIN, &[&id]).await
}

const IS_SETTLED: &str = "
    SELECT coalesce(resealed_at <= plumbline_now() - $2 * interval '1 second', true) AS settled FROM rekeys WHERE id = $1";

pub(super) async fn is_settled(query: &impl Query, id: Uuid, seconds: i64) -> Result<bool, DbError> {
    Ok(query.query_one(IS_SETTLED, &[&id, &(seconds as f64)]).await?.get("settled"))
}

const FINISH: &str = "
    UPDATE rekeys SET status = $2, finished_at = plumbline_now(), note = NULL WHERE id = $1 AND status = 'running'";

pub(super) async fn finish(query: &impl Query, id: Uuid, status: RekeyStatus) -> Result<bool, DbError> {
    Ok(query.execute(FINISH, &[&id, &status.as_str()]).await? == 1)
}

const NOTE: &str = "
    UPDATE rekeys SET note = $2 WHERE id = $1 AND status = 'running' AND note IS DISTINCT FROM $2";

pub(super) async fn note(query: &impl Query, id: Uuid, note: &str) -> Result<(), DbError> {
    query.execute(NOTE, &[&id, &note]).await?;
    Ok(())
}

const LATEST: &str = "
    SELECT id, key_id, status, requested_by, note, created_at, finished_at FROM rekeys ORDER BY id DESC LIMIT 1";
const PROGRESS: &str = "
    SELECT table_name, column_name, resealed, remaining, unreadable, unreadable_rows FROM rekey_columns
    WHERE rekey_id = $1 ORDER BY table_name, column_name";

/// The newest job.
pub(super) async fn find_latest(query: &impl Query) -> Result<Option<Rekey>, DbError> {
    let Some(row) = query.query_opt(LATEST, &[]).await? else { return Ok(None) };
    let id: Uuid = row.get("id");
    let status: &str = row.get("status");
    let status = RekeyStatus::parse(status)
        .ok_or_else(|| DbError::Row(format!("a rekey has the unknown status {status}")))?;
    let columns = query.query(PROGRESS, &[&id]).await?;
    Ok(Some(Rekey {
        id,
        key_id: row.get("key_id"),
        status,
        requested_by: row.get("requested_by"),
        note: row.get("note"),
        created_at: row.get("created_at"),
        finished_at: row.get("finished_at"),
        columns: columns.iter().map(progress).collect(),
    }))
}

fn progress(row: &Row) -> ColumnProgress {
    ColumnProgress {
        table: row.get("table_name"),
        column: row.get("column_name"),
        resealed: row.get("resealed"),
        remaining: row.get("remaining"),
        unreadable: row.get("unreadable"),
        unreadable_rows: row.get("unreadable_rows"),
    }
}
