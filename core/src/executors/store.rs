//! SQL of executors and tickets.

use super::readers::RunReader;
use crate::db::{DbError, Query, Row};
use crate::ids::{BusinessUnitId, ExecutorId, RunId, TaskId, WorkspaceId};
use crate::runs;
use crate::tasks::TaskKind;

const INSERT: &str = "
    WITH executor AS (
        INSERT INTO executors (id, business_unit_id, task_id, lease_token, kind, subject_id, launcher)
        VALUES ($1, $2, $3, $4, $5, $6, $7) RETURNING id, business_unit_id
    )
    INSERT INTO tickets (ticket_hash, business_unit_id, executor_id)
    SELECT $8, executor.business_unit_id, executor.id FROM executor";

/// A new attempt.
pub(super) struct InsertExecutor<'a> {
    pub(super) id: ExecutorId,
    pub(super) unit: BusinessUnitId,
    pub(super) task_id: TaskId,
    pub(super) lease_token: i64,
    pub(super) kind: &'a str,
    pub(super) subject_id: uuid::Uuid,
    pub(super) launcher: &'a str,
    pub(super) ticket_hash: &'a [u8],
}

pub(super) async fn insert(query: &impl Query, new: &InsertExecutor<'_>) -> Result<(), DbError> {
    query
        .execute(
            INSERT,
            &[
                &new.id,
                &new.unit,
                &new.task_id,
                &new.lease_token,
                &new.kind,
                &new.subject_id,
                &new.launcher,
                &new.ticket_hash,
            ],
        )
        .await?;
    Ok(())
}

const SET_HANDLE: &str = "UPDATE executors SET handle = $2 WHERE id = $1";

pub(super) async fn set_handle(query: &impl Query, id: ExecutorId, handle: &str) -> Result<(), DbError> {
    query.execute(SET_HANDLE, &[&id, &handle]).await?;
    Ok(())
}

const STOP: &str = "
    WITH voided AS (
        UPDATE tickets SET voided_at = plumbline_now() WHERE executor_id = $1 AND traded_at IS NULL
    )
    UPDATE executors SET status = 'stopped', stopped_at = plumbline_now(), stop_reason = $2
    WHERE id = $1 AND status <> 'stopped'";

/// Marks an executor as stopped; `false` if it was already.
pub(super) async fn stop(query: &impl Query, id: ExecutorId, reason: &str) -> Result<bool, DbError> {
    Ok(query.execute(STOP, &[&id, &reason]).await? == 1)
}

const VOID_UNTRADED: &str = "
    UPDATE tickets SET voided_at = coalesce(voided_at, plumbline_now())
    WHERE executor_id = $1 AND traded_at IS NULL";

/// Voids the ticket of an executor; `false` if it was traded before.
pub(super) async fn void_untraded(query: &impl Query, id: ExecutorId) -> Result<bool, DbError> {
    Ok(query.execute(VOID_UNTRADED, &[&id]).await? == 1)
}

const IS_TO_STOP: &str = "SELECT stop_requested_at IS NOT NULL FROM executors WHERE id = $1";

pub(super) async fn is_to_stop(query: &impl Query, id: ExecutorId) -> Result<bool, DbError> {
    Ok(query.query_opt(IS_TO_STOP, &[&id]).await?.is_some_and(|row| row.get(0)))
}

const OF_ATTEMPT: &str = "SELECT id FROM executors WHERE task_id = $1 AND lease_token = $2";

pub(super) async fn find_of_attempt(
    query: &impl Query,
    task: TaskId,
    lease_token: i64,
) -> Result<Option<ExecutorId>, DbError> {
    Ok(query.query_opt(OF_ATTEMPT, &[&task, &lease_token]).await?.map(|row| row.get(0)))
}

const LOCK_TICKET: &str = "
    SELECT k.executor_id, k.business_unit_id, k.nonce_hash, k.traded_at IS NOT NULL AS traded,
           k.voided_at IS NOT NULL AS voided, e.task_id, e.lease_token, e.kind, e.subject_id,
           i.epoch
    FROM tickets k JOIN executors e ON e.id = k.executor_id JOIN installation i ON i.id = 1
    WHERE k.ticket_hash = $1 FOR UPDATE OF k";

/// A ticket as the trade finds it.
pub(super) struct Ticket {
    pub(super) executor_id: ExecutorId,
    pub(super) business_unit_id: BusinessUnitId,
    pub(super) nonce_hash: Option<Vec<u8>>,
    pub(super) traded: bool,
    pub(super) voided: bool,
    pub(super) task_id: TaskId,
    pub(super) lease_token: i64,
    pub(super) epoch: i32,
    /// The run that the attempt is of.
    pub(super) run_id: Option<RunId>,
}

/// `None` for what is no run.
fn run_of(row: &Row) -> Option<RunId> {
    runs::tasks::run_of(TaskKind::parse(row.get("kind"))?, row.get("subject_id"))
}

pub(super) async fn lock_ticket(query: &impl Query, ticket_hash: &[u8]) -> Result<Option<Ticket>, DbError> {
    Ok(query.query_opt(LOCK_TICKET, &[&ticket_hash]).await?.map(|row| Ticket {
        executor_id: row.get("executor_id"),
        business_unit_id: row.get("business_unit_id"),
        nonce_hash: row.get("nonce_hash"),
        traded: row.get("traded"),
        voided: row.get("voided"),
        task_id: row.get("task_id"),
        lease_token: row.get("lease_token"),
        epoch: row.get("epoch"),
        run_id: run_of(&row),
    }))
}

