//! The trade: a one-time ticket for the bundle.

use std::time::Duration;

use serde_json::json;
use subtle::ConstantTimeEq;

use super::service::{derive, hash};
use super::store::{self, Ticket};
use super::{ExecutorError, identity, readers};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::cloud_accounts::CredentialsError;
use crate::cloud_accounts::credentials::{self, Asked};
use crate::db::Tx;
use crate::dispatch;
use crate::git_credentials::{self, uses::UsedBy};
use crate::ids::RunId;
use crate::protocol::{Bundle, LeaseTerms, RunPhase, TradeRequest, VERSION};
use crate::runs::{self, RunError};
use crate::secrets::SealError;
use crate::tasks::{self, ClaimedTask, FailedAttempt, Lease, TaskError};

/// Shortest nonce in characters.
const NONCE_CHARS_MIN: usize = 32;

/// Trades a ticket for its bundle. Who does not prove to be its task learns nothing of it. The same ticket with the same
/// nonce gives the same token again.
pub async fn trade(deps: &Deps, request: &TradeRequest) -> Result<Bundle, ExecutorError> {
    if request.protocol == 0 || request.protocol > VERSION {
        return Err(ExecutorError::Protocol(request.protocol));
    }
    if request.nonce.len() < NONCE_CHARS_MIN {
        return Err(ExecutorError::TicketVoid);
    }
    identity::require(deps, request).await?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let ticket = store::lock_ticket(&tx, &hash(&request.ticket)).await?.ok_or(ExecutorError::TicketVoid)?;
    if ticket.voided {
        return Err(ExecutorError::TicketVoid);
    }
    let nonce_hash = hash(&request.nonce);
    let repeated = ticket.nonce_hash.as_ref().is_some_and(|known| bool::from(known.ct_eq(&nonce_hash)));
    if ticket.traded && !repeated {
        refuse_reuse(&tx, deps, &ticket).await?;
        tx.commit().await?;
        return Err(ExecutorError::TicketReused);
    }
    let lease = Lease { task_id: ticket.task_id, token: ticket.lease_token };
    match issue(&tx, deps, &ticket, lease, request).await {
        Ok(bundle) => {
            tx.commit().await?;
            Ok(bundle)
        }
        Err(ExecutorError::Run(error)) if is_permanent(&error) => {
            // Undone first: what cannot be begun must not look as if it had.
            drop(tx);
            drop(conn);
            deps.db.transaction(async |tx| end_unissued(tx, deps, &ticket, &error).await).await?;
            Err(ExecutorError::TicketVoid)
        }
        Err(error) => Err(error),
    }
}

async fn issue(
    tx: &Tx<'_>,
    deps: &Deps,
    ticket: &Ticket,
    lease: Lease,
    request: &TradeRequest,
) -> Result<Bundle, ExecutorError> {
    let task = tasks::service::find_held(tx, lease).await?.ok_or(ExecutorError::TicketVoid)?;
    let phase = runs::tasks::phase_of(task.kind).ok_or(ExecutorError::TicketVoid)?;
    let run_id = RunId(task.subject_id);
    let wall_clock = wall_clock(deps, phase);
    let attempt = runs::tasks::begin_attempt(tx, deps, run_id, phase, task.attempts).await?;
    tasks::service::go_live(tx, lease, wall_clock, &deps.limits).await.map_err(void_if_lost)?;
    let executor = ticket.executor_id.to_string();
    let token = derive(deps, &["token", &executor, &request.nonce, &ticket.epoch.to_string()])?;
    let run_password = readers::password(deps, ticket.executor_id, &request.nonce, ticket.epoch)?;
    let hashes = (hash(&request.nonce), hash(&token), hash(&run_password));
    if !store::trade(tx, ticket.executor_id, &hashes.0, &hashes.1, &hashes.2).await? {
        return Err(ExecutorError::TicketVoid);
    }
    let used_by = UsedBy::Run { workspace_id: attempt.workspace.id, run_id, phase };
    let handed_out = &attempt.git_credentials;
    git_credentials::uses::record(tx, handed_out, used_by, &attempt.workspace.repo_url).await?;
    // A repeated trade hands out what was handed out already.
    if !ticket.traded {
        let asked = Asked { workspace: &attempt.workspace, run_id, phase };
        credentials::record_use(tx, asked, ticket.executor_id, &attempt.granted.used).await?;
        runs::tasks::record_secrets(tx, run_id, phase, task.attempts, &attempt).await?;
    }
    Ok(Bundle {
        protocol: VERSION,
        token,
        run_password,
        executor_id: ticket.executor_id,
        task_id: lease.task_id,
        run_id,
        workspace_id: attempt.workspace.id,
        phase,
        command: attempt.command,
        attempt: task.attempts,
        lease: LeaseTerms {
            lease_seconds: deps.limits.lease.as_secs(),
            heartbeat_seconds: deps.limits.heartbeat.as_secs(),
            wall_clock_seconds: wall_clock.as_secs(),
        },
        source: attempt.source,
        tool: attempt.tool,
        variables: attempt.variables,
        environment: attempt.granted.environment,
        aws: attempt.granted.aws,
        cluster: attempt.granted.cluster,
        token_files: attempt.granted.token_files,
        secrets: attempt.granted.secrets,
        steps: attempt.steps,
        state: attempt.state,
        plan: attempt.plan,
        log_bytes_max: deps.limits.step_log_bytes_max,
        traceparent: task.traceparent.map(|trace| trace.as_str().to_owned()),
    })
}

