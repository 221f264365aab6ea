//! What people are shown, read from the API's documents. Lenient: only ids and what decides must be there.

mod administration;
mod states;
mod variables;

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

pub use administration::{
    ApiKey, AuthConfig, BusinessUnit, CiTrustRule, ConfigChange, GitCredential, GitCredentialTest,
    GitCredentialUsage, Invite, IssuerKey, JwtSecret, MaskedSecret, Me, Membership, MintedApiKey,
    RotatedIssuerKey, Session, Tunable, User, UsingWorkspace,
};
pub use states::{
    LockWaiter, QuarantinedState, Resource, StateConsumer, StateConsumers, StateDiff, StateLock, StateOutput,
    StateOutputs, StateVersion,
};
pub use variables::{Attachment, Effective, EffectiveVariable, Variable, VariableSet, VariableSource};

/// A Terraform directory in one place.
#[derive(Clone, Debug, Deserialize)]
pub struct Workspace {
    pub id: String,
    pub name: String,
    #[serde(default)]
    pub kind: String,
    #[serde(default)]
    pub environment: String,
    #[serde(default)]
    pub aws_account_id: String,
    #[serde(default)]
    pub region: String,
    #[serde(default)]
    pub repo_url: String,
    #[serde(default)]
    pub repo_ref: String,
    #[serde(default)]
    pub tf_working_dir: String,
    pub tool: Option<String>,
    pub tool_version: Option<String>,
    #[serde(default)]
    pub tags: BTreeMap<String, String>,
    pub state_writes: Option<String>,
    pub state_backend: Option<String>,
    pub drift_status: Option<String>,
    pub active_run_id: Option<String>,
    pub blocked: Option<Blocked>,
    pub locked: Option<Locked>,
    pub updated_at: Option<DateTime<Utc>>,
}

/// Why a workspace takes no changes.
#[derive(Clone, Debug, Deserialize)]
pub struct Blocked {
    pub at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub reason: String,
    pub run_id: Option<String>,
}

/// Who keeps changes away.
#[derive(Clone, Debug, Deserialize)]
pub struct Locked {
    pub at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub who: String,
    #[serde(default)]
    pub reason: String,
}

/// A pass of a command over a workspace.
#[derive(Clone, Debug, Deserialize)]
pub struct Run {
    pub id: String,
    pub workspace_id: String,
    pub command: String,
    pub status: String,
    pub status_reason: Option<String>,
    pub error: Option<String>,
    pub branch: Option<String>,
    pub message: Option<String>,
    pub commit_sha: Option<String>,
    pub tool: Option<String>,
    pub tool_version: Option<String>,
    #[serde(default)]
    pub credentials: Vec<RunCredential>,
    pub waiting: Option<Waiting>,
    pub plan_summary: Option<PlanSummary>,
    pub has_changes: Option<bool>,
    pub approval_digest: Option<String>,
    pub approval_comment: Option<String>,
    pub plan_expires_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub cancel_requested: bool,
    pub created_at: Option<DateTime<Utc>>,
    pub started_at: Option<DateTime<Utc>>,
    pub completed_at: Option<DateTime<Utc>>,
}

impl Run {
    /// Whether it stays as it is until a person does something.
    pub fn is_settled(&self) -> bool {
        match self.status.as_str() {
            "applied" | "failed" | "cancelled" | "awaiting_approval" => true,
            "planned" => self.command == "plan",
            _ => false,
        }
    }
}

/// Which cloud credentials a phase of a run got, or why not.
#[derive(Clone, Debug, Deserialize)]
pub struct RunCredential {
    #[serde(default)]
    pub phase: String,
    #[serde(default)]
    pub cloud: String,
    #[serde(default)]
    pub account: String,
    pub role_arn: Option<String>,
    pub missing: Option<String>,
}

/// What a run waits for.
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Waiting {
    #[serde(default)]
    pub position: i64,
    #[serde(default)]
    pub reason: String,
}

/// What a plan would do, in numbers.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct PlanSummary {
    pub add: i64,
    pub change: i64,
    pub destroy: i64,
    pub replace: i64,
    pub import: i64,
    #[serde(rename = "move")]
    pub moved: i64,
    pub forget: i64,
    pub read: i64,
    pub outputs: i64,
    pub drift: i64,
    pub deferred: i64,
    pub errored: bool,
}

