//! What an executor does at one step, over the real `callback`, and what is written down of it.

use http::{Method, StatusCode};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{Bundle, RunPhase};
use serde_json::{Value, json};

use super::actors::{Actor, Next};
use super::history::{Report, StateWrite};
use super::operations::Answer;
use super::world::World;
use crate::executors::{ADDS_ONE, FakeExecutor, nonce, trade};

const COMMIT: &str = "c0ffee0000000000000000000000000000000000";

impl<'p> World<'p> {
    /// One step of a living executor.
    pub async fn step(&self, actor: &mut Actor<'p>, answer: Answer) {
        if actor.next == Next::Nothing {
            return;
        }
        if actor.next == Next::Trade {
            return self.trade(actor, answer).await;
        }
        if actor.is_asked_to_stop || self.launcher.is_asked(&actor.handle) {
            return self.stop(actor).await;
        }
        if actor.next == Next::Write && actor.body.is_none() {
            actor.body = Some(next_state(actor.executor.as_ref().expect("it has traded")).await);
        }
        let statuses = match answer {
            Answer::Seen | Answer::Lost => vec![self.call(actor).await],
            Answer::Twice => {
                let (one, two) = tokio::join!(self.call(actor), self.call(actor));
                vec![one, two]
            }
        };
        let is_done = statuses.iter().any(StatusCode::is_success);
        if answer == Answer::Lost {
            return;
        }
        if is_done {
            actor.holds_lock = match actor.next {
                Next::Lock => true,
                Next::Unlock => false,
                _ => actor.holds_lock,
            };
            actor.next = actor.next.after(phase_of(actor));
        } else {
            actor.next = Next::Nothing;
        }
        if actor.next == Next::Nothing {
            self.end(actor);
        }
    }

    async fn trade(&self, actor: &mut Actor<'p>, answer: Answer) {
        let from = self.tick();
        let (status, bundle) = trade(self.plane, &actor.launch.ticket, &nonce(7)).await;
        self.report(actor, "trade", from, status);
        if answer == Answer::Lost {
            return;
        }
        if status != StatusCode::OK {
            return self.end(actor);
        }
        let bundle: Bundle = serde_json::from_value(bundle).unwrap();
        actor.next = Next::Trade.after(bundle.phase);
        actor.executor = Some(FakeExecutor::traded(self.plane, actor.launch.clone(), bundle));
    }

    /// Gives back what it holds, says that it was stopped, and ends.
    async fn stop(&self, actor: &mut Actor<'p>) {
        let executor = actor.executor.as_ref().expect("it has traded");
        if actor.holds_lock {
            executor.call(Method::DELETE, "state/lock", lock_info(executor)).await;
        }
        let from = self.tick();
        let (status, _) = executor.fail("cancelled", "it was asked to stop").await;
        self.report(actor, "fail", from, status);
        self.end(actor);
    }

    /// Another plan than the approved one must never be applied.
    pub async fn swap_plan(&self, actor: &mut Actor<'p>) {
        let Some(executor) = actor.executor.as_ref().filter(|_| actor.next == Next::Begin) else { return };
        let other = Sha256Digest::of(b"another plan");
        let from = self.tick();
        let (status, _) = executor.call(Method::POST, "apply/begin", json!({ "plan_sha256": other })).await;
        self.report(actor, "apply/begin", from, status);
        if status.is_success() {
            self.note(|history| history.begun_with.push((executor.bundle.run_id.0, other.0.to_vec())));
        }
        self.end(actor);
    }

    pub async fn fail(&self, actor: &mut Actor<'p>, is_transient: bool) {
        let Some(executor) = actor.executor.as_ref().filter(|_| actor.next != Next::Nothing) else { return };
        let kind = if is_transient { "transient" } else { "permanent" };
        let from = self.tick();
        let (status, _) = executor.fail(kind, "as the schedule wants").await;
        self.report(actor, "fail", from, status);
        self.end(actor);
    }

    pub async fn beat(&self, actor: &mut Actor<'p>) {
        let Some(executor) = actor.executor.as_ref().filter(|_| actor.next != Next::Nothing) else { return };
        let from = self.tick();
        let (status, answer) = executor.heartbeat().await;
        self.report(actor, "heartbeat", from, status);
        actor.is_asked_to_stop |= answer["cancel"] == "interrupt";
        // A fenced plan ends at once; a fenced apply delivers its state first.
        if !status.is_success() && !actor.holds_lock {
            self.end(actor);
        }
    }

