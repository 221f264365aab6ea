//! The apply phase: applies exactly the approved plan, with the state written through `callback`.

use std::sync::Arc;

use plumbline_core::protocol::{ApplyBegun, ApplyDone, ArtifactKind, TouchedResource};
use plumbline_state_proxy::{Backing, Child, Delivery, Live, StateProxy, Upstream};
use reqwest::Method;
use serde_json::{Value, json};

use crate::apply_log::ApplyLog;
use crate::child::Output;
use crate::error::StepError;
use crate::logs::Log;
use crate::session::Session;
use crate::terraform::{self, LOCK_FILE, Terraform};
use crate::touched;
use crate::uploads::{download, upload};

const PLAN_NAME: &str = "tfplan";
/// A step's summary has room for these.
const TOUCHED_BYTES_MAX: usize = 3 << 10;

/// What an apply left behind, also when it fails.
#[derive(Debug, Default)]
pub(crate) struct Left {
    /// What it touched.
    pub(crate) touched: Vec<TouchedResource>,
    /// Whether the stored state tells all of it.
    pub(crate) is_state_whole: bool,
}

/// Runs all steps and reports the apply.
pub(crate) async fn run(session: &Session, left: &mut Left) -> Result<(), StepError> {
    let upstream: Arc<dyn Upstream> = Arc::new(session.callback.clone());
    let delivery = Delivery::start(Arc::clone(&upstream), &session.layout.ours);
    let live = Live { upstream, delivery, child: Child::Run, unlock_patience: None };
    let proxy = terraform::start_proxy(session, Backing::Live(live)).await?;
    let terraform = session
        .step("Prepare Apply", async |log, report| {
            terraform::tell(&proxy, log);
            let (terraform, commit) = prepare(session, &proxy, log).await?;
            report.commit = Some(commit);
            report.tool = Some(terraform.name());
            report.tool_version = Some(terraform.version());
            Ok(terraform)
        })
        .await?;
    let summary = session
        .step("Terraform Apply", async |log, report| {
            terraform::tell(&proxy, log);
            let applied = apply(session, &terraform, &proxy, log, left).await;
            report.summary = match &applied {
                Ok(summary) => summary.clone(),
                Err(_) => Some(summarise_touched(&left.touched)),
            };
            applied
        })
        .await?;
    let shown = session
        .step("Terraform Output", async |log, _| {
            terraform::tell(&proxy, log);
            outputs(session, &terraform, &proxy, log).await
        })
        .await;
    match shown {
        Err(fenced @ StepError::Fenced(_)) => return Err(fenced),
        // Everything is applied; a cancel that came too late, or outputs that cannot be read, do not undo it.
        Err(error) => tracing::warn!(%error, "the outputs were not kept"),
        Ok(()) => {}
    }
    session.callback.tell(Method::POST, "apply/complete", &ApplyDone { summary }).await
}

async fn prepare<'a>(
    session: &'a Session,
    proxy: &StateProxy,
    log: &Log,
) -> Result<(Terraform<'a>, String), StepError> {
    let reference = session
        .bundle
        .plan
        .as_ref()
        .ok_or_else(|| StepError::Permanent("there is no plan to apply".into()))?;
    let (directory, commit) = terraform::clone(session, log).await?;
    let configuration = terraform::load_configuration(&directory, log)?;
    let failed = || StepError::machine("the approved files cannot be put in place");
    if let Some(sha256) = reference.lock_file_sha256 {
        let ours = session.layout.ours.join("approved.lock.hcl");
        download(&session.callback, ArtifactKind::LockFile, &ours, sha256).await?;
        let path = directory.join(LOCK_FILE);
        if std::fs::symlink_metadata(&path).is_ok() {
            std::fs::remove_file(&path).map_err(failed())?;
        }
        std::fs::copy(&ours, &path).map_err(failed())?;
    }
    terraform::hand_over(session, &directory)?;
    let terraform = Terraform::choose(session, log, directory, configuration.as_ref()).await?;
    terraform.init(log, proxy).await?;
    let plan = session.layout.given.join(PLAN_NAME);
    download(&session.callback, ArtifactKind::PlanFile, &plan, reference.sha256).await?;
    session.isolation.share(&plan).map_err(failed())?;
    Ok((terraform, commit))
}