/// A plan, resource by resource.
#[derive(Clone, Debug, Deserialize)]
pub struct Plan {
    #[serde(default)]
    pub resource_changes: Vec<ResourceChange>,
    pub text: Option<String>,
}

/// What happens to one resource.
#[derive(Clone, Debug, Deserialize)]
pub struct ResourceChange {
    pub address: String,
    #[serde(default)]
    pub actions: Vec<String>,
}

/// One step of a run.
#[derive(Clone, Debug, Deserialize)]
pub struct Step {
    pub position: i64,
    #[serde(default)]
    pub phase: String,
    pub name: String,
    #[serde(default)]
    pub attempt: i64,
    pub status: String,
    pub summary: Option<Value>,
    #[serde(default)]
    pub log_bytes: i64,
    #[serde(default)]
    pub log_truncated: bool,
    pub duration_seconds: Option<f64>,
}

/// A piece of a step's log.
#[derive(Clone, Debug, Deserialize)]
pub struct LogChunk {
    pub next_offset: i64,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub complete: bool,
}

/// Something that a run left behind.
#[derive(Clone, Debug, Deserialize)]
pub struct Artifact {
    pub kind: String,
    #[serde(default)]
    pub size_bytes: i64,
    #[serde(default)]
    pub sha256: String,
    pub created_at: Option<DateTime<Utc>>,
}

/// What an apply made and the state does not have.
#[derive(Clone, Debug, Deserialize)]
pub struct Unrecorded {
    pub items: Vec<UnrecordedResource>,
    #[serde(default)]
    pub truncated: bool,
    pub is_state_readable: bool,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
pub struct UnrecordedResource {
    pub address: String,
    pub resource_id: Option<String>,
    pub import_command: Option<String>,
}

/// A row of the queue.
#[derive(Clone, Debug, Deserialize)]
pub struct Task {
    pub id: String,
    pub kind: String,
    #[serde(default)]
    pub subject_id: String,
    pub status: String,
    pub lease_phase: Option<String>,
    #[serde(default)]
    pub attempts: i64,
    #[serde(default)]
    pub attempts_max: i64,
    pub run_after: Option<DateTime<Utc>>,
    pub last_error: Option<String>,
    pub result: Option<Value>,
    pub created_at: Option<DateTime<Utc>>,
    pub finished_at: Option<DateTime<Utc>>,
}

/// A record of something done.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditEntry {
    pub sequence: i64,
    pub action: String,
    #[serde(default)]
    pub resource_type: String,
    pub resource_id: Option<String>,
    pub user_id: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
}

/// Whether the record is whole.
#[derive(Clone, Debug, Deserialize)]
pub struct AuditVerdict {
    pub ok: bool,
    #[serde(default)]
    pub chains: i64,
    #[serde(default)]
    pub entries: i64,
    #[serde(default)]
    pub broken: Vec<BrokenLink>,
    pub checkpoint: Option<CheckpointVerdict>,
}

/// Whether signed checkpoints hold.
#[derive(Clone, Debug, Deserialize)]
pub struct CheckpointVerdict {
    #[serde(default)]
    pub faults: Vec<BrokenCheckpoint>,
}

/// A checkpoint that does not hold.
#[derive(Clone, Debug, Deserialize)]
pub struct BrokenCheckpoint {
    pub sequence: i64,
    #[serde(default)]
    pub reason: String,
}

/// How far sealing everything under another root key is.
#[derive(Clone, Debug, Deserialize)]
pub struct Rekey {
    #[serde(default)]
    pub key_id: String,
    pub status: String,
    pub note: Option<String>,
    #[serde(default)]
    pub columns: Vec<RekeyColumn>,
}

/// The same of one column.
#[derive(Clone, Debug, Deserialize)]
pub struct RekeyColumn {
    pub table: String,
    pub column: String,
    #[serde(default)]
    pub resealed: i64,
    pub remaining: Option<i64>,
    #[serde(default)]
    pub unreadable: i64,
    #[serde(default)]
    pub unreadable_rows: Vec<String>,
}

/// Where a chain does not hold.
#[derive(Clone, Debug, Deserialize)]
pub struct BrokenLink {
    pub chain_id: String,
    pub sequence: i64,
    #[serde(default)]
    pub reason: String,
}
