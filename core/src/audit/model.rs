//! What is recorded.

use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::access::Actor;
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};

/// Every privileged action. The word is `resource.verb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it; as_str gives the word")]
pub enum Action {
    Login,
    LoginFailed,
    Logout,
    SessionRefreshReused,
    UserBootstrap,
    BusinessUnitCreate,
    BusinessUnitUpdate,
    WorkspaceCreate,
    WorkspaceImport,
    WorkspaceUpdate,
    WorkspaceDelete,
    WorkspaceBlock,
    WorkspaceUnblock,
    RepositoryDiscover,
    RunTrigger,
    RunCancel,
    RunApprove,
    RunReject,
    RunAutoApprove,
    RunApplySkipped,
    RunExpire,
    RunPlanned,
    RunApplyBegin,
    RunEnd,
    RunRead,
    StateWrite,
    StateQuarantine,
    StatePromote,
    StateDiscard,
    StateRollback,
    StateRead,
    StateLock,
    StateUnlock,
    StateForceUnlock,
    StateAcceptLineage,
    ExecutorTicketReused,
    ExecutorIdentityRefused,
    ExecutorLost,
    TaskReplay,
}

impl Action {
    /// The word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "session.login",
            Self::LoginFailed => "session.login_failed",
            Self::Logout => "session.logout",
            Self::SessionRefreshReused => "session.refresh_reused",
            Self::UserBootstrap => "user.bootstrap",
            Self::BusinessUnitCreate => "business_unit.create",
            Self::BusinessUnitUpdate => "business_unit.update",
            Self::WorkspaceCreate => "workspace.create",
            Self::WorkspaceImport => "workspace.import",
            Self::WorkspaceUpdate => "workspace.update",
            Self::WorkspaceDelete => "workspace.delete",
            Self::WorkspaceBlock => "workspace.block",
            Self::WorkspaceUnblock => "workspace.unblock",
            Self::RepositoryDiscover => "repository.discover",
            Self::RunTrigger => "run.trigger",
            Self::RunCancel => "run.cancel",
            Self::RunApprove => "run.approve",
            Self::RunReject => "run.reject",
            Self::RunAutoApprove => "run.auto_approve",
            Self::RunApplySkipped => "run.apply_skipped",
            Self::RunExpire => "run.expire",
            Self::RunPlanned => "run.planned",
            Self::RunApplyBegin => "run.apply_begin",
            Self::RunEnd => "run.end",
            Self::RunRead => "run.read",
            Self::StateWrite => "state.write",
            Self::StateQuarantine => "state.quarantine",
            Self::StatePromote => "state.promote",
            Self::StateDiscard => "state.discard",
            Self::StateRollback => "state.rollback",
            Self::StateRead => "state.read",
            Self::StateLock => "state.lock",
            Self::StateUnlock => "state.unlock",
            Self::StateForceUnlock => "state.force_unlock",
            Self::StateAcceptLineage => "state.accept_lineage",
            Self::ExecutorTicketReused => "executor.ticket_reused",
            Self::ExecutorIdentityRefused => "executor.identity_refused",
            Self::ExecutorLost => "executor.lost",
            Self::TaskReplay => "task.replay",
        }
    }
}

/// One thing to record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose chain; `None` is the platform's.
    pub business_unit_id: Option<BusinessUnitId>,
    /// Who did it; the system is recorded with no user.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// To what kind of thing.
    pub resource_type: &'static str,
    /// To which one.
    pub resource_id: String,
    /// In which workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// In which run.
    pub run_id: Option<RunId>,
    /// More; never secrets.
    pub details: Value,
}

/// Names a chain: a business unit's id, or all zeros for the platform.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(transparent)]
#[schema(value_type = Uuid)]
pub struct ChainId(pub Uuid);

impl ChainId {
    /// The chain of a unit, or of the platform.
    pub fn of(unit: Option<BusinessUnitId>) -> Self {
        Self(unit.map_or(Uuid::nil(), Uuid::from))
    }
}

impl std::fmt::Display for ChainId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those of one workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// Those of one run.
    pub run_id: Option<RunId>,
    /// Those of one action.
    pub action: Option<String>,
}

/// The last entry of a page: entries are listed by time, newest first, over several chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Its time, in microseconds since 1970.
    pub micros: i64,
    /// Its place in its chain.
    pub sequence: i64,
    /// Its chain.
    pub chain_id: ChainId,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.micros, self.sequence, self.chain_id.0.simple())
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let [micros, sequence, chain] = text.split('.').collect::<Vec<_>>()[..] else { return Err(()) };
        Ok(Self {
            micros: micros.parse().map_err(|_| ())?,
            sequence: sequence.parse().map_err(|_| ())?,
            chain_id: ChainId(chain.parse().map_err(|_| ())?),
        })
    }
}
