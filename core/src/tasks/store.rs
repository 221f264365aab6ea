//! The queue's SQL: adding, claiming, holding, leaving, listing.

use std::time::Duration;

use serde_json::Value;
use uuid::Uuid;

use super::{
    ClaimedTask, FinishedOutcome, Lease, LeasePhase, LiveLease, NewTask, TaskClass, TaskKind, TaskStatus,
    TaskView,
};
use crate::access::TraceParent;
use crate::db::{DbError, Query, Row};
use crate::ids::{BusinessUnitId, TaskId, UserId};
use crate::page::PageRequest;

/// Adds a task, or finds the queued one with the same key and locks it. Returns the id of whichever it is.
pub(super) async fn insert(
    query: &impl Query,
    id: TaskId,
    task: &NewTask,
    attempts_max: i32,
    replay_of: Option<TaskId>,
) -> Result<TaskId, DbError> {
    let row = query
        .query_one(
            include_str!("sql/enqueue.sql"),
            &[
                &id,
                &task.business_unit_id,
                &task.kind.class().as_str(),
                &task.kind.as_str(),
                &task.subject_id,
                &task.payload,
                &task.priority,
                &task.delay.as_secs_f64(),
                &attempts_max,
                &task.dedupe_key,
                &task.traceparent.as_ref().map(TraceParent::as_str).map(str::to_owned),
                &task.requested_by,
                &replay_of,
            ],
        )
        .await?;
    Ok(row.get("id"))
}

/// How a class of tasks is claimed.
#[derive(Debug)]
pub(super) struct ClaimTerms<'a> {
    pub(super) class: TaskClass,
    pub(super) claimed_by: &'a str,
    pub(super) batch: i32,
    pub(super) phase: LeasePhase,
    pub(super) lease: Duration,
    pub(super) wall_clock: Option<Duration>,
    pub(super) unit_max: i32,
    pub(super) executors_max: i32,
    pub(super) launches_per_second: f64,
}

/// What one claim statement gave.
#[derive(Debug)]
pub(super) enum Claim {
    /// No unit has due work and room, or others are looking at all that do.
    Nothing,
    /// The unit's due tasks are locked by somebody else.
    AllLocked(BusinessUnitId),
    /// Tasks of one unit, in order of priority.
    Tasks(Vec<ClaimedTask>),
}

/// Claims tasks of the least recently served unit that has room.
pub(super) async fn claim(query: &impl Query, terms: &ClaimTerms<'_>) -> Result<Claim, DbError> {
    let kinds: Vec<&str> = TaskKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let rows = query
        .query(
            include_str!("sql/claim.sql"),
            &[
                &terms.class.as_str(),
                &terms.batch,
                &terms.unit_max,
                &terms.claimed_by,
                &terms.lease.as_secs_f64(),
                &terms.wall_clock.map(|limit| limit.as_secs_f64()),
                &terms.phase.as_str(),
                &kinds,
                &terms.executors_max,
                &terms.launches_per_second,
            ],
        )
        .await?;
    let Some(first) = rows.first() else { return Ok(Claim::Nothing) };
    if first.get::<_, Option<TaskId>>("id").is_none() {
        return Ok(Claim::AllLocked(first.get("unit_id")));
    }
    rows.iter().map(claimed_from_row).collect::<Result<_, _>>().map(Claim::Tasks)
}

const FIND_HELD: &str = "
    SELECT id, lease_token, kind, business_unit_id, subject_id, payload, attempts, attempts_max, traceparent,
           requested_by, extract(epoch FROM claimed_at - run_after)::float8 AS waited_seconds
    FROM tasks WHERE id = $1 AND lease_token = $2 AND status = 'running'";

/// The task if the lease is still held.
pub(super) async fn find_held(query: &impl Query, lease: Lease) -> Result<Option<ClaimedTask>, DbError> {
    let row = query.query_opt(FIND_HELD, &[&lease.task_id, &lease.token]).await?;
    row.as_ref().map(claimed_from_row).transpose()
}

