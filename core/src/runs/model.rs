//! Runs as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{PlanSummary, RunStatus};
use crate::cloud_accounts::UsedCredential;
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, StateVersionId, UserId, WorkspaceId};
use crate::protocol::{ArtifactKind, RunCommand, StepStatus};
use crate::variables::RunVariable;

/// What a person asks for.
#[derive(Clone, Debug)]
pub struct NewRun {
    /// Where.
    pub workspace_id: WorkspaceId,
    /// What.
    pub command: RunCommand,
    /// Another branch than the workspace's; does not change the workspace.
    pub branch: Option<String>,
    /// Why, for the history.
    pub message: Option<String>,
    /// Variables of this run only.
    pub variables: Vec<RunVariable>,
    /// Apply without a person if the plan is provably empty.
    pub auto_approve_if_no_changes: bool,
    /// With the former: do not even start an executor for the empty apply.
    pub auto_approve_skip_apply: bool,
    /// Handed to policies: the run is meant to destroy.
    pub allow_destroy: bool,
}

/// Why a run ended as it did. `None` in the run means: nothing special.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndReason {
    /// A person asked for it.
    Cancelled,
    /// A person refused the plan.
    Rejected,
    /// Nobody approved in time.
    Expired,
    /// The state moved after the plan.
    StalePlan,
    /// A person had locked the workspace before the apply began.
    WorkspaceLocked,
    /// The executor could not be started or stopped answering, too often.
    Lost,
    /// The configuration, the tool or the provider said no.
    Error,
    /// The wall-clock limit passed.
    TimedOut,
    /// Nothing to change, and the apply was skipped as asked.
    NoChanges,
    /// Its business unit was archived before it began to change anything.
    UnitArchived,
}

impl EndReason {
    const ALL: [Self; 10] = [
        Self::Cancelled,
        Self::Rejected,
        Self::Expired,
        Self::StalePlan,
        Self::WorkspaceLocked,
        Self::Lost,
        Self::Error,
        Self::TimedOut,
        Self::NoChanges,
        Self::UnitArchived,
    ];

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Cancelled => "cancelled",
            Self::Rejected => "rejected",
            Self::Expired => "expired",
            Self::StalePlan => "stale_plan",
            Self::WorkspaceLocked => "workspace_locked",
            Self::Lost => "lost",
            Self::Error => "error",
            Self::TimedOut => "timed_out",
            Self::NoChanges => "no_changes",
            Self::UnitArchived => "unit_archived",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|reason| reason.as_str() == word)
    }
}

/// Why a run has not begun.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Waiting {
    /// How many runs stand before this one, the active one included.
    pub position: i64,
    /// A sentence: who holds the workspace.
    pub reason: String,
}

/// A run.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Run {
    /// Its id.
    pub id: RunId,
    /// The tenant.
    pub business_unit_id: BusinessUnitId,
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// What it is for.
    pub command: RunCommand,
    /// Where it stands.
    pub status: RunStatus,
    /// Why it ended so.
    pub status_reason: Option<EndReason>,
    /// The same in a sentence, when it did not work.
    pub error: Option<String>,
    /// The branch that was cloned.
    pub branch: String,
    /// Why it was asked for.
    pub message: Option<String>,
    /// The commit that plan and apply use; known after the first clone.
    pub commit_sha: Option<String>,
    /// `terraform` or `tofu`.
    pub tool: Option<String>,
    /// The exact version; known after the plan's set-up.
    pub tool_version: Option<String>,
    /// Which cloud credentials its phases got, and which not and why.
    pub credentials: Vec<UsedCredential>,
    /// Who asked; `None` is Plumbline itself.
    pub triggered_by: Option<UserId>,
    /// `user`, `promotion`, …
    pub trigger_source: String,
    /// Set while it waits for its workspace.
    pub waiting: Option<Waiting>,
    /// Counts of the plan.
    pub plan_summary: Option<PlanSummary>,
    /// `false` only if the plan is provably empty.
    pub has_changes: Option<bool>,
    /// What an approval binds to: send it back with the approval to be sure to approve what you saw.
    pub approval_digest: Option<Sha256Digest>,
    /// Who approved; `None` with `approved_at` set is Plumbline itself.
    pub approved_by: Option<UserId>,
    /// When it was approved.
    pub approved_at: Option<DateTime<Utc>>,
    /// What the approver said.
    pub approval_comment: Option<String>,
    /// Approve before this.
    pub plan_expires_at: Option<DateTime<Utc>>,
    /// The state version that was planned on.
    pub base_state_version_id: Option<StateVersionId>,
    /// Its serial.
    pub base_serial: Option<i64>,
    /// Whether somebody asked to cancel.
    pub cancel_requested: bool,
    /// As asked.
    pub auto_approve_if_no_changes: bool,
    /// As asked.
    pub auto_approve_skip_apply: bool,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When an executor first worked on it.
    pub started_at: Option<DateTime<Utc>>,
    /// When the plan was there.
    pub planned_at: Option<DateTime<Utc>>,
    /// When it ended. A plan-only run ends at `planned`.
    pub completed_at: Option<DateTime<Utc>>,
}

