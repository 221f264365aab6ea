//! Use cases of executors: launching, who calls, heartbeats, stopping.

use hmac::{Hmac, Mac};
use sha2::{Digest as _, Sha256};

use super::ExecutorError;
use super::store::{self, InsertExecutor};
use crate::access::Actor;
use crate::db::Tx;
use crate::dispatch;
use crate::ids::{BusinessUnitId, ExecutorId, RunId, TaskId, WorkspaceId};
use crate::ports::{LaunchError, LaunchRequest};
use crate::protocol::{CancelMode, HeartbeatAnswer, RunPhase};
use crate::runs;
use crate::secrets::Domain;
use crate::tasks::{self, Backoff, ClaimedTask, FailedAttempt, Lease, TaskError, TaskKind};
use crate::tfstates;
use crate::{Deps, db};

/// The executor behind a token.
#[derive(Clone, Debug)]
pub struct ExecutorCaller {
    /// The attempt.
    pub executor_id: ExecutorId,
    /// The tenant.
    pub business_unit_id: BusinessUnitId,
    /// Its right to write about the task.
    pub lease: Lease,
    /// The run.
    pub run_id: RunId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// What it does.
    pub phase: RunPhase,
    /// Whether the lease is still its own. State writes go by lock, not by lease, so they come even without.
    pub lease_held: bool,
}

impl ExecutorCaller {
    /// Refuses an executor that lost its lease.
    pub fn require_lease(&self) -> Result<(), ExecutorError> {
        if self.lease_held { Ok(()) } else { Err(ExecutorError::LeaseLost) }
    }

    /// Who is recorded.
    pub fn actor(&self) -> Actor {
        Actor::System
    }
}

/// Stores a new attempt with its ticket and says how to launch it. The ticket is derived, not random: preparing the
/// same attempt again gives the same bytes.
pub async fn prepare_launch(
    deps: &Deps,
    task: &ClaimedTask,
    launcher: &str,
) -> Result<LaunchRequest, ExecutorError> {
    let executor_id: ExecutorId = deps.ids.mint();
    let ticket = derive(deps, &["ticket", &executor_id.to_string(), &task.lease.token.to_string()])?;
    let insert = InsertExecutor {
        id: executor_id,
        unit: task.business_unit_id,
        task_id: task.lease.task_id,
        lease_token: task.lease.token,
        kind: task.kind.as_str(),
        subject_id: task.subject_id,
        launcher,
        ticket_hash: &hash(&ticket),
    };
    store::insert(&deps.db.conn().await?, &insert).await?;
    Ok(LaunchRequest {
        executor_id,
        task_id: task.lease.task_id,
        lease_token: task.lease.token,
        callback_url: deps.public_url.to_string(),
        ticket,
    })
}

/// Stores what the platform calls a launched executor.
pub async fn record_launched(deps: &Deps, id: ExecutorId, handle: &str) -> Result<(), ExecutorError> {
    Ok(store::set_handle(&deps.db.conn().await?, id, handle).await?)
}

/// A launch did not work: the attempt is given back, tried again later, or was the last one.
pub async fn launch_failed(
    deps: &Deps,
    task: &ClaimedTask,
    error: &LaunchError,
) -> Result<(), ExecutorError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    // In the order of everybody else; a dead letter ends the run below.
    dispatch::lock_subject(&tx, task.kind, task.subject_id).await?;
    if let Some(executor) = store::find_of_attempt(&tx, task.lease.task_id, task.lease.token).await? {
        if !store::void_untraded(&tx, executor).await? {
            tracing::warn!(executor.id = %executor, %error, "a launch that failed has traded its ticket: it goes on");
            return Ok(());
        }
        store::stop(&tx, executor, &error.to_string()).await?;
    }
    let failure = match error {
        LaunchError::Throttled(why) => FailedAttempt::NotBegun(why.clone()),
        LaunchError::Unavailable(why) => FailedAttempt::Retry(why.clone()),
        LaunchError::Refused(why) => FailedAttempt::Permanent(why.clone()),
    };
    match tasks::service::fail(&tx, task.lease, &failure, rand::random(), &deps.limits).await {
        Ok(Backoff::DeadLettered) => {
            dispatch::dead_lettered(&tx, deps.ids, task, &error.to_string()).await?;
        }
        Ok(_) => {}
        // Somebody cancelled meanwhile: nothing is left to give back.
        Err(TaskError::LeaseLost) => {}
        Err(error) => return Err(error.into()),
    }
    tx.commit().await?;
    Ok(())
}

