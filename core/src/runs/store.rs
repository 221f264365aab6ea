//! SQL of runs and their steps.

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::rules::{self, ApprovalFacts, Hold};
use super::{EndReason, PlanSummary, Run, RunFilter, RunStatus, Step, StepPhase, Waiting};
use crate::access::TraceParent;
use crate::cloud_accounts::UsedCredential;
use crate::db::{DbError, Query, Row};
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, StateVersionId, UserId, WorkspaceId};
use crate::page::PageRequest;
use crate::protocol::{RunCommand, StepStatus};

/// A run with what only the server needs.
#[derive(Clone, Debug)]
pub(super) struct StoredRun {
    /// As people see it.
    pub(super) run: Run,
    pub(super) plan_sha256: Option<Sha256Digest>,
    pub(super) plan_json_sha256: Option<Sha256Digest>,
    pub(super) lock_file_sha256: Option<Sha256Digest>,
    pub(super) base_lineage: Option<String>,
    pub(super) approved_digest: Option<Sha256Digest>,
    pub(super) apply_begun_at: Option<DateTime<Utc>>,
    pub(super) traceparent: Option<TraceParent>,
    pub(super) plan_expired: bool,
}

macro_rules! run_columns {
    () => {
        "r.id, r.business_unit_id, r.workspace_id, r.command, r.status, r.status_reason, r.error, r.branch, r.message,
         r.commit_sha, r.tool, r.tool_version, r.triggered_by, r.trigger_source, r.waiting, r.plan_summary,
         r.has_changes, r.approved_by, r.approved_at, r.approval_comment, r.plan_expires_at, r.base_state_version_id,
         r.base_serial, r.base_lineage, r.cancel_requested_at, r.auto_approve_if_no_changes,
         r.auto_approve_skip_apply, r.credentials, r.created_at, r.started_at, r.planned_at, r.completed_at, r.plan_sha256,
         r.plan_json_sha256, r.gates_sha256, r.lock_file_sha256, r.approved_digest, r.apply_begun_at,
         r.traceparent, coalesce(r.plan_expires_at <= plumbline_now(), false) AS plan_expired,
         CASE WHEN r.waiting THEN 1 + (SELECT count(*) FROM runs w WHERE w.workspace_id = r.workspace_id
             AND w.waiting AND w.id < r.id) END AS waiting_position,
         held.blocked_reason, held.locked_who, held.locked_reason"
    };
}

// Only of a run that waits: what keeps its workspace from taking it.
macro_rules! held {
    () => {
        " LEFT JOIN workspaces held ON r.waiting AND held.id = r.workspace_id"
    };
}

const SET_CREDENTIALS: &str = "UPDATE runs SET credentials = $2 WHERE id = $1";

pub(super) async fn set_credentials(
    query: &impl Query,
    id: RunId,
    used: &[UsedCredential],
) -> Result<(), DbError> {
    query.execute(SET_CREDENTIALS, &[&id, &serde_json::json!(used)]).await?;
    Ok(())
}

const FIND: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs r",
    held!(),
    " WHERE r.id = $2 AND ($1::uuid IS NULL OR r.business_unit_id = $1)"
);
const LOCK: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs r",
    held!(),
    " WHERE r.id = $2 AND ($1::uuid IS NULL OR r.business_unit_id = $1) FOR NO KEY UPDATE OF r"
);
const LIST: &str = concat!(
    "SELECT ",
    run_columns!(),
    " FROM runs r",
    held!(),
    " WHERE ($1::uuid IS NULL OR r.business_unit_id = $1)
        AND ($2::uuid IS NULL OR r.workspace_id = $2)
        AND ($3::text IS NULL OR r.status = $3)
        AND ($4::text IS NULL OR r.command = $4)
        AND ($5::uuid IS NULL OR r.id < $5)
        AND ($6::uuid[] IS NULL OR r.workspace_id = ANY ($6))
      ORDER BY r.id DESC LIMIT $7"
);

fn digest(row: &Row, column: &str) -> Option<Sha256Digest> {
    row.get::<_, Option<Vec<u8>>>(column).and_then(|bytes| Sha256Digest::from_slice(&bytes))
}

