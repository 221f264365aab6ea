//! The trade: a one-time ticket for everything an attempt needs.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

use super::{AwsCredentials, ClusterAccess, IdentityProof, TokenFile};
use crate::digest::Sha256Digest;
use crate::git_credentials::GitSecret;
use crate::ids::{ExecutorId, RunId, StateVersionId, TaskId, WorkspaceId};

/// `POST /executor/v1/trade`. Unknown fields are let through: an executor of a later protocol is to hear that it is one.
#[derive(Clone, Serialize, Deserialize)]
pub struct TradeRequest {
    /// The protocol that the executor speaks.
    pub protocol: u32,
    /// From the launch parameters.
    pub ticket: String,
    /// 32 random bytes in hex, made by the executor and kept in memory: the same ticket with the same nonce is the
    /// same trade; with another it is refused.
    pub nonce: String,
    /// Who the executor is. On ECS there is no bundle without it; elsewhere nobody looks at it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub identity: Option<IdentityProof>,
}

impl std::fmt::Debug for TradeRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("TradeRequest").field("protocol", &self.protocol).finish_non_exhaustive()
    }
}

/// Everything an attempt needs. Answer to the trade; never written to disk or log.
#[derive(Clone, Serialize, Deserialize)]
pub struct Bundle {
    /// The protocol of this answer.
    pub protocol: u32,
    /// Authorises every later call, for this attempt only.
    pub token: String,
    /// What the child reads the shared outputs of other workspaces with; of the loopback backend it is the password, too,
    /// because Terraform knows one for all.
    #[serde(default)]
    pub run_password: String,
    /// The attempt.
    pub executor_id: ExecutorId,
    /// The queue row.
    pub task_id: TaskId,
    /// The run.
    pub run_id: RunId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Plan or apply.
    pub phase: RunPhase,
    /// What the run is for.
    pub command: RunCommand,
    /// Which attempt this is, from 1.
    pub attempt: i32,
    /// How to stay alive.
    pub lease: LeaseTerms,
    /// What to clone.
    pub source: Source,
    /// Terraform or OpenTofu, and which version.
    pub tool: Tool,
    /// Values of the root module's variables.
    pub variables: Vec<Variable>,
    /// More environment for the child in plan and apply: cloud credentials.
    pub environment: BTreeMap<String, String>,
    /// How plan and apply get into AWS.
    #[serde(default)]
    pub aws: Option<AwsCredentials>,
    /// How they get into a cluster.
    #[serde(default)]
    pub cluster: Option<ClusterAccess>,
    /// Tokens of the installation's own issuer for plan and apply.
    #[serde(default)]
    pub token_files: Vec<TokenFile>,
    /// What no log may show, beside secret variables and what the credentials hold by their names.
    #[serde(default)]
    pub secrets: Vec<String>,
    /// The steps of this phase, in order.
    pub steps: Vec<StepSpec>,
    /// The state that a plan reads; `None` before the first apply.
    pub state: Option<PinnedState>,
    /// What an apply applies; `None` in a plan.
    pub plan: Option<PlanReference>,
    /// The address of this workspace's state as the child may name it, for display only.
    pub log_bytes_max: u64,
    /// W3C traceparent of the request that asked for the run.
    pub traceparent: Option<String>,
}

impl std::fmt::Debug for Bundle {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bundle")
            .field("run_id", &self.run_id)
            .field("phase", &self.phase)
            .field("attempt", &self.attempt)
            .finish_non_exhaustive()
    }
}

/// Which half of a run an executor does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunPhase {
    /// Reads only.
    Plan,
    /// Changes things.
    Apply,
}

/// What a run is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunCommand {
    /// Only look.
    Plan,
    /// Plan, then apply once approved.
    Apply,
    /// Plan the destruction of everything, then apply it once approved.
    Destroy,
}

impl RunCommand {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Destroy => "destroy",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Plan, Self::Apply, Self::Destroy].into_iter().find(|command| command.as_str() == word)
    }

    /// Whether the run may end in an apply, and so must own its workspace.
    pub fn mutates(self) -> bool {
        !matches!(self, Self::Plan)
    }
}

/// How an executor stays alive. Durations, never deadlines: the database's clock decides.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub struct LeaseTerms {
    /// How long the claim holds without a heartbeat.
    pub lease_seconds: u64,
    /// How often to report.
    pub heartbeat_seconds: u64,
    /// After this long the attempt is over.
    pub wall_clock_seconds: u64,
}

/// What to clone.
#[derive(Clone, Serialize, Deserialize)]
pub struct Source {
    /// http, https, ssh, or a local path under the emulator's root.
    pub repo_url: String,
    /// The branch; used while `commit` is not pinned.
    pub branch: String,
    /// Pinned by the first clone: plan retries and apply use exactly this commit.
    pub commit: Option<String>,
    /// Relative to the repository's root; `.` is the root.
    pub working_dir: String,
    /// What lets git in at the repository's host: for the supervisor's git, and for modules while init runs.
    #[serde(default)]
    pub credentials: Vec<GitCredential>,
    /// Whether hosts may have private addresses: on one machine.
    #[serde(default)]
    pub allow_private_addresses: bool,
}

/// How to authenticate with one host. Reaches git through private files and init's environment, never through argv or
/// the URL.
#[derive(Clone, Serialize, Deserialize)]
pub struct GitCredential {
    /// The only host that it is sent to, with its port unless that is the usual one.
    pub host: String,
    /// Repositories below this path; the longest that fits wins.
    pub path_prefix: String,
    /// What lets git in.
    pub secret: GitSecret,
}

/// The program that plans and applies.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tool {
    /// `terraform` or `tofu`.
    pub name: String,
    /// Exact version; `None` is the newest found that is at least 1.10.
    pub version: Option<String>,
    /// Whether `version` was pinned by the plan: then the repository's own configuration no longer decides.
    pub pinned: bool,
}

/// One Terraform variable.
#[derive(Clone, Serialize, Deserialize)]
pub struct Variable {
    /// The name without `TF_VAR_`.
    pub key: String,
    /// Exactly what Terraform is to see, or an expression.
    pub value: String,
    /// Whether its value is kept out of logs.
    pub is_secret: bool,
    /// Whether the value is an HCL expression.
    #[serde(default)]
    pub is_hcl: bool,
}

/// One step of the phase.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct StepSpec {
    /// Its place in the run.
    pub position: i16,
    /// Its name, as people see it.
    pub name: String,
}

/// The state version that a plan reads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PinnedState {
    /// The version.
    pub version_id: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// Its length in bytes.
    pub size_bytes: i64,
    /// Its digest; the executor checks what it downloads.
    pub sha256: Sha256Digest,
}

/// The plan that was approved.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct PlanReference {
    /// Digest of the plan file.
    pub sha256: Sha256Digest,
    /// Digest of `.terraform.lock.hcl` as it was after the plan's init; `None` if there was none.
    pub lock_file_sha256: Option<Sha256Digest>,
}