fn wall_clock(deps: &Deps, phase: RunPhase) -> Duration {
    match phase {
        RunPhase::Plan => deps.limits.plan_wall_clock,
        RunPhase::Apply => deps.limits.apply_wall_clock,
    }
}

fn void_if_lost(error: TaskError) -> ExecutorError {
    match error {
        TaskError::LeaseLost => ExecutorError::TicketVoid,
        other => other.into(),
    }
}

/// Somebody else has the ticket: the attempt ends, unless it is changing things already, and the audit log says so.
async fn refuse_reuse(tx: &Tx<'_>, deps: &Deps, ticket: &Ticket) -> Result<(), ExecutorError> {
    tracing::error!(executor.id = %ticket.executor_id, task.id = %ticket.task_id, "a ticket was presented twice");
    if let Some(task) = lock_attempt(tx, ticket).await?
        && !runs::reports::has_begun_apply(tx, RunId(task.subject_id)).await?
    {
        let why = "the executor's ticket was presented twice";
        dispatch::fail_attempt(tx, deps, &task, &FailedAttempt::Retry(why.into())).await?;
        super::service::request_stop(tx, ticket.executor_id, "its ticket was presented twice").await?;
    }
    let workspace_id =
        runs::service::find_workspace_of_task(tx, ticket.business_unit_id, ticket.run_id).await?;
    let entry = Entry {
        business_unit_id: Some(ticket.business_unit_id),
        actor: Actor::System,
        action: Action::ExecutorTicketReused,
        resource_type: "executor",
        resource_id: ticket.executor_id.to_string(),
        workspace_id,
        run_id: ticket.run_id,
        details: json!({"task_id": ticket.task_id}),
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}

/// Whether no later attempt could get a bundle either.
fn is_permanent(error: &RunError) -> bool {
    match error {
        RunError::NotFound(_)
        | RunError::Seal(SealError::Unreadable(_))
        | RunError::Credentials(CredentialsError::Unusable { .. }) => true,
        RunError::Variables(error) => error.is_permanent(),
        _ => false,
    }
}

/// The run cannot be handed out, now or later: its task is a dead letter at once.
async fn end_unissued(
    tx: &Tx<'_>,
    deps: &Deps,
    ticket: &Ticket,
    error: &RunError,
) -> Result<(), ExecutorError> {
    tracing::error!(executor.id = %ticket.executor_id, task.id = %ticket.task_id, %error, "no bundle for a run");
    if let Some(task) = lock_attempt(tx, ticket).await? {
        let why = format!("the run cannot be handed to its executor: {error}");
        dispatch::fail_attempt(tx, deps, &task, &FailedAttempt::Permanent(why)).await?;
        super::service::request_stop(tx, ticket.executor_id, "there is no bundle for its run").await?;
    }
    Ok(())
}

/// The ticket's attempt, if it still holds its task. Its run is locked before the task, as by everybody.
async fn lock_attempt(tx: &Tx<'_>, ticket: &Ticket) -> Result<Option<ClaimedTask>, ExecutorError> {
    let lease = Lease { task_id: ticket.task_id, token: ticket.lease_token };
    let Some(task) = tasks::service::find_held(tx, lease).await? else { return Ok(None) };
    dispatch::lock_subject(tx, task.kind, task.subject_id).await?;
    Ok(tasks::service::find_held(tx, lease).await?)
}
