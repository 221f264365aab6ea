//! What the queued tasks of runs do: an attempt begins when its executor trades its ticket, and ends by a report or
//! as a dead letter.

use serde_json::json;

use super::ending::{self, Ending};
use super::store::{self, StoredRun};
use super::{RunError, RunStatus, StepPhase, rules, variables};
use crate::Deps;
use crate::access::{Actor, Scope};
use crate::audit::{self, Action, Entry};
use crate::cloud_accounts::UsedCredential;
use crate::cloud_accounts::credentials::{self, Asked, Granted};
use crate::db::{DbError, Query, Tx};
use crate::git_credentials::uses::Opened;
use crate::git_credentials::{self, GitCredentialError};
use crate::ids::{IdSource, RunId};
use crate::protocol::{PinnedState, PlanReference, RunPhase, StepSpec, Variable};
use crate::tasks::{ClaimedTask, TaskKind};
use crate::workspaces::{self, Workspace};
use crate::{protocol, tfstates};

/// What an attempt works with: everything of the bundle that belongs to the run.
pub struct Attempt {
    /// The run's workspace.
    pub workspace: Workspace,
    /// What the run is for.
    pub command: protocol::RunCommand,
    /// What to clone.
    pub source: protocol::Source,
    /// What lets git in there, to be recorded as handed out.
    pub git_credentials: Vec<Opened>,
    /// The tool.
    pub tool: protocol::Tool,
    /// Variables in the clear.
    pub variables: Vec<Variable>,
    /// The phase's steps.
    pub steps: Vec<StepSpec>,
    /// The state that a plan reads.
    pub state: Option<PinnedState>,
    /// What an apply applies.
    pub plan: Option<PlanReference>,
    /// Cloud credentials of the phase.
    pub granted: Granted,
}

/// The phase that a kind of task does.
pub fn phase_of(kind: TaskKind) -> Option<RunPhase> {
    match kind {
        TaskKind::RunPlan => Some(RunPhase::Plan),
        TaskKind::RunApply => Some(RunPhase::Apply),
        TaskKind::RepositoryDiscover
        | TaskKind::WorkspaceBranches
        | TaskKind::WorkspaceImport
        | TaskKind::GitCredentialTest
        | TaskKind::AwsAccountTest
        | TaskKind::AzureSubscriptionTest
        | TaskKind::GcpProjectTest
        | TaskKind::ClusterTest
        | TaskKind::SlackTest
        | TaskKind::InfracostTest
        | TaskKind::IssuerKeys
        | TaskKind::StateIndex => None,
    }
}

/// The run that a task is about, if it is about one.
pub fn run_of(kind: TaskKind, subject: uuid::Uuid) -> Option<RunId> {
    phase_of(kind).map(|_| RunId(subject))
}

/// Begins an attempt: resets the phase's steps, moves a pending run to running, pins the state of a plan. Refuses a
/// run that has ended or was cancelled.
pub async fn begin_attempt(
    tx: &Tx<'_>,
    deps: &Deps,
    id: RunId,
    phase: RunPhase,
    attempt: i32,
) -> Result<Attempt, RunError> {
    let run = store::lock(tx, None, id).await?.ok_or(RunError::NotFound("run"))?;
    let fits = match phase {
        RunPhase::Plan => {
            matches!(run.run.status, RunStatus::Pending | RunStatus::Running | RunStatus::Planning)
        }
        RunPhase::Apply => run.run.status == RunStatus::Applying && run.apply_begun_at.is_none(),
    };
    // One that waits again has lost its task to a lock of its workspace.
    if !fits || run.run.cancel_requested || run.run.waiting.is_some() {
        return Err(RunError::LeaseLost);
    }
    let workspace = workspaces::service::find(tx, Scope::All, run.run.workspace_id)
        .await?
        .ok_or(RunError::NotFound("workspace"))?;
    let state = match phase {
        RunPhase::Plan => pin_state(tx, &run).await?,
        RunPhase::Apply => None,
    };
    if run.run.status == RunStatus::Pending {
        store::advance(tx, id, RunStatus::Running).await?;
    }
    reset_steps(tx, id, step_phase(phase), attempt).await?;
    let (unit, repo_url) = (run.run.business_unit_id, &workspace.repo_url);
    let git_credentials =
        git_credentials::uses::find_for_run(tx, deps, unit, repo_url).await.map_err(unopened)?;
    let asked = Asked { workspace: &workspace, run_id: id, phase };
    let granted = credentials::for_attempt(tx, deps, asked).await?;
    let earlier = run.run.credentials.iter().filter(|one| one.phase != phase);
    let used: Vec<UsedCredential> = earlier.chain(&granted.used).cloned().collect();
    if used != run.run.credentials {
        store::set_credentials(tx, id, &used).await?;
    }
    Ok(Attempt {
        granted,
        command: run.run.command,
        source: source(deps, &workspace, &run, &git_credentials),
        git_credentials,
        tool: tool(&workspace, &run),
        variables: variables::for_attempt(tx, deps, &run).await?,
        steps: steps(phase, run.run.command.mutates()),
        state,
        plan: match phase {
            RunPhase::Plan => None,
            RunPhase::Apply => Some(PlanReference {
                sha256: run.plan_sha256.ok_or(RunError::NotFound("plan"))?,
                lock_file_sha256: run.lock_file_sha256,
            }),
        },
        workspace,
    })
}

