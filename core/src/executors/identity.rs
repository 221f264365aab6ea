//! Who trades: an executor on ECS proves that it is the task that was launched for its ticket.
//!
//! A ticket stands in launch parameters, which others can read. The proof cannot be read anywhere: only the task itself
//! has the credentials that sign it. A refused caller changes nothing; the right task can trade afterwards.

use std::sync::Arc;

use serde_json::json;

use super::store::{self, Launched};
use super::{ExecutorError, rules};
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::digest::Sha256Digest;
use crate::ports::{CallerArn, CallerIdentity, IdentityError};
use crate::protocol::TradeRequest;
use crate::runs;

/// How tasks of ECS are told apart.
#[derive(Clone, Debug)]
pub struct TaskIdentity {
    /// Asks the cloud.
    pub callers: Arc<dyn CallerIdentity>,
    /// Name of the role that executors have. Nothing but an ECS task may assume it.
    pub role: Arc<str>,
}

/// Why a caller gets no bundle.
enum Unproven {
    /// For good.
    Refused { why: String, caller: Option<CallerArn> },
    /// It may work in a moment.
    NotNow(ExecutorError),
}

impl Unproven {
    fn refused(why: impl ToString) -> Self {
        Self::Refused { why: why.to_string(), caller: None }
    }
}

/// Refuses whoever is not the executor that the ticket was made for. Called before anything is locked: the answer comes
/// over the network.
pub(super) async fn require(deps: &Deps, request: &TradeRequest) -> Result<(), ExecutorError> {
    let ticket = Sha256Digest::of(request.ticket.as_bytes());
    // The connection goes back here: the pool may have no other, and AWS takes its time.
    let launched = store::find_launched(&deps.db.conn().await?, &ticket.0).await?;
    let launched = launched.filter(|launched| !launched.voided).ok_or(ExecutorError::TicketVoid)?;
    if !rules::must_prove(&launched.launcher) {
        return Ok(());
    }
    match prove(deps, request, ticket, &launched).await {
        Ok(()) => Ok(()),
        Err(Unproven::NotNow(error)) => Err(error),
        Err(Unproven::Refused { why, caller }) => {
            refuse(deps, &launched, &why, caller).await?;
            Err(ExecutorError::IdentityRefused(why))
        }
    }
}

async fn prove(
    deps: &Deps,
    request: &TradeRequest,
    ticket: Sha256Digest,
    launched: &Launched,
) -> Result<(), Unproven> {
    let proof =
        request.identity.as_ref().ok_or_else(|| Unproven::refused("no proof came with the ticket"))?;
    let identity = deps
        .task_identity
        .as_ref()
        .ok_or_else(|| Unproven::refused("this control plane is not set up to know executors on ECS"))?;
    // The worker may have died between the launch and the record of it; the sweep then finds the task.
    let handle = launched.handle.as_ref().ok_or(Unproven::NotNow(ExecutorError::LaunchUnrecorded))?;
    let caller = identity.callers.identify(proof, ticket).await.map_err(|error| match error {
        IdentityError::Refused(why) => Unproven::refused(why),
        IdentityError::Unavailable(_) => Unproven::NotNow(ExecutorError::IdentityUnavailable(error)),
    })?;
    rules::check_caller(handle, &identity.role, &caller.0)
        .map_err(|stranger| Unproven::Refused { why: stranger.to_string(), caller: Some(caller) })
}

async fn refuse(
    deps: &Deps,
    launched: &Launched,
    why: &str,
    caller: Option<CallerArn>,
) -> Result<(), ExecutorError> {
    let caller = caller.map(|caller| caller.0);
    tracing::error!(
        executor.id = %launched.executor_id, task.id = %launched.task_id, why, caller,
        "a ticket was presented by somebody who did not prove to be its task"
    );
    deps.db
        .transaction(async |tx| {
            let unit = launched.business_unit_id;
            let entry = Entry {
                business_unit_id: Some(unit),
                actor: Actor::System,
                action: Action::ExecutorIdentityRefused,
                resource_type: "executor",
                resource_id: launched.executor_id.to_string(),
                workspace_id: runs::service::find_workspace_of_task(tx, unit, launched.run_id).await?,
                run_id: launched.run_id,
                details: json!({"task_id": launched.task_id, "reason": why, "caller": caller}),
            };
            Ok::<_, ExecutorError>(audit::service::record(tx, &entry).await?)
        })
        .await
}
