//! What is recorded.

use serde_json::Value;

use crate::access::Actor;
use crate::ids::{BusinessUnitId, RunId, WorkspaceId};

/// Every privileged action. The word is `resource.verb`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[expect(missing_docs, reason = "the names say it; as_str gives the word")]
pub enum Action {
    Login,
    LoginFailed,
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
    ExecutorLost,
    TaskReplay,
}

impl Action {
    /// The word in the log.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Login => "session.login",
            Self::LoginFailed => "session.login_failed",
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