    /// SIGKILL.
    pub fn kill(&self, actor: &mut Actor<'p>) {
        if actor.next == Next::Nothing {
            return;
        }
        if let Some(executor) = actor.executor.as_ref().filter(|it| it.bundle.phase == RunPhase::Apply) {
            self.note(|history| history.killed.push(executor.bundle.run_id.0));
        }
        self.end(actor);
    }

    fn end(&self, actor: &mut Actor<'p>) {
        actor.next = Next::Nothing;
        actor.holds_lock = false;
        self.launcher.end(&actor.handle);
    }

    fn report(&self, actor: &Actor<'p>, what: &str, from: u64, status: StatusCode) {
        let to = self.tick();
        let report = Report {
            task: actor.launch.task_id.0,
            lease_token: actor.launch.lease_token,
            what: what.to_owned(),
            from,
            to,
            is_accepted: status.is_success(),
        };
        self.note(|history| history.reports.push(report));
    }

    /// The call of the next step.
    async fn call(&self, actor: &Actor<'p>) -> StatusCode {
        let executor = actor.executor.as_ref().expect("it has traded");
        let from = self.tick();
        let status = match actor.next {
            Next::Clone => executor.step(1, json!({ "status": "succeeded", "commit": COMMIT })).await.0,
            Next::Version => {
                executor.step(3, json!({ "status": "succeeded", "tool_version": "1.11.4" })).await.0
            }
            Next::Plan => executor.step(5, json!({ "status": "running" })).await.0,
            Next::Upload => {
                let statuses = executor.upload_plan(ADDS_ONE).await;
                statuses.iter().find(|(_, status)| !status.is_success()).unwrap_or(&statuses[0]).1
            }
            Next::PlanDone => {
                let summary = plumbline_core::runs::summarise(ADDS_ONE.as_bytes()).ok();
                let status = executor.plan_done(ADDS_ONE, summary).await.0;
                self.told_once("run.planned", executor.bundle.run_id.0, status);
                status
            }
            Next::Begin => self.begin(executor).await,
            Next::Lock => executor.call(Method::POST, "state/lock", lock_info(executor)).await.0,
            Next::Write => self.write(actor, executor).await,
            Next::Unlock => executor.call(Method::DELETE, "state/lock", lock_info(executor)).await.0,
            Next::ApplyDone => executor.apply_done().await.0,
            Next::Trade | Next::Nothing => unreachable!("handled by the caller"),
        };
        if !actor.next.is_about_state() {
            self.report(actor, &format!("{:?}", actor.next), from, status);
        }
        status
    }

    async fn begin(&self, executor: &FakeExecutor<'p>) -> StatusCode {
        let (status, _) = executor.begin_apply().await;
        let run = executor.bundle.run_id.0;
        if status.is_success() {
            let sha256 = executor.bundle.plan.as_ref().expect("an apply has a plan").sha256;
            self.note(|history| history.begun_with.push((run, sha256.0.to_vec())));
        }
        self.told_once("run.apply_begin", run, status);
        status
    }

    async fn write(&self, actor: &Actor<'p>, executor: &FakeExecutor<'p>) -> StatusCode {
        let body = actor.body.clone().expect("it was made before");
        let path = format!("state?ID={}", executor.bundle.executor_id);
        let (status, _) = executor.call(Method::PUT, &path, body.clone()).await;
        let write = StateWrite {
            workspace: executor.bundle.workspace_id.0,
            sha256: Sha256Digest::of(&serde_json::to_vec(&body).unwrap()),
            holds_lock: actor.holds_lock,
            is_accepted: status.is_success(),
        };
        self.note(|history| history.writes.push(write));
        status
    }
}

fn phase_of(actor: &Actor<'_>) -> RunPhase {
    actor.executor.as_ref().map_or(RunPhase::Plan, |executor| executor.bundle.phase)
}

fn lock_info(executor: &FakeExecutor<'_>) -> Value {
    json!({ "ID": executor.bundle.executor_id, "Operation": "OperationTypeApply", "Info": "", "Who": "a schedule",
            "Version": "1.11.4", "Created": "2026-01-01T00:00:00Z", "Path": "" })
}

/// The state that follows on the one that is there.
async fn next_state(executor: &FakeExecutor<'_>) -> Value {
    let (_, head) = executor.call(Method::GET, "state", json!({})).await;
    let lineage =
        head["lineage"].as_str().map_or_else(|| executor.bundle.workspace_id.to_string(), str::to_owned);
    let serial = head["serial"].as_i64().unwrap_or(0) + 1;
    json!({ "version": 4, "terraform_version": "1.11.4", "serial": serial, "lineage": lineage,
            "outputs": { "writer": { "value": executor.bundle.executor_id, "type": "string" } },
            "resources": [], "check_results": null })
}