/// What keeps the workspace of a waiting run. A block comes first: it takes the longest to resolve.
fn hold(row: &Row) -> Hold {
    let blocked: Option<String> = row.get("blocked_reason");
    let locked: Option<String> = row.get("locked_who");
    match (blocked, locked) {
        (Some(reason), _) => Hold::Blocked(reason),
        (None, Some(who)) => Hold::Locked { who, reason: row.get("locked_reason") },
        (None, None) => Hold::Run,
    }
}

fn word<T>(row: &Row, column: &str, parse: impl Fn(&str) -> Option<T>) -> Result<T, DbError> {
    let text: String = row.get(column);
    parse(&text).ok_or_else(|| DbError::Row(format!("{column} has the unknown word {text:?}")))
}

fn stored_run(row: &Row) -> Result<StoredRun, DbError> {
    let reason: Option<String> = row.get("status_reason");
    let summary: Option<Value> = row.get("plan_summary");
    let waiting_position: Option<i64> = row.get("waiting_position");
    let run = Run {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        workspace_id: row.get("workspace_id"),
        command: word(row, "command", RunCommand::parse)?,
        status: word(row, "status", RunStatus::parse)?,
        status_reason: reason.as_deref().and_then(EndReason::parse),
        error: row.get("error"),
        branch: row.get("branch"),
        message: row.get("message"),
        commit_sha: row.get("commit_sha"),
        tool: row.get("tool"),
        tool_version: row.get("tool_version"),
        credentials: serde_json::from_value(row.get("credentials")).unwrap_or_default(),
        triggered_by: row.get("triggered_by"),
        trigger_source: row.get("trigger_source"),
        waiting: waiting_position
            .map(|position| Waiting { position, reason: rules::waiting_reason(position, hold(row)) }),
        plan_summary: summary.and_then(|summary| serde_json::from_value::<PlanSummary>(summary).ok()),
        has_changes: row.get("has_changes"),
        approval_digest: None,
        approved_by: row.get("approved_by"),
        approved_at: row.get("approved_at"),
        approval_comment: row.get("approval_comment"),
        plan_expires_at: row.get("plan_expires_at"),
        base_state_version_id: row.get("base_state_version_id"),
        base_serial: row.get("base_serial"),
        cancel_requested: row.get::<_, Option<DateTime<Utc>>>("cancel_requested_at").is_some(),
        auto_approve_if_no_changes: row.get("auto_approve_if_no_changes"),
        auto_approve_skip_apply: row.get("auto_approve_skip_apply"),
        created_at: row.get("created_at"),
        started_at: row.get("started_at"),
        planned_at: row.get("planned_at"),
        completed_at: row.get("completed_at"),
    };
    let mut stored = StoredRun {
        plan_sha256: digest(row, "plan_sha256"),
        plan_json_sha256: digest(row, "plan_json_sha256"),
        lock_file_sha256: digest(row, "lock_file_sha256"),
        base_lineage: row.get("base_lineage"),
        approved_digest: digest(row, "approved_digest"),
        apply_begun_at: row.get("apply_begun_at"),
        traceparent: row.get::<_, Option<&str>>("traceparent").and_then(TraceParent::parse),
        plan_expired: row.get("plan_expired"),
        run,
    };
    stored.run.approval_digest = stored.approval_digest(digest(row, "gates_sha256"));
    Ok(stored)
}

impl StoredRun {
    /// `None` until the plan is there.
    fn approval_digest(&self, gates_sha256: Option<Sha256Digest>) -> Option<Sha256Digest> {
        Some(rules::approval_digest(&ApprovalFacts {
            plan_sha256: self.plan_sha256?,
            plan_json_sha256: self.plan_json_sha256?,
            gates_sha256,
            lock_file_sha256: self.lock_file_sha256,
            commit_sha: self.run.commit_sha.as_deref()?,
            tool: self.run.tool.as_deref(),
            tool_version: self.run.tool_version.as_deref()?,
            base: self.base(),
        }))
    }

