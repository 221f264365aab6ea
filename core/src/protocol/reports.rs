//! What an executor reports, asks and uploads after the trade. Paths are relative to `/executor/v1`. Fields that
//! `callback` does not know are refused; in answers they are ignored.

use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::Presigned;
use crate::digest::Sha256Digest;
use crate::ids::StateUploadId;
use crate::runs::PlanSummary;

/// `POST heartbeat` (empty body) answers this.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeartbeatAnswer {
    /// The renewed lease.
    pub lease_seconds: u64,
    /// Whether to stop.
    pub cancel: CancelMode,
}

/// Whether an executor should stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum CancelMode {
    /// Go on.
    No,
    /// Interrupt the child, wait for it, report `cancelled`.
    Interrupt,
}

/// The state of one step.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StepStatus {
    /// Not begun.
    Pending,
    /// Under way.
    Running,
    /// Done.
    Succeeded,
    /// Did not work.
    Failed,
    /// Not needed.
    Skipped,
}

impl StepStatus {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Succeeded => "succeeded",
            Self::Failed => "failed",
            Self::Skipped => "skipped",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Pending, Self::Running, Self::Succeeded, Self::Failed, Self::Skipped]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// `PUT steps/{position}`. Steps only go forward; repeating a report is fine.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StepReport {
    /// Where the step stands now.
    pub status: StepStatus,
    /// A few facts for people, at most 4 KiB.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub summary: Option<Value>,
    /// Facts learned by the step that pin the run: the clone reports `commit`, the tool step `tool` and its version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub commit: Option<String>,
    /// The tool that will plan: `terraform` or `tofu`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool: Option<String>,
    /// Its exact version.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_version: Option<String>,
}

/// `PUT steps/{position}/log?offset=N` with raw bytes answers this. A repeated chunk is accepted once; a gap is 409
/// with the offset that is expected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct LogAnswer {
    /// Where the next chunk begins.
    pub next_offset: u64,
}

/// What can be uploaded.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(rename_all = "snake_case")]
pub enum ArtifactKind {
    /// The binary plan; only apply phases read it.
    PlanFile,
    /// The plan as Terraform prints it.
    PlanText,
    /// The plan as JSON, unredacted.
    PlanJson,
    /// The plan as JSON without sensitive values.
    PlanJsonRedacted,
    /// `.terraform.lock.hcl`.
    LockFile,
    /// `terraform output -json`.
    Outputs,
    /// The state that Terraform could not write.
    ErroredState,
}

impl ArtifactKind {
    /// Every kind.
    pub const ALL: [Self; 7] = [
        Self::PlanFile,
        Self::PlanText,
        Self::PlanJson,
        Self::PlanJsonRedacted,
        Self::LockFile,
        Self::Outputs,
        Self::ErroredState,
    ];

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::PlanFile => "plan_file",
            Self::PlanText => "plan_text",
            Self::PlanJson => "plan_json",
            Self::PlanJsonRedacted => "plan_json_redacted",
            Self::LockFile => "lock_file",
            Self::Outputs => "outputs",
            Self::ErroredState => "errored_state",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.as_str() == word)
    }
}

/// `POST artifacts`: asks for a URL. Each kind once per attempt; the same request again gives a fresh URL, another
/// digest is 409. Then the bytes go to the URL, then `POST artifacts/{kind}/commit` (empty body).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct UploadBegin {
    /// What it is.
    pub kind: ArtifactKind,
    /// Length in bytes.
    pub size_bytes: u64,
    /// Digest.
    pub sha256: Sha256Digest,
}

/// Where to send the bytes. `GET artifacts/plan_file` and `GET artifacts/lock_file` in an apply answer the same.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct UploadAnswer {
    /// The signed request.
    pub request: Presigned,
}

