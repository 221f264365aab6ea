//! Decisions about runs.

use super::{EndReason, PlanSummary, RunStatus, StepPhase};
use crate::digest::Sha256Digest;

/// The steps of a Terraform run, in order. Executor, API and CLI all read this table; a step's position is its place
/// here, from 1.
const STEPS: &[(StepPhase, &str)] = &[
    (StepPhase::Plan, "Git Clone"),
    (StepPhase::Plan, "Load Configuration"),
    (StepPhase::Plan, "Set Version"),
    (StepPhase::Plan, "Terraform Init"),
    (StepPhase::Plan, PLAN_STEP),
    (StepPhase::Plan, "Derive Plan"),
    (StepPhase::Approval, "Awaiting Approval"),
    (StepPhase::Apply, "Prepare Apply"),
    (StepPhase::Apply, "Terraform Apply"),
    (StepPhase::Apply, "Terraform Output"),
];

/// The step that makes a run `planning`.
const PLAN_STEP: &str = "Terraform Plan";

/// Whether the step at this position is the one that makes a run `planning`.
pub(super) fn is_plan_step(position: i16) -> bool {
    steps_of(true).iter().any(|(at, _, name)| *at == position && *name == PLAN_STEP)
}

/// The steps of a run: position, phase, name. A plan-only run has the plan's steps.
pub fn steps_of(mutates: bool) -> Vec<(i16, StepPhase, &'static str)> {
    STEPS
        .iter()
        .zip(1i16..)
        .filter(|((phase, _), _)| mutates || *phase == StepPhase::Plan)
        .map(|((phase, name), position)| (position, *phase, *name))
        .collect()
}

/// What keeps a workspace from taking a run that waits for it.
pub(super) enum Hold {
    /// A lost apply, for this reason.
    Blocked(String),
    /// A person, for this reason.
    Locked {
        /// What they are called.
        who: String,
        /// In their words.
        reason: String,
    },
    /// Another run.
    Run,
}

/// Why a run waits, for people.
pub(super) fn waiting_reason(position: i64, hold: Hold) -> String {
    let holder = match hold {
        Hold::Blocked(reason) => format!("the workspace is blocked ({reason})"),
        Hold::Locked { who, reason } => format!("the workspace is locked by {who} ({reason})"),
        Hold::Run => "another run holds the workspace".to_owned(),
    };
    match position {
        1 => holder,
        2 => format!("{holder}, and one more waits before this one"),
        n => format!("{holder}, and {} more wait before this one", n - 1),
    }
}

/// Longest comment or reason, in characters.
const WORDS_CHARS_MAX: usize = 1_000;

/// Refuses a person's words that are too long for the history.
pub(super) fn fits_history(words: Option<&str>) -> Result<(), &'static str> {
    match words {
        Some(words) if words.chars().count() > WORDS_CHARS_MAX => Err("at most 1,000 characters"),
        _ => Ok(()),
    }
}

/// The longest summary for people that a row may hold, in bytes of JSON.
const SUMMARY_BYTES_MAX: usize = 4 << 10;

/// Whether a summary for people may be stored.
pub(super) fn fits_a_row(summary: &serde_json::Value) -> bool {
    summary.to_string().len() <= SUMMARY_BYTES_MAX
}

/// How a run ends whose task ended without a report of its executor. A begun apply is lost, asked to stop or not: nobody
/// knows what it left behind. Otherwise nothing was changed, and who asked to cancel gets what they asked for.
pub(super) fn end_without_report(
    from: RunStatus,
    apply_begun: bool,
    cancel_requested: bool,
) -> (RunStatus, EndReason) {
    match (apply_begun, cancel_requested) {
        (true, _) | (false, false) => (RunStatus::Failed, EndReason::Lost),
        (false, true) => (cancelled_from(from), EndReason::Cancelled),
    }
}

/// Where a cancelled run goes whose apply has not begun.
pub(super) fn cancelled_from(from: RunStatus) -> RunStatus {
    if from.may_become(RunStatus::Cancelled) { RunStatus::Cancelled } else { RunStatus::Failed }
}

/// Whether a plan changes anything. Only a readable, error-free plan without any kind of change has none.
pub fn has_changes(summary: Option<&PlanSummary>) -> bool {
    let Some(plan) = summary else { return true };
    let changes = [
        plan.add,
        plan.change,
        plan.destroy,
        plan.replace,
        plan.import,
        plan.moved,
        plan.forget,
        plan.outputs,
        plan.deferred,
        plan.unknown,
    ];
    plan.errored || !plan.complete || changes.iter().any(|count| *count > 0)
}

/// Everything that is shown to an approver and must not change before the apply.
#[derive(Clone, Debug)]
pub struct ApprovalFacts<'a> {
    /// Digest of the plan file.
    pub plan_sha256: Sha256Digest,
    /// Digest of the plan as JSON.
    pub plan_json_sha256: Sha256Digest,
    /// Digest of the gates' results; `None` while there are no gates.
    pub gates_sha256: Option<Sha256Digest>,
    /// Digest of the dependency lock file.
    pub lock_file_sha256: Option<Sha256Digest>,
    /// The pinned commit.
    pub commit_sha: &'a str,
    /// The pinned tool; `None` for one that was not reported.
    pub tool: Option<&'a str>,
    /// Its version.
    pub tool_version: &'a str,
    /// The state that was planned on.
    pub base: Option<(&'a str, i64)>,
}

/// The one digest that an approval stores. Each field is written with its name and length, so no two different sets
/// of facts give the same bytes.
pub fn approval_digest(facts: &ApprovalFacts<'_>) -> Sha256Digest {
    let optional =
        |digest: Option<Sha256Digest>| digest.map_or_else(String::new, |digest| digest.to_string());
    let fields = [
        ("plan", facts.plan_sha256.to_string()),
        ("plan_json", facts.plan_json_sha256.to_string()),
        ("gates", optional(facts.gates_sha256)),
        ("lock_file", optional(facts.lock_file_sha256)),
        ("commit", facts.commit_sha.to_owned()),
        ("tool", facts.tool.unwrap_or_default().to_owned()),
        ("tool_version", facts.tool_version.to_owned()),
        ("lineage", facts.base.map_or_else(String::new, |(lineage, _)| lineage.to_owned())),
        ("serial", facts.base.map_or_else(String::new, |(_, serial)| serial.to_string())),
    ];
    let mut bytes = b"plumbline-approval-v1\n".to_vec();
    for (name, value) in fields {
        bytes.extend_from_slice(format!("{name}:{}:{value}\n", value.len()).as_bytes());
    }
    Sha256Digest::of(&bytes)
}
