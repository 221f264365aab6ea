//! What is recorded.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::access::Actor;
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, UserId, WorkspaceId};

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

/// One recorded entry, as people read it.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct EntryView {
    /// Its place in its chain; starts at 1.
    pub sequence: i64,
    /// Its chain: the business unit's id, or all zeros for the platform.
    pub chain_id: ChainId,
    /// The business unit; absent for what concerns the whole platform.
    pub business_unit_id: Option<BusinessUnitId>,
    /// Who did it; absent for Plumbline itself.
    pub user_id: Option<UserId>,
    /// `resource.verb`.
    pub action: String,
    /// The kind of thing it was done to.
    pub resource_type: String,
    /// Which one.
    pub resource_id: String,
    /// In which workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// In which run.
    pub run_id: Option<RunId>,
    /// More, by action.
    pub details: Value,
    /// When, by the database's clock.
    pub created_at: DateTime<Utc>,
    /// SHA-256 over the hash before and the entry's bytes.
    pub hash: Sha256Digest,
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

/// One page of entries, newest first.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct EntryPage {
    /// The entries.
    pub items: Vec<EntryView>,
    /// Pass as `cursor` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_cursor: Option<String>,
}

/// Where a chain ends.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct HeadView {
    /// The chain.
    pub chain_id: ChainId,
    /// Its last entry.
    pub sequence: i64,
    /// That entry's hash.
    pub hash: Sha256Digest,
}

/// What a checkpoint states. Its canonical JSON is what is signed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct CheckpointBody {
    /// The layout.
    pub format: u32,
    /// Rises by one.
    pub sequence: i64,
    /// SHA-256 of the body of the checkpoint before; zeros for the first.
    pub previous_hash: Sha256Digest,
    /// When, by the database's clock, in RFC 3339.
    pub created_at: String,
    /// Every chain's head, ordered by chain.
    pub heads: Vec<HeadView>,
}

/// One place where the log is not what was written.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Broken {
    /// The chain.
    pub chain_id: ChainId,
    /// The first entry concerned.
    pub sequence: i64,
    /// What is wrong, as a sentence.
    pub reason: String,
}

/// The newest checkpoint, as verification found it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct CheckpointView {
    /// Its number.
    pub sequence: i64,
    /// Whether it follows its predecessors, its signature holds, and every entry it names is there.
    pub ok: bool,
}

/// The outcome of a verification.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Verification {
    /// Nothing is broken.
    pub ok: bool,
    /// Chains looked at.
    pub chains: i64,
    /// Entries looked at.
    pub entries: i64,
    /// What is broken, at most [`Verification::BROKEN_MAX`] places.
    pub broken: Vec<Broken>,
    /// The newest checkpoint; absent while there is none.
    pub checkpoint: Option<CheckpointView>,
}

impl Verification {
    /// Broken places reported at most.
    pub const BROKEN_MAX: usize = 100;
}

/// One entry as an offline verifier needs it.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ExportedEntry {
    /// The chain.
    pub chain_id: ChainId,
    /// Its place.
    pub sequence: i64,
    /// The hash before.
    pub previous_hash: Sha256Digest,
    /// Its hash.
    pub hash: Sha256Digest,
    /// The hashed bytes, which are text.
    pub canonical: String,
}

/// One page of an export, oldest first, with the newest checkpoint.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Export {
    /// Entries of one chain.
    pub items: Vec<ExportedEntry>,
    /// Pass as `after` to get the next page; absent on the last page.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next_after: Option<i64>,
    /// The newest checkpoint as it lies in the object store; absent while there is none.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub checkpoint: Option<SignedCheckpoint>,
}

/// A checkpoint as it lies in the object store.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SignedCheckpoint {
    /// The signed bytes: the canonical JSON of a [`CheckpointBody`].
    pub body: String,
    /// SHA-256 of the body.
    pub hash: Sha256Digest,
    /// Ed25519 over the body, in base64.
    pub signature: String,
    /// Names the public key.
    pub key_id: String,
    /// The public key in base64: compare it with the one you noted, do not trust it from here.
    pub public_key: String,
}