    /// Lineage and serial of the state that was planned on.
    pub(super) fn base(&self) -> Option<(&str, i64)> {
        self.base_lineage.as_deref().zip(self.run.base_serial)
    }
}

pub(super) async fn find(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: RunId,
) -> Result<Option<StoredRun>, DbError> {
    query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(stored_run).transpose()
}

/// Locks the row until the transaction ends. Lock the workspace first where both are needed.
pub(super) async fn lock(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: RunId,
) -> Result<Option<StoredRun>, DbError> {
    query.query_opt(LOCK, &[&unit, &id]).await?.as_ref().map(stored_run).transpose()
}

pub(super) async fn list(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    only: Option<Vec<uuid::Uuid>>,
    filter: &RunFilter,
    page: PageRequest,
) -> Result<Vec<Run>, DbError> {
    let status = filter.status.map(RunStatus::as_str);
    let command = filter.command.map(RunCommand::as_str);
    let rows = query
        .query(
            LIST,
            &[&unit, &filter.workspace_id, &status, &command, &page.cursor, &only, &(page.limit + 1)],
        )
        .await?;
    rows.iter().map(|row| stored_run(row).map(|stored| stored.run)).collect()
}

const INSERT: &str = include_str!("sql/insert.sql");

/// What a new row needs beyond its defaults.
pub(super) struct InsertRun<'a> {
    pub(super) id: RunId,
    pub(super) unit: BusinessUnitId,
    pub(super) workspace_id: WorkspaceId,
    pub(super) command: RunCommand,
    pub(super) waiting: bool,
    pub(super) branch: &'a str,
    pub(super) message: Option<&'a str>,
    pub(super) variables_sealed: Option<&'a str>,
    pub(super) auto_approve_if_no_changes: bool,
    pub(super) auto_approve_skip_apply: bool,
    pub(super) allow_destroy: bool,
    pub(super) triggered_by: Option<UserId>,
    pub(super) trigger_source: &'a str,
    pub(super) promoted_from: Option<RunId>,
    pub(super) traceparent: Option<&'a str>,
}

/// Inserts the run and all of its steps.
pub(super) async fn insert(query: &impl Query, new: &InsertRun<'_>) -> Result<(), DbError> {
    let steps = rules::steps_of(new.command.mutates());
    let positions: Vec<i16> = steps.iter().map(|step| step.0).collect();
    let phases: Vec<&str> = steps.iter().map(|step| step.1.as_str()).collect();
    let names: Vec<&str> = steps.iter().map(|step| step.2).collect();
    query
        .execute(
            INSERT,
            &[
                &new.id,
                &new.unit,
                &new.workspace_id,
                &new.command.as_str(),
                &new.waiting,
                &new.branch,
                &new.message,
                &new.variables_sealed,
                &new.auto_approve_if_no_changes,
                &new.auto_approve_skip_apply,
                &new.allow_destroy,
                &new.triggered_by,
                &new.trigger_source,
                &new.promoted_from,
                &new.traceparent,
                &positions,
                &phases,
                &names,
            ],
        )
        .await?;
    Ok(())
}

const ADVANCE: &str = "
    UPDATE runs SET status = $2, started_at = coalesce(started_at, plumbline_now())
    WHERE id = $1 AND status = ANY($3)";

/// Moves a run along its graph; `false` if it was not in a status that leads there.
pub(super) async fn advance(query: &impl Query, id: RunId, to: RunStatus) -> Result<bool, DbError> {
    Ok(query.execute(ADVANCE, &[&id, &to.as_str(), &to.sources()]).await? == 1)
}

const END: &str = "
    UPDATE runs SET status = $2, status_reason = $3, error = $4, waiting = false, completed_at = plumbline_now()
    WHERE id = $1 AND status = ANY($5)";

/// Moves a run to a terminal status with its reason.
pub(super) async fn end(
    query: &impl Query,
    id: RunId,
    to: RunStatus,
    reason: Option<EndReason>,
    error: Option<&str>,
) -> Result<bool, DbError> {
    let reason = reason.map(EndReason::as_str);
    Ok(query.execute(END, &[&id, &to.as_str(), &reason, &error, &to.sources()]).await? == 1)
}