/// The executor behind a bearer token, whether or not it still holds its lease.
pub async fn authenticate(deps: &Deps, token: &str) -> Result<ExecutorCaller, ExecutorError> {
    let found =
        store::find_by_token(&deps.db.conn().await?, &hash(token)).await?.ok_or(ExecutorError::Token)?;
    let kind = TaskKind::parse(&found.kind).ok_or(ExecutorError::Token)?;
    let phase = runs::tasks::phase_of(kind).ok_or(ExecutorError::Token)?;
    Ok(ExecutorCaller {
        executor_id: found.id,
        business_unit_id: found.business_unit_id,
        lease: Lease { task_id: found.task_id, token: found.lease_token },
        run_id: RunId(found.subject_id),
        workspace_id: found.workspace_id,
        phase,
        lease_held: found.held,
    })
}

/// Renews the lease and says whether to stop.
pub async fn heartbeat(deps: &Deps, caller: &ExecutorCaller) -> Result<HeartbeatAnswer, ExecutorError> {
    let conn = deps.db.conn().await?;
    let cancel = tasks::service::heartbeat(&conn, caller.lease, &deps.limits).await?;
    store::seen(&conn, caller.executor_id).await?;
    Ok(HeartbeatAnswer {
        lease_seconds: deps.limits.lease.as_secs(),
        cancel: if cancel { CancelMode::Interrupt } else { CancelMode::No },
    })
}

/// The platform says that an executor cannot act any more, or it said goodbye: its ticket is void and a state lock
/// that it held is free.
pub async fn mark_stopped(tx: &Tx<'_>, id: ExecutorId, reason: &str) -> Result<bool, db::DbError> {
    let stopped = store::stop(tx, id, reason).await?;
    tfstates::service::free_lock_of_stopped(tx, id).await?;
    Ok(stopped)
}

/// Asks the sweep to stop an executor.
pub async fn request_stop(tx: &Tx<'_>, id: ExecutorId, reason: &str) -> Result<(), db::DbError> {
    store::request_stop(tx, id, reason).await
}

/// Whether somebody has asked this executor to stop.
pub async fn is_to_stop(query: &impl db::Query, id: ExecutorId) -> Result<bool, db::DbError> {
    store::is_to_stop(query, id).await
}

/// The executor of an attempt, if one was prepared.
pub async fn find_of_attempt(
    query: &impl db::Query,
    task: TaskId,
    lease_token: i64,
) -> Result<Option<ExecutorId>, db::DbError> {
    store::find_of_attempt(query, task, lease_token).await
}

/// Whether an executor still holds its lease, asked afresh.
pub async fn still_holds(query: &impl db::Query, caller: &ExecutorCaller) -> Result<bool, db::DbError> {
    store::holds(query, caller.lease.task_id, caller.lease.token).await
}

/// A secret that follows from the installation's executor key and the given parts.
pub(super) fn derive(deps: &Deps, parts: &[&str]) -> Result<String, ExecutorError> {
    let key = deps.keys.key(Domain::Executors)?;
    let mut mac = <Hmac<Sha256> as Mac>::new_from_slice(key).expect("HMAC takes a key of any length");
    for part in parts {
        mac.update(part.len().to_string().as_bytes());
        mac.update(b":");
        mac.update(part.as_bytes());
    }
    Ok(hex::encode(mac.finalize().into_bytes()))
}

/// What is stored of a secret.
pub(super) fn hash(secret: &str) -> Vec<u8> {
    Sha256::digest(secret.as_bytes()).to_vec()
}
