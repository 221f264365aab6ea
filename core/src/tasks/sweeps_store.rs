//! SQL of the queue's sweeps.

use std::time::Duration;

use super::store::claimed_from_row;
use super::{AttemptExecutor, ClaimedTask, Lease, LeasePhase, Silent, TaskClass, TaskKind};
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, ExecutorId, TaskId};

// The first tick after a pause longer than the threshold sets the grace; the ticks within it leave it alone.
const TICK: &str = "
    INSERT INTO sweep_ticks (name, last_ok_at) VALUES ('leases', plumbline_now())
    ON CONFLICT (name) DO UPDATE
    SET grace_until = CASE WHEN sweep_ticks.last_ok_at < plumbline_now() - make_interval(secs => $1)
                           THEN plumbline_now() + make_interval(secs => $2) ELSE sweep_ticks.grace_until END,
        last_ok_at = plumbline_now()
    RETURNING coalesce(grace_until > plumbline_now(), false) AS in_grace";

/// Notes that the sweep runs; returns whether leases must not expire now because there was an outage.
pub(super) async fn tick(query: &impl Query, pause: Duration, lease: Duration) -> Result<bool, DbError> {
    let row = query.query_one(TICK, &[&pause.as_secs_f64(), &lease.as_secs_f64()]).await?;
    Ok(row.get("in_grace"))
}

const SUSPECTS: &str = "
    SELECT t.id, t.lease_token, t.kind, t.subject_id
    FROM tasks t
    WHERE t.status = 'running' AND t.id > $1
      AND ((t.lease_expires_at <= plumbline_now() AND NOT $2)
           OR t.attempt_ends_at <= plumbline_now()
           OR EXISTS (SELECT 1 FROM executors x
                      WHERE x.task_id = t.id AND x.lease_token = t.lease_token AND x.status = 'stopped'))
    ORDER BY t.id LIMIT $3";

/// An attempt that may have fallen silent.
#[derive(Clone, Copy, Debug)]
pub(super) struct Suspect {
    pub(super) lease: Lease,
    pub(super) kind: Option<TaskKind>,
    pub(super) subject_id: uuid::Uuid,
}

/// Attempts to look at, after the given task.
pub(super) async fn suspects(
    query: &impl Query,
    after: TaskId,
    in_grace: bool,
    limit: i64,
) -> Result<Vec<Suspect>, DbError> {
    let rows = query.query(SUSPECTS, &[&after, &in_grace, &limit]).await?;
    Ok(rows
        .iter()
        .map(|row| Suspect {
            lease: Lease { task_id: row.get("id"), token: row.get("lease_token") },
            kind: TaskKind::parse(row.get("kind")),
            subject_id: row.get("subject_id"),
        })
        .collect())
}

/// A suspect, locked, with everything the verdict needs.
#[derive(Debug)]
pub(super) struct Judged {
    pub(super) task: ClaimedTask,
    pub(super) silent: Silent,
    pub(super) executor: Option<ExecutorId>,
    pub(super) cancelled: bool,
}

/// Locks an attempt for judgement; `None` if it is over or in other hands.
pub(super) async fn lock_silent(
    query: &impl Query,
    lease: Lease,
    in_grace: bool,
) -> Result<Option<Judged>, DbError> {
    let row =
        query.query_opt(include_str!("sql/silent.sql"), &[&lease.task_id, &lease.token, &in_grace]).await?;
    let Some(row) = row else { return Ok(None) };
    let task = claimed_from_row(&row)?;
    let executor: Option<ExecutorId> = row.get::<_, Option<uuid::Uuid>>("executor_id").map(ExecutorId);
    let phase: &str = row.get("lease_phase");
    let silent = Silent {
        kind: task.kind,
        phase: LeasePhase::parse(phase)
            .ok_or_else(|| DbError::Row(["unknown lease phase ", phase].concat()))?,
        apply_begun: row.get("apply_begun"),
        executor: match executor {
            None => AttemptExecutor::None,
            Some(_) if row.get("executor_stopped") => AttemptExecutor::Stopped,
            Some(_) => AttemptExecutor::MayLive,
        },
        lease_expired: row.get("lease_expired"),
        wall_clock_passed: row.get("wall_clock_passed"),
        unstarted: row.get("unstarted"),
    };
    Ok(Some(Judged { task, silent, executor, cancelled: row.get("cancelled") }))
}

const MARK_UNRESPONSIVE: &str =
    "UPDATE tasks SET lease_phase = 'unresponsive' WHERE id = $1 AND lease_token = $2 AND status = 'running'";