/// Which runs a list shows.
#[derive(Clone, Debug, Default)]
pub struct RunFilter {
    /// Of one workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// In one status.
    pub status: Option<RunStatus>,
    /// Of one command.
    pub command: Option<RunCommand>,
}

/// Which part of a run a step belongs to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepPhase {
    /// The plan executor.
    Plan,
    /// A person.
    Approval,
    /// The apply executor.
    Apply,
}

impl StepPhase {
    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Approval => "approval",
            Self::Apply => "apply",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Plan, Self::Approval, Self::Apply].into_iter().find(|phase| phase.as_str() == word)
    }
}

/// One step of a run.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Step {
    /// Its place, from 1.
    pub position: i16,
    /// Who does it.
    pub phase: StepPhase,
    /// Its name.
    pub name: String,
    /// The attempt that owns it now; 0 before the first.
    pub attempt: i32,
    /// Where it stands.
    pub status: StepStatus,
    /// A few facts for people.
    pub summary: Option<Value>,
    /// Length of its log in bytes.
    pub log_bytes: i64,
    /// Whether the log lacks its middle because it was too long.
    pub log_truncated: bool,
    /// When it began.
    pub started_at: Option<DateTime<Utc>>,
    /// When it ended.
    pub completed_at: Option<DateTime<Utc>>,
    /// Whole seconds between the two.
    pub duration_seconds: Option<i64>,
}

/// A piece of a step's log.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LogPage {
    /// The step.
    pub position: i16,
    /// Where `text` begins, in bytes of the log.
    pub offset: i64,
    /// Where to go on.
    pub next_offset: i64,
    /// The text. Bytes that are not UTF-8 are replaced.
    pub text: String,
    /// Whether nothing will ever follow `next_offset`.
    pub complete: bool,
}

/// What people call something that a run has produced: the kind of an artifact, or `log-` and the position of a step.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ArtifactName {
    /// Something that an executor uploaded.
    Kind(ArtifactKind),
    /// The log of the step at this position.
    Log(i16),
}

impl ArtifactName {
    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        let Some(position) = word.strip_prefix("log-") else {
            return ArtifactKind::parse(word).map(Self::Kind);
        };
        let plain = position.bytes().all(|byte| byte.is_ascii_digit()) && !position.starts_with('0');
        if plain { position.parse().ok().map(Self::Log) } else { None }
    }
}

impl std::fmt::Display for ArtifactName {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Kind(kind) => f.write_str(kind.as_str()),
            Self::Log(position) => write!(f, "log-{position}"),
        }
    }
}

impl Serialize for ArtifactName {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Something that a run has produced.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct ArtifactView {
    /// What it is: the kind of an artifact such as `plan_text`, or `log-5` for the log of the step at position 5.
    #[schema(value_type = String)]
    pub kind: ArtifactName,
    /// Length in bytes.
    pub size_bytes: i64,
    /// Digest; a log has none while it is not in the object store.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub sha256: Option<Sha256Digest>,
    /// When it was uploaded; of a log: when its step began.
    pub created_at: DateTime<Utc>,
}
