//! The plan phase: reads a pinned state, changes nothing, ends in a plan whose digests the approval binds.

use std::path::Path;

use plumbline_core::protocol::{ArtifactKind, PlanDone, RunCommand};
use plumbline_core::runs::redaction::redact_plan;
use plumbline_core::runs::{PlanSummary, summarise};
use plumbline_state_proxy::{Backing, Digests, ReadError, StateProxy, digests};
use reqwest::Method;
use serde_json::{Value, json};

use crate::child::Output;
use crate::error::StepError;
use crate::files::{copy_left_by_child, read_left_by_child};
use crate::isolation::Isolation;
use crate::logs::Log;
use crate::session::Session;
use crate::terraform::{self, LOCK_FILE, Terraform};
use crate::uploads::upload;

/// `-detailed-exitcode`: nothing to do, or something.
const PLANNED: [Option<i32>; 2] = [Some(0), Some(2)];
const LOCK_FILE_BYTES_MAX: u64 = 1 << 20;
const PLAN_NAME: &str = "tfplan";

/// Runs all steps and reports the plan.
pub(crate) async fn run(session: &Session) -> Result<(), StepError> {
    let directory = session
        .step("Git Clone", async |log, report| {
            let (directory, commit) = terraform::clone(session, log).await?;
            report.commit = Some(commit);
            Ok(directory)
        })
        .await?;
    let configuration = session
        .step("Load Configuration", async |log, _| terraform::load_configuration(&directory, log))
        .await?;
    let terraform = session
        .step("Set Version", async |log, report| {
            if session.isolation == Isolation::Off {
                log.line("Isolation is off: terraform runs as the executor's own user");
            } else if !session.isolation.can_close_network() {
                log.line("The network stays open while the plan is shown: to close it takes CAP_SYS_ADMIN");
            }
            terraform::hand_over(session, &directory)?;
            let terraform = Terraform::choose(session, log, directory, configuration.as_ref()).await?;
            report.tool = Some(terraform.name());
            report.tool_version = Some(terraform.version());
            Ok(terraform)
        })
        .await?;
    let (proxy, lock_file) = session
        .step("Terraform Init", async |log, _| {
            let proxy = terraform::start_proxy(session, pinned_state(session).await?).await?;
            terraform::tell(&proxy, log);
            terraform.init(log, &proxy).await?;
            // Before any provider has run: what providers are checked against.
            let lock_file = read_lock_file(&terraform)?;
            Ok((proxy, lock_file))
        })
        .await?;
    session
        .step("Terraform Plan", async |log, report| {
            terraform::tell(&proxy, log);
            let findings = plan(session, &terraform, &proxy, log).await?;
            if !findings.is_empty() {
                report.summary = Some(json!({ "findings": findings }));
            }
            Ok(())
        })
        .await?;
    let done = session
        .step("Derive Plan", async |log, _| {
            if read_lock_file(&terraform)? != lock_file {
                return Err(StepError::Permanent(format!(
                    "{LOCK_FILE} changed while planning; the plan is not trusted"
                )));
            }
            derive(session, &terraform, lock_file.as_deref(), log).await
        })
        .await?;
    session.callback.tell(Method::POST, "plan/complete", &done).await
}

async fn pinned_state(session: &Session) -> Result<Backing, StepError> {
    let Some(pinned) = &session.bundle.state else { return Ok(Backing::Pinned(None)) };
    let path = session.layout.ours.join("pinned-state.json");
    if !plumbline_state_proxy::download(&session.callback, &path).await.map_err(unread)? {
        return Err(StepError::Transient("the state that the plan is made on is not there".into()));
    }
    let found = digests(&path).map_err(StepError::machine("the state cannot be read"))?;
    if found.sha256 != pinned.sha256 {
        // It moved since the attempt began; the next attempt is pinned to what is there then.
        return Err(StepError::Transient("the state is not the version that the plan is made on".into()));
    }
    Ok(Backing::Pinned(Some(path)))
}

fn unread(error: ReadError) -> StepError {
    match error {
        ReadError::Refused(_) => StepError::Permanent(error.to_string()),
        ReadError::Passing(_) => StepError::Transient(error.to_string()),
    }
}

fn read_lock_file(terraform: &Terraform<'_>) -> Result<Option<Vec<u8>>, StepError> {
    read_left_by_child(&terraform.path(LOCK_FILE), LOCK_FILE_BYTES_MAX)
        .map_err(|error| StepError::Permanent(format!("{LOCK_FILE} cannot be read: {error}")))
}