pub(super) async fn mark_unresponsive(query: &impl Query, lease: Lease) -> Result<(), DbError> {
    query.execute(MARK_UNRESPONSIVE, &[&lease.task_id, &lease.token]).await?;
    Ok(())
}

// One snapshot sees counter and tasks as of the same moment, and both change in one transaction: a difference is real.
const MISCOUNTED: &str = "
    SELECT q.business_unit_id, q.class
    FROM queue_units q
    LEFT JOIN (SELECT business_unit_id, class, count(*) AS running FROM tasks WHERE status = 'running' GROUP BY 1, 2) t
        USING (business_unit_id, class)
    WHERE q.running <> coalesce(t.running, 0)";

/// Units whose counter is wrong.
pub(super) async fn miscounted(query: &impl Query) -> Result<Vec<(BusinessUnitId, TaskClass)>, DbError> {
    let rows = query.query(MISCOUNTED, &[]).await?;
    let class = |word: &str| if word == "short" { TaskClass::Short } else { TaskClass::Executor };
    Ok(rows.iter().map(|row| (row.get("business_unit_id"), class(row.get("class")))).collect())
}

const LOCK_UNIT: &str =
    "SELECT 1 FROM queue_units WHERE business_unit_id = $1 AND class = $2 FOR NO KEY UPDATE";
// A statement of its own: its snapshot is younger than the lock, so nothing can change between count and write.
const RECOUNT_UNIT: &str = "
    UPDATE queue_units q
    SET running = (SELECT count(*) FROM tasks t
                   WHERE t.business_unit_id = q.business_unit_id AND t.class = q.class AND t.status = 'running')
    WHERE q.business_unit_id = $1 AND q.class = $2";

/// Counts the unit's running tasks again, under the lock that every change of them takes.
pub(super) async fn recount_unit(
    query: &impl Query,
    unit: BusinessUnitId,
    class: TaskClass,
) -> Result<(), DbError> {
    query.query(LOCK_UNIT, &[&unit, &class.as_str()]).await?;
    query.execute(RECOUNT_UNIT, &[&unit, &class.as_str()]).await?;
    Ok(())
}

const BUDGET_MISCOUNTED: &str = "
    SELECT running <> (SELECT count(*) FROM tasks WHERE status = 'running' AND class = 'executor') AS wrong
    FROM launch_budget";

/// Whether the installation's count of executors is wrong.
pub(super) async fn budget_miscounted(query: &impl Query) -> Result<bool, DbError> {
    Ok(query.query_one(BUDGET_MISCOUNTED, &[]).await?.get("wrong"))
}

const LOCK_BUDGET: &str = "SELECT 1 FROM launch_budget FOR NO KEY UPDATE";
const RECOUNT_BUDGET: &str = "
    UPDATE launch_budget
    SET running = (SELECT count(*) FROM tasks WHERE status = 'running' AND class = 'executor')";

/// Counts the running executors' tasks again, under the lock.
pub(super) async fn recount_budget(query: &impl Query) -> Result<(), DbError> {
    query.query(LOCK_BUDGET, &[]).await?;
    query.execute(RECOUNT_BUDGET, &[]).await?;
    Ok(())
}

const FORGET: &str = "
    DELETE FROM finished_tasks WHERE id = ANY(ARRAY(
        SELECT id FROM finished_tasks WHERE finished_at < (SELECT plumbline_now()) - make_interval(secs => $1)
        ORDER BY finished_at LIMIT $2 FOR UPDATE SKIP LOCKED))";

// What is left says that there was one: a replay must not go on with another login instead.
const REMOVE_LOGINS: &str = "
    UPDATE finished_tasks SET payload = payload - 'login_sealed' || '{\"login_removed\": true}'
    WHERE id = ANY(ARRAY(
        SELECT id FROM finished_tasks
        WHERE finished_at <= (SELECT plumbline_now()) - make_interval(secs => $1)
          AND payload ->> 'login_sealed' IS NOT NULL
        ORDER BY finished_at LIMIT $2 FOR NO KEY UPDATE SKIP LOCKED))";

/// Removes the logins that came with tasks which finished that long ago; returns of how many.
pub(super) async fn remove_logins(query: &impl Query, age: Duration, limit: i64) -> Result<u64, DbError> {
    query.execute(REMOVE_LOGINS, &[&age.as_secs_f64(), &limit]).await
}

/// Deletes finished tasks older than that.
pub(super) async fn forget(query: &impl Query, age: Duration, limit: i64) -> Result<u64, DbError> {
    query.execute(FORGET, &[&age.as_secs_f64(), &limit]).await
}