const LOCK_HELD: &str = "
    SELECT id, lease_token, kind, business_unit_id, subject_id, payload, attempts, attempts_max, traceparent,
           requested_by, extract(epoch FROM claimed_at - run_after)::float8 AS waited_seconds
    FROM tasks WHERE id = $1 AND lease_token = $2 AND status = 'running' FOR UPDATE";

/// The task if the lease is still held, locked.
pub(super) async fn lock_held(query: &impl Query, lease: Lease) -> Result<Option<ClaimedTask>, DbError> {
    let row = query.query_opt(LOCK_HELD, &[&lease.task_id, &lease.token]).await?;
    row.as_ref().map(claimed_from_row).transpose()
}

macro_rules! live {
    ($lock:literal) => {
        concat!(
            "SELECT plumbline_now() AS now, attempt_ends_at FROM tasks
             WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_phase = 'live'
               AND lease_expires_at > plumbline_now() AND attempt_ends_at > plumbline_now()
               AND cancel_requested_at IS NULL ",
            $lock
        )
    };
}

const FIND_LIVE: &str = live!("");
const LOCK_LIVE: &str = live!("FOR UPDATE");

fn live(row: &Row) -> LiveLease {
    LiveLease { now: row.get("now"), attempt_ends_at: row.get("attempt_ends_at") }
}

/// The lease if it is renewed, within the attempt's time, and nobody has asked the attempt to stop.
pub(super) async fn find_live(query: &impl Query, lease: Lease) -> Result<Option<LiveLease>, DbError> {
    Ok(query.query_opt(FIND_LIVE, &[&lease.task_id, &lease.token]).await?.as_ref().map(live))
}

/// The same, with the task's row locked.
pub(super) async fn lock_live(query: &impl Query, lease: Lease) -> Result<Option<LiveLease>, DbError> {
    Ok(query.query_opt(LOCK_LIVE, &[&lease.task_id, &lease.token]).await?.as_ref().map(live))
}

// A cancelled attempt that has not begun gets nothing. The wall clock starts at the first trade, not at a repeated one.
const GO_LIVE: &str = "
    UPDATE tasks
    SET lease_phase = 'live', lease_expires_at = plumbline_now() + make_interval(secs => $3),
        attempt_ends_at = coalesce(attempt_ends_at, plumbline_now() + make_interval(secs => $4))
    WHERE id = $1 AND lease_token = $2 AND status = 'running' AND cancel_requested_at IS NULL";

/// Begins the live phase. `false` if the lease was lost.
pub(super) async fn go_live(
    query: &impl Query,
    lease: Lease,
    period: Duration,
    wall_clock: Duration,
) -> Result<bool, DbError> {
    let params = (period.as_secs_f64(), wall_clock.as_secs_f64());
    Ok(query.execute(GO_LIVE, &[&lease.task_id, &lease.token, &params.0, &params.1]).await? == 1)
}

// An unresponsive attempt that speaks again is live again: nobody has taken its lease away.
const HEARTBEAT: &str = "
    UPDATE tasks
    SET lease_phase = 'live', lease_expires_at = plumbline_now() + make_interval(secs => $3)
    WHERE id = $1 AND lease_token = $2 AND status = 'running' AND lease_phase <> 'launching'
    RETURNING cancel_requested_at IS NOT NULL OR coalesce(attempt_ends_at <= plumbline_now(), false) AS stop";

/// Renews the lease. `None` if it was lost, else whether the attempt should stop.
pub(super) async fn heartbeat(
    query: &impl Query,
    lease: Lease,
    period: Duration,
) -> Result<Option<bool>, DbError> {
    let row = query.query_opt(HEARTBEAT, &[&lease.task_id, &lease.token, &period.as_secs_f64()]).await?;
    Ok(row.map(|row| row.get("stop")))
}