const STEPS: &str = "
    SELECT position, phase, name, attempt, status, summary, log_bytes, log_truncated, started_at, completed_at
    FROM run_steps WHERE run_id = $1 ORDER BY position";

pub(super) async fn steps(query: &impl Query, id: RunId) -> Result<Vec<Step>, DbError> {
    query.query(STEPS, &[&id]).await?.iter().map(step).collect()
}

fn step(row: &Row) -> Result<Step, DbError> {
    let started_at: Option<DateTime<Utc>> = row.get("started_at");
    let completed_at: Option<DateTime<Utc>> = row.get("completed_at");
    Ok(Step {
        position: row.get("position"),
        phase: word(row, "phase", StepPhase::parse)?,
        name: row.get("name"),
        attempt: row.get("attempt"),
        status: word(row, "status", StepStatus::parse)?,
        summary: row.get("summary"),
        log_bytes: row.get("log_bytes"),
        log_truncated: row.get("log_truncated"),
        started_at,
        completed_at,
        duration_seconds: started_at.zip(completed_at).map(|(from, to)| (to - from).num_seconds()),
    })
}

const CLOSE_STEPS: &str = "
    UPDATE run_steps
    SET status = CASE WHEN status = 'running' THEN $2 ELSE 'skipped' END, completed_at = plumbline_now()
    WHERE run_id = $1 AND status IN ('pending', 'running')";

/// Closes what an ended run leaves open: running steps get the given status, pending ones are skipped.
pub(super) async fn close_steps(
    query: &impl Query,
    id: RunId,
    running_become: StepStatus,
) -> Result<(), DbError> {
    query.execute(CLOSE_STEPS, &[&id, &running_become.as_str()]).await?;
    Ok(())
}

const SET_APPROVAL_STEP: &str = "
    UPDATE run_steps
    SET status = $2, started_at = coalesce(started_at, plumbline_now()),
        completed_at = CASE WHEN $2 = 'running' THEN NULL ELSE plumbline_now() END
    WHERE run_id = $1 AND phase = 'approval'";

/// The step that a person does.
pub(super) async fn set_approval_step(
    query: &impl Query,
    id: RunId,
    status: StepStatus,
) -> Result<(), DbError> {
    query.execute(SET_APPROVAL_STEP, &[&id, &status.as_str()]).await?;
    Ok(())
}

const APPROVE: &str = "
    UPDATE runs
    SET status = 'applying', approved_by = $2, approved_at = plumbline_now(), approval_comment = $3,
        approved_digest = $4
    WHERE id = $1 AND status = ANY($5)";

/// Stores the decision together with the digest of what was decided.
pub(super) async fn approve(
    query: &impl Query,
    id: RunId,
    by: Option<UserId>,
    comment: Option<&str>,
    approved: Sha256Digest,
) -> Result<bool, DbError> {
    let approved: &[u8] = &approved.0;
    let from = RunStatus::Applying.sources();
    Ok(query.execute(APPROVE, &[&id, &by, &comment, &approved, &from]).await? == 1)
}

const REQUEST_CANCEL: &str = "
    UPDATE runs SET cancel_requested_at = coalesce(cancel_requested_at, plumbline_now()), cancel_requested_by = $2
    WHERE id = $1";

pub(super) async fn request_cancel(query: &impl Query, id: RunId, by: Option<UserId>) -> Result<(), DbError> {
    query.execute(REQUEST_CANCEL, &[&id, &by]).await?;
    Ok(())
}

const SET_BASE: &str = "
    UPDATE runs SET base_state_version_id = $2, base_lineage = $3, base_serial = $4 WHERE id = $1";

/// Pins the state that the plan reads.
pub(super) async fn set_base(
    query: &impl Query,
    id: RunId,
    version: Option<StateVersionId>,
    lineage: Option<&str>,
    serial: Option<i64>,
) -> Result<(), DbError> {
    query.execute(SET_BASE, &[&id, &version, &lineage, &serial]).await?;
    Ok(())
}