async fn plan(
    session: &Session,
    terraform: &Terraform<'_>,
    proxy: &StateProxy,
    log: &Log,
) -> Result<Vec<String>, StepError> {
    let out = format!("-out={}", session.layout.made.join(PLAN_NAME).display());
    let mut args = vec!["plan", "-input=false", "-no-color", "-detailed-exitcode", &out];
    if session.bundle.command == RunCommand::Destroy {
        args.push("-destroy");
    }
    let ended = terraform.with_credentials(log, Output::Log, &args, proxy).await?;
    terraform::explain_unshared(&ended, log);
    ended.check_stopped(false)?;
    if !PLANNED.contains(&ended.code) {
        return Err(StepError::Permanent(format!("terraform plan {}", ended.describe())));
    }
    let mut findings = proxy.findings();
    if !ended.leftovers.is_empty() {
        findings.push(format!("processes outlived the plan and were killed: {}", ended.leftovers.join(", ")));
    }
    Ok(findings)
}

/// The child is gone. What it left as the plan is copied to where nobody else writes; digest, JSON and text are of
/// that copy.
async fn derive(
    session: &Session,
    terraform: &Terraform<'_>,
    lock_file: Option<&[u8]>,
    log: &Log,
) -> Result<PlanDone, StepError> {
    let layout = &session.layout;
    let plan = layout.given.join(PLAN_NAME);
    let copied = copy_left_by_child(&layout.made.join(PLAN_NAME), &plan);
    if !copied.map_err(|error| StepError::Permanent(format!("the plan file cannot be read: {error}")))? {
        return Err(StepError::Permanent("terraform left no plan file".into()));
    }
    session.isolation.share(&plan).map_err(StepError::machine("the plan cannot be shared"))?;
    let name = plan.to_string_lossy().into_owned();
    let at = |name: &str| layout.ours.join(name);
    terraform.derive(log, &["show", "-json", &name], &at("plan.json")).await?;
    terraform.derive(log, &["show", "-no-color", &name], &at("plan.raw.txt")).await?;
    let summary = redact_files(
        session,
        &at("plan.json"),
        &at("plan.redacted.json"),
        &at("plan.raw.txt"),
        &at("plan.txt"),
    )?;

    let callback = &session.callback;
    let plan_file = upload(callback, ArtifactKind::PlanFile, &plan).await?;
    let plan_json = upload(callback, ArtifactKind::PlanJson, &at("plan.json")).await?;
    upload(callback, ArtifactKind::PlanJsonRedacted, &at("plan.redacted.json")).await?;
    upload(callback, ArtifactKind::PlanText, &at("plan.txt")).await?;
    let lock_file = upload_lock_file(session, lock_file).await?;
    log.line(&format!("Plan sha256 {}", plan_file.sha256));
    Ok(PlanDone {
        plan_sha256: plan_file.sha256,
        plan_json_sha256: plan_json.sha256,
        lock_file_sha256: lock_file.map(|found| found.sha256),
        base_lineage: session.bundle.state.as_ref().map(|state| state.lineage.clone()),
        base_serial: session.bundle.state.as_ref().map(|state| state.serial),
        summary,
    })
}

/// What was read before any provider ran: `show` runs providers too, and they could change the file once more.
async fn upload_lock_file(session: &Session, lock_file: Option<&[u8]>) -> Result<Option<Digests>, StepError> {
    let Some(bytes) = lock_file else { return Ok(None) };
    let path = session.layout.ours.join("planned.lock.hcl");
    std::fs::write(&path, bytes).map_err(StepError::machine("no file for the lock file"))?;
    upload(&session.callback, ArtifactKind::LockFile, &path).await.map(Some)
}

/// Also counts the changes.
fn redact_files(
    session: &Session,
    json: &Path,
    json_to: &Path,
    text: &Path,
    text_to: &Path,
) -> Result<Option<PlanSummary>, StepError> {
    let failed = || StepError::machine("the plan cannot be redacted");
    let bytes = std::fs::read(json).map_err(failed())?;
    let mut plan: Value = serde_json::from_slice(&bytes)
        .map_err(|error| StepError::Permanent(format!("terraform show -json gave no JSON: {error}")))?;
    let secret: Vec<&str> = session
        .bundle
        .variables
        .iter()
        .filter(|variable| variable.is_secret)
        .map(|v| v.key.as_str())
        .collect();
    redact_plan(&mut plan, &secret);
    std::fs::write(json_to, session.secrets.redact(plan.to_string().as_bytes())).map_err(failed())?;
    let shown = std::fs::read(text).map_err(failed())?;
    std::fs::write(text_to, session.secrets.redact(&shown)).map_err(failed())?;
    Ok(summarise(&bytes).ok())
}
