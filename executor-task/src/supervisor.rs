//! One attempt from the trade to its last report.

use std::sync::Arc;
use std::time::Duration;

use plumbline_core::protocol::{AttemptFailed, CancelMode, LeaseTerms, RunPhase, VERSION};
use reqwest::Method;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::watch;

use crate::callback::{Callback, HeartbeatError, trade};
use crate::credentials::Cloud;
use crate::error::StepError;
use crate::git_access::GitAccess;
use crate::isolation::Isolation;
use crate::session::{Layout, Session, Stop, StopSignal, secrets_of};
use crate::settings::Settings;
use crate::{apply, plan};

/// How long a fresh executor tries to reach `callback`. Longer than a launch that was not recorded takes until a sweep
/// has found it, which is two minutes.
const TRADE_PATIENCE: Duration = Duration::from_secs(300);
const ERROR_CHARS_MAX: usize = 2000;

/// How the attempt ended, as an exit code for whoever reads the platform's log.
pub(crate) enum Outcome {
    /// Everything was reported.
    Reported,
    /// It could not begin or not report.
    Lost,
    /// It owns nothing any more and has said nothing.
    Fenced,
}

impl From<Outcome> for std::process::ExitCode {
    fn from(outcome: Outcome) -> Self {
        match outcome {
            Outcome::Reported => Self::SUCCESS,
            Outcome::Lost => Self::FAILURE,
            Outcome::Fenced => Self::from(3),
        }
    }
}

/// Runs the attempt.
pub(crate) async fn run(settings: Settings) -> Outcome {
    let (callback, bundle) = match trade(&settings, TRADE_PATIENCE).await {
        Ok(traded) => traded,
        Err(error) => {
            tracing::error!(%error, task.id = %settings.task_id, "the ticket could not be traded");
            return if error.kind().is_none() { Outcome::Fenced } else { Outcome::Lost };
        }
    };
    tracing::info!(run.id = %bundle.run_id, task.id = %bundle.task_id, phase = ?bundle.phase, attempt = bundle.attempt, "attempt begun");
    let (stop_sender, stop) = StopSignal::new(settings.grace, bundle.phase);
    let beating = tokio::spawn(beat(callback.clone(), bundle.lease, stop_sender));
    let isolation = Isolation::choose(bundle.run_id, settings.isolate);
    let mut left = apply::Left::default();
    let result = async {
        if bundle.protocol != VERSION || bundle.task_id != settings.task_id {
            return Err(StepError::Permanent("the bundle is not for this executor".into()));
        }
        let layout = Layout::make(settings.work_dir.as_deref(), isolation)
            .map_err(StepError::machine("no working directory"))?;
        let git_access = GitAccess::open(&bundle.source).await;
        let cloud = Cloud::prepare(&settings, &callback, &bundle).await?;
        let session = Session {
            secrets: Arc::new(secrets_of(&bundle, &git_access, &cloud)),
            git_access,
            cloud,
            callback: callback.clone(),
            layout,
            isolation,
            stop,
            settings,
            bundle,
        };
        match session.bundle.phase {
            RunPhase::Plan => Box::pin(plan::run(&session)).await,
            RunPhase::Apply => Box::pin(apply::run(&session, &mut left)).await,
        }
    }
    .await;
    let outcome = finish(&callback, result, left).await;
    beating.abort();
    outcome
}

async fn finish(callback: &Callback, result: Result<(), StepError>, left: apply::Left) -> Outcome {
    let Err(error) = result else {
        tracing::info!("attempt done");
        return Outcome::Reported;
    };
    tracing::warn!(%error, "attempt failed");
    let Some(kind) = error.kind() else { return Outcome::Fenced };
    let text = error.to_string().chars().take(ERROR_CHARS_MAX).collect();
    let failed = AttemptFailed { kind, error: text, is_state_whole: left.is_state_whole };
    match callback.tell(Method::POST, "fail", &failed).await {
        Ok(()) => Outcome::Reported,
        Err(StepError::Fenced(_)) => Outcome::Fenced,
        Err(_) => Outcome::Lost,
    }
}

/// Renews the lease and passes on every reason to stop. An outage is none.
async fn beat(callback: Callback, lease: LeaseTerms, stop: watch::Sender<Option<Stop>>) {
    let say = |reason: Stop| {
        stop.send_if_modified(|current| {
            // Fencing is stronger than a cancel: nothing may be reported after it.
            let is_news = current.is_none() || (reason == Stop::Fenced && *current != Some(Stop::Fenced));
            if is_news {
                *current = Some(reason);
            }
            is_news
        })
    };
    let every = Duration::from_secs(lease.heartbeat_seconds.max(1));
    let mut ticks = tokio::time::interval(every);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    let over = tokio::time::sleep(Duration::from_secs(lease.wall_clock_seconds));
    tokio::pin!(over);
    let (Ok(mut terminate), Ok(mut interrupt)) =
        (signal(SignalKind::terminate()), signal(SignalKind::interrupt()))
    else {
        tracing::error!("signals cannot be received");
        return;
    };
    let mut is_over = false;
    loop {
        tokio::select! {
            _ = ticks.tick() => match callback.heartbeat(every).await {
                Ok(answer) if answer.cancel == CancelMode::Interrupt => { say(Stop::Cancelled); }
                Ok(_) => {}
                Err(HeartbeatError::Fenced) => { say(Stop::Fenced); }
                Err(HeartbeatError::Away(reason)) => tracing::warn!(reason, "no heartbeat; going on"),
            },
            () = &mut over, if !is_over => {
                is_over = true;
                say(Stop::TimedOut(lease.wall_clock_seconds));
            }
            _ = terminate.recv() => { say(Stop::Cancelled); }
            _ = interrupt.recv() => { say(Stop::Cancelled); }
        }
    }
}