/// How a task leaves `running`.
#[derive(Debug)]
pub(super) struct Leaving<'a> {
    pub(super) lease: Lease,
    /// `None` queues it again.
    pub(super) outcome: Option<FinishedOutcome>,
    pub(super) error: Option<&'a str>,
    pub(super) result: Option<&'a Value>,
    pub(super) delay: Duration,
    /// Whether the attempt does not count.
    pub(super) unburned: bool,
}

/// Takes tasks of one unit out of `running`. Returns those whose lease was still held.
pub(super) async fn leave(query: &impl Query, leaving: &[Leaving<'_>]) -> Result<Vec<TaskId>, DbError> {
    let rows = query
        .query(
            include_str!("sql/leave.sql"),
            &[
                &each(leaving, |task| task.lease.task_id),
                &each(leaving, |task| task.lease.token),
                &each(leaving, |task| task.outcome.map(FinishedOutcome::as_str)),
                &each(leaving, |task| task.error),
                &each(leaving, |task| task.result.cloned()),
                &each(leaving, |task| task.delay.as_secs_f64()),
                &each(leaving, |task| i32::from(task.unburned)),
            ],
        )
        .await;
    match rows {
        Ok(rows) => Ok(rows.iter().map(|row| row.get("id")).collect()),
        // A twin was queued between the statement's snapshot and its write; the next try sees it.
        Err(error) if error.is_duplicate_of("tasks_dedupe") => Err(DbError::TryAgain(error.into())),
        Err(error) => Err(error),
    }
}

fn each<'a, T>(leaving: &'a [Leaving<'a>], column: impl Fn(&'a Leaving<'a>) -> T) -> Vec<T> {
    leaving.iter().map(column).collect()
}

/// Withdraws the subject's queued tasks, marks its running ones, and returns those.
pub(super) async fn cancel_subject(query: &impl Query, subject_id: Uuid) -> Result<Vec<Lease>, DbError> {
    let rows = query.query(include_str!("sql/cancel_subject.sql"), &[&subject_id]).await?;
    Ok(rows.iter().map(|row| Lease { task_id: row.get("id"), token: row.get("lease_token") }).collect())
}

// How long until the class's next task is due, among units that have room. Units without room are left out: whoever
// makes room wakes the worker.
const NEXT_DUE: &str = "
    SELECT extract(epoch FROM min(t.run_after) - plumbline_now())::float8 AS seconds
    FROM queue_units q
    CROSS JOIN LATERAL (
        SELECT run_after FROM tasks
        WHERE business_unit_id = q.business_unit_id AND class = $1 AND status = 'queued'
        ORDER BY run_after LIMIT 1
    ) t
    WHERE q.class = $1 AND q.running < coalesce(q.running_max, $2)
      AND ($1 <> 'executor' OR (SELECT running FROM launch_budget) < $3)";

/// How long until a task could be claimed; zero if one is due now, `None` if only other tasks' ends can help.
pub(super) async fn next_due(
    query: &impl Query,
    class: TaskClass,
    unit_max: i32,
    executors_max: i32,
) -> Result<Option<Duration>, DbError> {
    let row = query.query_one(NEXT_DUE, &[&class.as_str(), &unit_max, &executors_max]).await?;
    Ok(row.get::<_, Option<f64>>("seconds").map(|seconds| Duration::from_secs_f64(seconds.max(0.0))))
}

/// Which tasks to list.
#[derive(Clone, Debug, Default)]
pub struct TaskFilter {
    /// Only this status.
    pub status: Option<TaskStatus>,
    /// Only this kind.
    pub kind: Option<TaskKind>,
    /// Only tasks about this row.
    pub subject_id: Option<Uuid>,
}

/// Live and finished tasks, newest first; one more than asked for if there are more.
pub(super) async fn list(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    filter: &TaskFilter,
    page: PageRequest,
) -> Result<Vec<TaskView>, DbError> {
    let rows = query
        .query(
            include_str!("sql/list.sql"),
            &[
                &unit,
                &filter.status.map(TaskStatus::as_str),
                &filter.kind.map(TaskKind::as_str),
                &filter.subject_id,
                &page.cursor,
                &(page.limit + 1),
                &None::<TaskId>,
            ],
        )
        .await?;
    rows.iter().map(view_from_row).collect()
}

/// One task, live or finished.
pub(super) async fn find(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: TaskId,
) -> Result<Option<TaskView>, DbError> {
    let none = (None::<&str>, None::<Uuid>);
    let row = query
        .query_opt(
            include_str!("sql/list.sql"),
            &[&unit, &none.0, &none.0, &none.1, &none.1, &1_i64, &Some(id)],
        )
        .await?;
    row.as_ref().map(view_from_row).transpose()
}

const FIND_DEAD: &str = "
    SELECT business_unit_id, kind, subject_id, payload, priority, dedupe_key, traceparent
    FROM finished_tasks
    WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) AND outcome = 'dead'";

