//! Use cases of the state.
//!
//! The protocol's calls take a [`StateActor`]: people come through `tfstate`, executors through `callback`; the rest is
//! for people only. Each use case decides under the row lock of the workspace's `tfstates` row, and no call to the
//! object store happens while a transaction is open.

mod bodies;
mod contents;
mod locks;
mod outputs;
mod quarantine;
mod reads;
mod retention;
mod sharing;
mod uploads;
mod versions;
mod writes;

use serde_json::Value;

use super::rules;
use super::store::{self, StateRow};
use super::{HeldBy, StateError, StateHead, StateWrites, WriteFence};
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{Action, Entry};
use crate::business_units;
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, ExecutorId, QuarantinedStateId, RunId, StateVersionId, WorkspaceId};
use crate::protocol::RunPhase;

pub(crate) use contents::{look_into, note};
pub use locks::{count_locks_of_people, force_unlock, get_lock, lock, unlock};
pub use outputs::{version_outputs, workspace_outputs};
pub use quarantine::{accept_next_lineage, discard, list_quarantined, promote};
pub use reads::{StateBody, addresses, download, read};
pub use retention::sweep_versions;
pub use sharing::{list_consumers, read_shared, share};
pub use uploads::{begin_upload, commit_upload, sweep_uploads};
pub use versions::{diff_versions, get_version, list_versions, rollback};
pub use writes::{InlineWrite, WriteOutcome, write_inline};

/// Who speaks the state protocol.
#[derive(Clone, Copy, Debug)]
pub enum StateActor<'a> {
    /// A person's own Terraform.
    Person(&'a Ctx),
    /// An attempt of a run; `callback` has checked its token and that the workspace is the run's.
    Executor {
        /// The run's unit.
        business_unit_id: BusinessUnitId,
        /// The run.
        run_id: RunId,
        /// The attempt.
        executor_id: ExecutorId,
        /// What the token is for: a plan's can never write or lock.
        phase: RunPhase,
    },
}

impl StateActor<'_> {
    fn unit(&self) -> Option<BusinessUnitId> {
        match self {
            Self::Person(ctx) => ctx.scope.unit(),
            Self::Executor { business_unit_id, .. } => Some(*business_unit_id),
        }
    }

    fn run_id(&self) -> Option<RunId> {
        match self {
            Self::Person(_) => None,
            Self::Executor { run_id, .. } => Some(*run_id),
        }
    }

    fn author(&self) -> Author {
        let actor = match self {
            Self::Person(ctx) => ctx.actor.clone(),
            Self::Executor { .. } => Actor::System,
        };
        Author { actor, run_id: self.run_id() }
    }

    /// Refuses what can be refused before the workspace is known.
    fn require_write(&self) -> Result<HeldBy, StateError> {
        match self {
            Self::Person(ctx) => {
                ctx.require(Permission::WriteState)?;
                Ok(HeldBy::Person(ctx.person()?))
            }
            Self::Executor { phase: RunPhase::Plan, .. } => Err(StateError::PlanMayNotWrite),
            Self::Executor { executor_id, .. } => Ok(HeldBy::Executor(*executor_id)),
        }
    }

    /// Refuses people where only runs write. Taking the lock counts: a person's lock would stop the applies.
    fn require_writable(&self, row: &StateRow) -> Result<(), StateError> {
        match (self, row.state_writes) {
            (Self::Person(_), StateWrites::RunsOnly) => Err(StateError::RunsOnly),
            (Self::Person(_), StateWrites::RunsAndPeople) | (Self::Executor { .. }, _) => Ok(()),
        }
    }

    /// Refuses people while another one has locked the workspace. What a run began is finished.
    fn require_not_locked_out(&self, row: &StateRow) -> Result<(), StateError> {
        let Self::Person(ctx) = self else { return Ok(()) };
        match &row.workspace_lock {
            Some(locked) if Some(locked.by) != ctx.actor.user_id() => {
                Err(StateError::Locked { holder: rules::lock_info_of(row.workspace_id, locked) })
            }
            Some(_) | None => Ok(()),
        }
    }

    /// The same for a write: whoever has the state's lock was let in with it.
    fn require_may_write(&self, fence: WriteFence<'_>, row: &StateRow) -> Result<(), StateError> {
        match fence {
            WriteFence::Unlocked => self.require_not_locked_out(row),
            WriteFence::Lock { .. } | WriteFence::Upload { .. } => Ok(()),
        }
    }

    /// Refuses people in an archived unit. What runs began is finished.
    async fn require_unit_in_use(&self, query: &impl Query, row: &StateRow) -> Result<(), StateError> {
        match self {
            Self::Person(ctx) => {
                business_units::service::require_in_use(query, ctx, row.business_unit_id).await
            }
            Self::Executor { .. } => Ok(()),
        }
    }
}

/// Who is recorded as the author of what happened.
#[derive(Clone, Debug)]
struct Author {
    actor: Actor,
    run_id: Option<RunId>,
}

impl Author {
    fn person(ctx: &Ctx) -> Self {
        Self { actor: ctx.actor.clone(), run_id: None }
    }

    fn entry(&self, row: &StateRow, action: Action, details: Value) -> Entry {
        self.entry_in(row.business_unit_id, row.workspace_id, action, details)
    }

    fn entry_in(
        &self,
        business_unit_id: BusinessUnitId,
        workspace_id: WorkspaceId,
        action: Action,
        details: Value,
    ) -> Entry {
        Entry {
            business_unit_id: Some(business_unit_id),
            actor: self.actor.clone(),
            action,
            resource_type: "tfstate",
            resource_id: workspace_id.to_string(),
            workspace_id: Some(workspace_id),
            run_id: self.run_id,
            details,
        }
    }
}

/// The workspace of a state version of the unit.
pub async fn find_workspace_of_version(
    query: &impl Query,
    unit: BusinessUnitId,
    id: StateVersionId,
) -> Result<Option<WorkspaceId>, DbError> {
    Ok(store::find_version(query, Some(unit), id).await?.map(|version| version.view.workspace_id))
}

/// The workspace of a quarantined state of the unit.
pub async fn find_workspace_of_quarantined(
    query: &impl Query,
    unit: BusinessUnitId,
    id: QuarantinedStateId,
) -> Result<Option<WorkspaceId>, DbError> {
    Ok(store::find_quarantined(query, Some(unit), id).await?.map(|state| state.view.workspace_id))
}

/// The head of a workspace's state; `None` before the first write.
pub async fn find_head(query: &impl Query, workspace_id: WorkspaceId) -> Result<Option<StateHead>, DbError> {
    store::find_head(query, workspace_id).await
}

/// Frees the lock that an executor holds, once the executor is known to have stopped. Returns whether it held one.
pub async fn free_lock_of_stopped(query: &impl Query, executor_id: ExecutorId) -> Result<bool, DbError> {
    store::free_lock_of(query, executor_id).await
}

async fn find_row(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
) -> Result<StateRow, StateError> {
    store::find(query, unit, workspace_id).await?.ok_or(StateError::NotFound("workspace"))
}

async fn lock_row(
    tx: &Tx<'_>,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
) -> Result<StateRow, StateError> {
    store::lock_row(tx, unit, workspace_id).await?.ok_or(StateError::NotFound("workspace"))
}

/// Where a new body goes. The workspace's id in it keeps two workspaces from ever sharing a state.
fn key_of(row: &StateRow, id: uuid::Uuid) -> String {
    format!("states/{}/{}/{id}.tfstate", row.business_unit_id, row.workspace_id)
}