async fn apply(
    session: &Session,
    terraform: &Terraform<'_>,
    proxy: &StateProxy,
    log: &Log,
    left: &mut Left,
) -> Result<Option<Value>, StepError> {
    let reference = session
        .bundle
        .plan
        .as_ref()
        .ok_or_else(|| StepError::Permanent("there is no plan to apply".into()))?;
    // From here on the attempt is never repeated.
    let begun = ApplyBegun { plan_sha256: reference.sha256 };
    session.callback.tell(Method::POST, "apply/begin", &begun).await?;
    let plan = session.layout.given.join(PLAN_NAME).to_string_lossy().into_owned();
    let (news, told) = touched::start(session.callback.clone());
    let mut reader = ApplyLog::telling(news, Arc::clone(&session.secrets));
    let mut show = |bytes: &[u8]| log.write(bytes);
    let ended = {
        let mut read = |bytes: &[u8]| reader.push(bytes, &mut show);
        terraform
            .with_credentials(
                log,
                Output::Reader(&mut read),
                &["apply", "-input=false", "-json", &plan],
                proxy,
            )
            .await
    };
    reader.finish(&mut show);
    let summary;
    (left.touched, summary) = reader.into_facts();
    // Also when the child was lost: what it has written must arrive.
    let delivered = proxy.close().await;
    if told.await.is_err() {
        tracing::error!("the task that tells what is touched crashed");
    }
    let ended = ended?;
    let is_success = ended.code == Some(0);
    // 1 is an orderly failure, also after an interrupt. A crash or a kill ends it with something else.
    // A plan that names another backend is applied past the state that we keep.
    let went_past_us = !proxy.was_locked() && (is_success || !left.touched.is_empty());
    left.is_state_whole =
        matches!(ended.code, Some(0 | 1)) && !ended.was_killed && delivered.is_ok() && !went_past_us;
    if !is_success || delivered.is_err() {
        save_errored_state(session, terraform, log).await;
    }
    ended.check_stopped(is_success)?;
    if !is_success {
        return Err(StepError::Permanent(format!("terraform apply {}", ended.describe())));
    }
    delivered.map_err(StepError::Permanent)?;
    if went_past_us {
        return Err(StepError::Permanent(
            "terraform applied the plan without the state of this workspace: the plan names another backend"
                .into(),
        ));
    }
    Ok(summary)
}

/// What a failed apply touched, for the people who look at the step.
fn summarise_touched(touched: &[TouchedResource]) -> Value {
    let mut room = TOUCHED_BYTES_MAX;
    let shown: Vec<&TouchedResource> = touched
        .iter()
        .take_while(|one| {
            let bytes = json!(one).to_string().len() + 1;
            room = room.saturating_sub(bytes);
            room > 0
        })
        .collect();
    json!({ "touched": shown, "touched_not_shown": touched.len() - shown.len() })
}

async fn save_errored_state(session: &Session, terraform: &Terraform<'_>, log: &Log) {
    match terraform::upload_left(session, ArtifactKind::ErroredState, &terraform.path("errored.tfstate"))
        .await
    {
        Ok(None) => {}
        Ok(Some(_)) => {
            log.line("plumbline: terraform could not write its state; errored.tfstate is kept with the run")
        }
        Err(error) => log.line(&format!("plumbline: errored.tfstate could not be kept: {error}")),
    }
}

async fn outputs(
    session: &Session,
    terraform: &Terraform<'_>,
    proxy: &StateProxy,
    log: &Log,
) -> Result<(), StepError> {
    let path = session.layout.ours.join("outputs.json");
    let file = std::fs::File::create(&path).map_err(StepError::machine("no file for the outputs"))?;
    let ended =
        terraform.with_proxy(log, Output::File(file), &["output", "-no-color", "-json"], proxy).await?;
    ended.check_stopped(false)?;
    if ended.code != Some(0) {
        return Err(StepError::Permanent(format!("terraform output {}", ended.describe())));
    }
    upload(&session.callback, ArtifactKind::Outputs, &path).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_step_names_as_many_touched_resources_as_it_has_room_for() {
        let touched: Vec<TouchedResource> = (0..200)
            .map(|number| TouchedResource {
                address: format!("terraform_data.number[{number}]"),
                action: "create".into(),
                id: Some("x".repeat(40)),
            })
            .collect();
        let summary = summarise_touched(&touched);
        let shown = summary["touched"].as_array().unwrap().len();
        assert!(shown > 10 && summary.to_string().len() < 4 << 10, "{shown}");
        assert_eq!(summary["touched_not_shown"], 200 - shown);
        assert_eq!(summarise_touched(&touched[..2])["touched_not_shown"], 0);
    }
}