/// Records which secrets an attempt was handed, if any: last in its transaction, for it locks the audit chain.
pub async fn record_secrets(
    tx: &Tx<'_>,
    id: RunId,
    phase: RunPhase,
    number: i32,
    attempt: &Attempt,
) -> Result<(), RunError> {
    let secrets: Vec<&str> =
        attempt.variables.iter().filter(|one| one.is_secret).map(|one| one.key.as_str()).collect();
    if secrets.is_empty() {
        return Ok(());
    }
    let entry = Entry {
        business_unit_id: Some(attempt.workspace.business_unit_id),
        actor: Actor::System,
        action: Action::RunSecretsUse,
        resource_type: "run",
        resource_id: id.to_string(),
        workspace_id: Some(attempt.workspace.id),
        run_id: Some(id),
        details: json!({"phase": phase, "attempt": number, "variables": secrets}),
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}

/// The steps' word for a phase.
pub(super) fn step_phase(phase: RunPhase) -> StepPhase {
    match phase {
        RunPhase::Plan => StepPhase::Plan,
        RunPhase::Apply => StepPhase::Apply,
    }
}

async fn pin_state(tx: &Tx<'_>, run: &StoredRun) -> Result<Option<PinnedState>, RunError> {
    let head = tfstates::service::find_head(tx, run.run.workspace_id).await?;
    let lineage = head.as_ref().map(|head| head.lineage.as_str());
    let serial = head.as_ref().map(|head| head.serial);
    store::set_base(tx, run.run.id, head.as_ref().map(|head| head.version_id), lineage, serial).await?;
    Ok(head.map(|head| PinnedState {
        version_id: head.version_id,
        serial: head.serial,
        lineage: head.lineage,
        size_bytes: head.size_bytes,
        sha256: head.sha256,
    }))
}

const RESET_STEPS: &str = "
    UPDATE run_steps
    SET status = 'pending', attempt = $3, summary = NULL, log_bytes = 0, log_truncated = false, log_blob_id = NULL,
        started_at = NULL, completed_at = NULL
    WHERE run_id = $1 AND phase = $2";

async fn reset_steps(query: &impl Query, run: RunId, phase: StepPhase, attempt: i32) -> Result<(), RunError> {
    query.execute(RESET_STEPS, &[&run, &phase.as_str(), &attempt]).await?;
    Ok(())
}

fn source(
    deps: &Deps,
    workspace: &Workspace,
    run: &StoredRun,
    git_credentials: &[Opened],
) -> protocol::Source {
    protocol::Source {
        repo_url: workspace.repo_url.clone(),
        branch: run.run.branch.clone(),
        commit: run.run.commit_sha.clone(),
        working_dir: workspace.tf_working_dir.clone(),
        credentials: git_credentials.iter().cloned().map(Into::into).collect(),
        allow_private_addresses: deps.allow_private_addresses,
    }
}

/// Why a run gets no Git credential that its unit has.
fn unopened(error: GitCredentialError) -> RunError {
    match error {
        GitCredentialError::Db(error) => error.into(),
        GitCredentialError::Seal(error) => error.into(),
        other => RunError::Db(DbError::Row(other.to_string())),
    }
}

fn tool(workspace: &Workspace, run: &StoredRun) -> protocol::Tool {
    let pinned = run.run.tool_version.is_some();
    protocol::Tool {
        name: run.run.tool.clone().unwrap_or_else(|| workspace.tool.to_string()),
        version: run.run.tool_version.clone().or_else(|| workspace.tool_version.clone()),
        pinned,
    }
}

fn steps(phase: RunPhase, mutates: bool) -> Vec<StepSpec> {
    let wanted = step_phase(phase);
    rules::steps_of(mutates)
        .into_iter()
        .filter(|(_, phase, _)| *phase == wanted)
        .map(|(position, _, name)| StepSpec { position, name: name.to_owned() })
        .collect()
}

/// The task of a run spent its attempts or was lost: the run fails, or is cancelled if somebody had asked for that. If
/// its apply had begun, nobody knows what was changed, so the workspace is blocked until a person has looked.
pub async fn dead_lettered(
    tx: &Tx<'_>,
    ids: IdSource,
    task: &ClaimedTask,
    error: &str,
) -> Result<(), RunError> {
    let id = RunId(task.subject_id);
    let Some(peek) = store::find(tx, None, id).await? else { return Ok(()) };
    workspaces::service::lock(tx, Scope::All, peek.run.workspace_id).await?;
    let Some(run) = store::lock(tx, None, id).await? else { return Ok(()) };
    if run.run.completed_at.is_some() {
        return Ok(());
    }
    let begun = task.kind == TaskKind::RunApply && run.apply_begun_at.is_some();
    if begun {
        block(tx, &run, error).await?;
    }
    let (to, reason) = rules::end_without_report(run.run.status, begun, run.run.cancel_requested);
    let ending =
        Ending { to, reason: Some(reason), error: Some(error), actor: Actor::System, action: Action::RunEnd };
    ending::end(tx, ids, &run, &ending).await
}

/// Locks a run and its workspace, in this order: before its task is locked.
pub async fn lock_subject(tx: &Tx<'_>, id: RunId) -> Result<(), DbError> {
    if let Some(peek) = store::find(tx, None, id).await? {
        workspaces::service::lock(tx, Scope::All, peek.run.workspace_id).await?;
        store::lock(tx, None, id).await?;
    }
    Ok(())
}

/// Blocks the workspace of a run whose apply ended without proof of what it left behind.
pub(super) async fn block(tx: &Tx<'_>, run: &StoredRun, reason: &str) -> Result<(), RunError> {
    workspaces::service::block(tx, run.run.workspace_id, run.run.id, reason).await?;
    let entry = Entry {
        business_unit_id: Some(run.run.business_unit_id),
        actor: Actor::System,
        action: Action::WorkspaceBlock,
        resource_type: "workspace",
        resource_id: run.run.workspace_id.to_string(),
        workspace_id: Some(run.run.workspace_id),
        run_id: Some(run.run.id),
        details: json!({"reason": reason}),
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}