/// A dead letter as a task to enqueue once more.
pub(super) async fn find_dead(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: TaskId,
) -> Result<Option<NewTask>, DbError> {
    let Some(row) = query.query_opt(FIND_DEAD, &[&id, &unit]).await? else { return Ok(None) };
    let mut task = NewTask::new(
        kind_from_row(&row)?,
        row.get("business_unit_id"),
        row.get::<_, Uuid>("subject_id"),
        row.get("dedupe_key"),
    );
    task.payload = row.get("payload");
    task.priority = row.get("priority");
    task.traceparent = row.get::<_, Option<&str>>("traceparent").and_then(TraceParent::parse);
    Ok(Some(task))
}

fn kind_from_row(row: &Row) -> Result<TaskKind, DbError> {
    let word: &str = row.get("kind");
    TaskKind::parse(word).ok_or_else(|| DbError::Row(format!("unknown task kind {word}")))
}

pub(super) fn claimed_from_row(row: &Row) -> Result<ClaimedTask, DbError> {
    let waited: Option<f64> = row.get("waited_seconds");
    Ok(ClaimedTask {
        lease: Lease { task_id: row.get("id"), token: row.get("lease_token") },
        kind: kind_from_row(row)?,
        business_unit_id: row.get("business_unit_id"),
        subject_id: row.get("subject_id"),
        payload: row.get("payload"),
        attempts: row.get("attempts"),
        attempts_max: row.get("attempts_max"),
        traceparent: row.get::<_, Option<&str>>("traceparent").and_then(TraceParent::parse),
        requested_by: row.get::<_, Option<Uuid>>("requested_by").map(UserId),
        waited: Duration::from_secs_f64(waited.unwrap_or(0.0).max(0.0)),
    })
}

fn view_from_row(row: &Row) -> Result<TaskView, DbError> {
    let kind = kind_from_row(row)?;
    let status: &str = row.get("status");
    Ok(TaskView {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        kind,
        class: kind.class(),
        subject_id: row.get("subject_id"),
        status: TaskStatus::parse(status)
            .ok_or_else(|| DbError::Row(format!("unknown task status {status}")))?,
        lease_phase: row.get::<_, Option<&str>>("lease_phase").and_then(LeasePhase::parse),
        attempts: row.get("attempts"),
        attempts_max: row.get("attempts_max"),
        run_after: row.get("run_after"),
        claimed_by: row.get("claimed_by"),
        last_error: row.get("last_error"),
        result: row.get("result"),
        replay_of: row.get::<_, Option<Uuid>>("replay_of").map(TaskId),
        requested_by: row.get::<_, Option<Uuid>>("requested_by").map(UserId),
        created_at: row.get("created_at"),
        finished_at: row.get("finished_at"),
    })
}