const FIND_LAUNCHED: &str = "
    SELECT e.id, e.business_unit_id, e.task_id, e.kind, e.subject_id, e.launcher, e.handle,
           k.voided_at IS NOT NULL AS voided
    FROM tickets k JOIN executors e ON e.id = k.executor_id
    WHERE k.ticket_hash = $1";

/// The executor that a ticket was made for.
pub(super) struct Launched {
    pub(super) executor_id: ExecutorId,
    pub(super) business_unit_id: BusinessUnitId,
    pub(super) task_id: TaskId,
    /// The run that the attempt is of.
    pub(super) run_id: Option<RunId>,
    pub(super) launcher: String,
    /// What the platform calls it, once that is recorded.
    pub(super) handle: Option<String>,
    pub(super) voided: bool,
}

pub(super) async fn find_launched(
    query: &impl Query,
    ticket_hash: &[u8],
) -> Result<Option<Launched>, DbError> {
    Ok(query.query_opt(FIND_LAUNCHED, &[&ticket_hash]).await?.map(|row| Launched {
        executor_id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        task_id: row.get("task_id"),
        run_id: run_of(&row),
        launcher: row.get("launcher"),
        handle: row.get("handle"),
        voided: row.get("voided"),
    }))
}

const TRADE: &str = "
    WITH ticket AS (
        UPDATE tickets SET traded_at = coalesce(traded_at, plumbline_now()), nonce_hash = $2 WHERE executor_id = $1
    )
    UPDATE executors
    SET status = 'live', token_hash = $3, run_password_hash = $4, traded_at = coalesce(traded_at, plumbline_now()),
        last_seen_at = plumbline_now()
    WHERE id = $1 AND status IN ('launching', 'live')";

pub(super) async fn trade(
    query: &impl Query,
    id: ExecutorId,
    nonce_hash: &[u8],
    token_hash: &[u8],
    run_password_hash: &[u8],
) -> Result<bool, DbError> {
    Ok(query.execute(TRADE, &[&id, &nonce_hash, &token_hash, &run_password_hash]).await? == 1)
}

const BY_TOKEN: &str = "
    SELECT e.id, e.business_unit_id, e.task_id, e.lease_token, e.kind, e.subject_id, r.workspace_id,
           t.id IS NOT NULL AS held
    FROM executors e
    JOIN runs r ON r.id = e.subject_id
    LEFT JOIN tasks t ON t.id = e.task_id AND t.lease_token = e.lease_token AND t.status = 'running'
    WHERE e.token_hash = $1";

/// An executor as its token names it.
pub(super) struct ByToken {
    pub(super) id: ExecutorId,
    pub(super) business_unit_id: BusinessUnitId,
    pub(super) task_id: TaskId,
    pub(super) lease_token: i64,
    pub(super) kind: String,
    pub(super) subject_id: uuid::Uuid,
    pub(super) workspace_id: WorkspaceId,
    pub(super) held: bool,
}

fn by_token(row: &Row) -> ByToken {
    ByToken {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        task_id: row.get("task_id"),
        lease_token: row.get("lease_token"),
        kind: row.get("kind"),
        subject_id: row.get("subject_id"),
        workspace_id: row.get("workspace_id"),
        held: row.get("held"),
    }
}

pub(super) async fn find_by_token(query: &impl Query, token_hash: &[u8]) -> Result<Option<ByToken>, DbError> {
    Ok(query.query_opt(BY_TOKEN, &[&token_hash]).await?.as_ref().map(by_token))
}

// Stricter than for the token: nothing is lost if a read is refused, and whoever holds this is not trusted.
const READER: &str = "
    SELECT e.id, e.business_unit_id, e.subject_id, r.workspace_id
    FROM executors e
    JOIN runs r ON r.id = e.subject_id
    JOIN tasks t ON t.id = e.task_id AND t.lease_token = e.lease_token
    WHERE e.run_password_hash = $1 AND e.status = 'live' AND e.stop_requested_at IS NULL
      AND t.status = 'running' AND t.lease_phase = 'live' AND t.lease_expires_at > plumbline_now()
      AND t.attempt_ends_at > plumbline_now() AND t.cancel_requested_at IS NULL";

/// The attempt whose run password has this hash, while it lives.
pub(super) async fn find_reader(
    query: &impl Query,
    run_password_hash: &[u8],
) -> Result<Option<RunReader>, DbError> {
    let row = query.query_opt(READER, &[&run_password_hash]).await?;
    Ok(row.map(|row| RunReader {
        executor_id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        run_id: RunId(row.get("subject_id")),
        workspace_id: row.get("workspace_id"),
    }))
}

const SEEN: &str = "UPDATE executors SET last_seen_at = plumbline_now() WHERE id = $1";

pub(super) async fn seen(query: &impl Query, id: ExecutorId) -> Result<(), DbError> {
    query.execute(SEEN, &[&id]).await?;
    Ok(())
}

const REQUEST_STOP: &str = "
    UPDATE executors SET stop_requested_at = coalesce(stop_requested_at, plumbline_now()), stop_reason = $2
    WHERE id = $1 AND status <> 'stopped'";

pub(super) async fn request_stop(query: &impl Query, id: ExecutorId, reason: &str) -> Result<(), DbError> {
    query.execute(REQUEST_STOP, &[&id, &reason]).await?;
    Ok(())
}

const HOLDS: &str = "SELECT 1 FROM tasks WHERE id = $1 AND lease_token = $2 AND status = 'running'";

pub(super) async fn holds(query: &impl Query, task: TaskId, lease_token: i64) -> Result<bool, DbError> {
    Ok(query.query_opt(HOLDS, &[&task, &lease_token]).await?.is_some())
}