/// `POST plan/complete`. The one report that ends a plan attempt: it writes plan, gates and the next status. The
/// artifacts `plan_file`, `plan_text`, `plan_json`, `plan_json_redacted` must be committed before.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PlanDone {
    /// Digest of the plan file, taken by the supervisor after the child was gone.
    pub plan_sha256: Sha256Digest,
    /// Digest of the unredacted JSON that the supervisor derived from it.
    pub plan_json_sha256: Sha256Digest,
    /// Digest of `.terraform.lock.hcl`, if there is one.
    pub lock_file_sha256: Option<Sha256Digest>,
    /// Lineage that the plan was made on, from the pinned state; `None` without state.
    pub base_lineage: Option<String>,
    /// Serial that the plan was made on.
    pub base_serial: Option<i64>,
    /// Counts that the supervisor took from the JSON. Absent if it could not read it: then the plan counts as one
    /// with changes.
    #[serde(default)]
    pub summary: Option<PlanSummary>,
}

/// `POST apply/begin`: asks to start changing things. Checks the approval and that the state has not
/// moved; 409 `stale-plan` ends the attempt. From here on the attempt is never repeated.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyBegun {
    /// The digest that was approved, once more.
    pub plan_sha256: Sha256Digest,
}

/// `POST apply/complete`: the child has ended with success and all state writes are committed.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ApplyDone {
    /// Counts from `terraform apply -json`, for people; left out if they are longer than 4 KiB.
    #[serde(default)]
    pub summary: Option<Value>,
}

/// `POST fail`: the attempt did not work.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct AttemptFailed {
    /// What kind of failure.
    pub kind: FailureKind,
    /// One sentence for a tired person, at most 2,000 characters.
    pub error: String,
    /// Whether the state tells everything that a begun apply did: terraform ended by itself, and all that it wrote is
    /// stored. Anything else means that nobody knows what exists.
    #[serde(default)]
    pub is_state_whole: bool,
}

/// `POST apply/touched`: what a begun apply does to its resources, told while it does.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TouchedReport {
    /// At most [`Self::RESOURCES_MAX`]; of two with one address the later counts.
    pub resources: Vec<TouchedResource>,
}

impl TouchedReport {
    /// Resources in one report.
    pub const RESOURCES_MAX: usize = 500;
}

/// A resource that an apply touched, as `terraform apply -json` reports it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct TouchedResource {
    /// Terraform address.
    pub address: String,
    /// `create`, `update`, `delete`, …
    pub action: String,
    /// The id that the provider gave, if the log had one.
    pub id: Option<String>,
}

impl TouchedResource {
    /// Whether an address, an action or an id can be told: at most 2,000 characters, and no NUL.
    pub fn can_tell(text: &str) -> bool {
        text.chars().count() <= 2_000 && !text.contains('\0')
    }
}

/// What kind of failure an attempt reports.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum FailureKind {
    /// Trying again will give the same: a failing configuration, a refused plan.
    Permanent,
    /// Trying again may work: network, registry, full disk.
    Transient,
    /// The attempt stopped because it was told to.
    Cancelled,
    /// The attempt ran out of its wall-clock time.
    TimedOut,
}

/// `POST state/uploads`: a state body of any size on its way. Then the bytes go to the URL, then
/// `POST state/uploads/{id}/commit`.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StateUploadBegin {
    /// The lock that the writer holds; none where a person writes while nobody holds it.
    #[serde(default)]
    pub lock_id: Option<String>,
    /// From the body.
    pub serial: i64,
    /// From the body.
    pub lineage: String,
    /// Length in bytes.
    pub size_bytes: u64,
    /// MD5 in hex.
    pub md5: String,
    /// SHA-256.
    pub sha256: Sha256Digest,
    /// From the body.
    #[serde(default)]
    pub terraform_version: Option<String>,
}

/// Where the state goes.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct StateUploadAnswer {
    /// Names the upload in the commit.
    pub upload_id: StateUploadId,
    /// The signed request.
    pub request: Presigned,
}

/// What became of an upload.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum StateUploadCommit {
    /// It is the head now (or already was).
    Accepted,
    /// Its lock was lost: kept in quarantine.
    Quarantined,
}
