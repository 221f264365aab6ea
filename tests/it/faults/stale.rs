//! Executors that sleep past their lease (SIGSTOP), are judged meanwhile, and wake up (SIGCONT).

use std::time::Duration;

use http::StatusCode;
use nix::sys::signal::{Signal, kill};
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use super::gate::{Hold, Side, Wanted};
use super::points::SLOW_STATE_READ;
use super::stage::{Attempt, Stage, pid_of};
use crate::plane::TestPlane;

const TICK: Duration = Duration::from_secs(45);
/// Short enough to be passed in a few ticks.
const WALL_CLOCK: Duration = Duration::from_secs(300);
/// A platform that cannot kill: the request to stop stays the only thing that reaches an executor.
const NEVER: Duration = Duration::from_secs(3600);

async fn stage() -> Stage {
    let limits = Limits {
        bcrypt_cost: 4,
        plan_wall_clock: WALL_CLOCK,
        apply_wall_clock: WALL_CLOCK,
        ..Limits::default()
    };
    let mut stage = Stage::on(TestPlane::start_with(limits, 8).await).await;
    stage.launcher = stage.launcher.clone().with_stop_grace(NEVER);
    stage
}

/// A plan whose terraform is at work and whose supervisor sleeps.
async fn sleeping_plan(stage: &Stage) -> (String, Attempt, Hold) {
    stage.let_go();
    let run = stage.trigger().await;
    let mut hold = stage.gate.arm(SLOW_STATE_READ);
    stage.work().await;
    hold.reached().await;
    let attempt = stage.newest_attempt(&run).await;
    stage.signal(&attempt, Signal::SIGSTOP).await;
    (run, attempt, hold)
}

/// A begun apply whose supervisor sleeps while a resource is made.
async fn sleeping_apply(stage: &Stage) -> (String, Attempt) {
    let run = stage.trigger().await;
    stage.drive(&run, "awaiting_approval").await;
    stage.approve(&run).await;
    stage.work().await;
    stage.second_begun().await;
    let attempt = stage.newest_attempt(&run).await;
    stage.signal(&attempt, Signal::SIGSTOP).await;
    (run, attempt)
}

async fn pass(stage: &Stage, time: Duration) {
    let mut passed = Duration::ZERO;
    while passed <= time {
        stage.plane.advance(TICK).await;
        stage.reconcile().await;
        passed += TICK;
    }
}

async fn phase(stage: &Stage) -> String {
    let conn = stage.plane.db().conn().await.unwrap();
    let row = conn.query_opt("SELECT coalesce(lease_phase, status) FROM tasks", &[]).await.unwrap();
    row.map_or_else(|| "none".into(), |row| row.get(0))
}

/// How often the control plane refused an executor's report because its lease was lost.
fn refused_reports(stage: &Stage) -> usize {
    let is_report = |name: &str| {
        ["/heartbeat", "/fail", "/complete"].iter().any(|end| name.ends_with(end)) || name.contains("/steps/")
    };
    let answers = stage.gate.answers();
    answers.iter().filter(|(name, status)| is_report(name) && *status == StatusCode::CONFLICT).count()
}

async fn until_gone(stage: &Stage, handle: &str) {
    let pid = pid_of(handle);
    stage.eventually("the stale executor has ended", async || kill(pid, None).is_err()).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_wakes_up_after_its_lease_was_given_away_gives_up() {
    let stage = stage().await;
    let (run, attempt, hold) = sleeping_plan(&stage).await;
    let handle = stage.handle_of(&attempt).await;
    pass(&stage, WALL_CLOCK).await;
    assert_ne!(stage.find_attempt(&run).await, Some(attempt.clone()), "given away");
    stage
        .eventually("the second attempt has planned", async || {
            stage.reconcile().await;
            stage.status(&run).await == "awaiting_approval"
        })
        .await;
    let planned = stage.run(&run).await;

    stage.signal(&attempt, Signal::SIGCONT).await;
    hold.release();
    until_gone(&stage, &handle).await;

    assert!(refused_reports(&stage) > 0, "{:?}", stage.gate.answers());
    assert_eq!(stage.run(&run).await["approval_digest"], planned["approval_digest"], "it changed nothing");
    assert_eq!(stage.attempts_of(&run, "run_plan").await, 2);
    stage.drive(&run, "applied").await;
    stage.check_all("a stale plan").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_the_sweep_stopped_is_tried_again_and_not_cancelled() {
    let stage = stage().await;
    let (run, attempt, hold) = sleeping_plan(&stage).await;
    let handle = stage.handle_of(&attempt).await;
    pass(&stage, Duration::from_secs(100)).await;
    assert_eq!(
        stage.find_attempt(&run).await,
        Some(attempt.clone()),
        "it may still act, so it is stopped first"
    );

    // The request to stop has waited for it.
    stage.signal(&attempt, Signal::SIGCONT).await;
    hold.release();
    until_gone(&stage, &handle).await;

    stage.drive(&run, "applied").await;
    assert_eq!(stage.attempts_of(&run, "run_plan").await, 2);
    stage.check_all("a plan that was stopped").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_wakes_up_within_its_wall_clock_goes_on() {
    let stage = stage().await;
    let (run, attempt) = sleeping_apply(&stage).await;
    pass(&stage, Duration::from_secs(100)).await;
    assert_eq!(phase(&stage).await, "unresponsive");
    assert_eq!(stage.status(&run).await, "applying", "nobody gave it up");

    stage.signal(&attempt, Signal::SIGCONT).await;
    stage.eventually("its heartbeat revives it", async || phase(&stage).await == "live").await;
    stage.let_go();
    stage.drive(&run, "applied").await;
    assert_eq!(stage.attempts_of(&run, "run_apply").await, 1);
    assert!(!stage.is_blocked().await);
    stage.check_all("an apply that slept").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_that_was_given_up_still_writes_its_state_under_its_own_lock() {
    let stage = stage().await;
    let (run, attempt) = sleeping_apply(&stage).await;
    let handle = stage.handle_of(&attempt).await;
    pass(&stage, WALL_CLOCK).await;
    is_lost(&stage, &run).await;
    let lock = stage.get(&format!("workspaces/{}/state-lock", stage.workspace)).await;
    assert_eq!(lock["held"], json!(true), "its executor is not known to have stopped: {lock}");

    stage.signal(&attempt, Signal::SIGCONT).await;
    stage.let_go();
    until_gone(&stage, &handle).await;

    assert!(refused_reports(&stage) > 0, "{:?}", stage.gate.answers());
    let versions = stage.get(&format!("workspaces/{}/state-versions", stage.workspace)).await;
    assert!(!versions["items"].as_array().unwrap().is_empty(), "the live holder's write is accepted");
    assert_eq!(quarantined(&stage).await, 0);
    is_lost(&stage, &run).await;
    stage.check_all("a stale apply with its lock").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_state_of_an_apply_that_lost_its_lock_is_quarantined() {
    let stage = stage().await;
    let (run, attempt) = sleeping_apply(&stage).await;
    let handle = stage.handle_of(&attempt).await;
    // A platform that says "stopped" of an executor that is only cut off: a process that never was is surely gone.
    let conn = stage.plane.db().conn().await.unwrap();
    conn.execute("UPDATE executors SET handle = '4194305:1' WHERE handle = $1", &[&handle]).await.unwrap();
    drop(conn);
    stage.reconcile().await;
    is_lost(&stage, &run).await;
    let lock = stage.get(&format!("workspaces/{}/state-lock", stage.workspace)).await;
    assert_eq!(lock["held"], json!(false), "{lock}");

    kill(pid_of(&handle), Signal::SIGCONT).unwrap();
    stage.let_go();
    until_gone(&stage, &handle).await;

    assert_eq!(quarantined(&stage).await, 1);
    let versions = stage.get(&format!("workspaces/{}/state-versions", stage.workspace)).await;
    assert_eq!(versions["items"], json!([]), "a late write is never the head");
    is_lost(&stage, &run).await;
    stage.check_all("a stale apply without its lock").await;
}

async fn is_lost(stage: &Stage, run: &str) {
    let ended = stage.run(run).await;
    assert_eq!((&ended["status"], &ended["status_reason"]), (&json!("failed"), &json!("lost")), "{ended}");
    assert!(stage.is_blocked().await);
}

async fn quarantined(stage: &Stage) -> usize {
    let page: Value = stage.get(&format!("workspaces/{}/quarantined-states", stage.workspace)).await;
    page["items"].as_array().unwrap().len()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_apply_that_is_killed_before_it_could_stop_is_lost() {
    let stage = Stage::start().await;
    let run = stage.trigger().await;
    stage.drive(&run, "awaiting_approval").await;
    stage.approve(&run).await;
    stage.work().await;
    stage.second_begun().await;
    let attempt = stage.newest_attempt(&run).await;
    let (status, answer) = stage.post(&format!("runs/{run}/cancel"), json!({})).await;
    assert!(status.is_success(), "{answer}");
    stage.kill(&attempt).await;
    stage.sweep_until_over(&run, &attempt).await;
    is_lost(&stage, &run).await;
    stage.check_all("a cancelled apply").await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_cancelled_plan_whose_executor_goes_silent_ends_as_cancelled() {
    let stage = Stage::start().await;
    for wanted in [SLOW_STATE_READ, Wanted { path_end: "/trade", method: "POST", ..BEFORE }] {
        let run = stage.trigger().await;
        let mut hold = stage.gate.arm(wanted);
        stage.work().await;
        hold.reached().await;
        let attempt = stage.newest_attempt(&run).await;
        // The request is on record, and nobody has ended the attempt yet.
        let conn = stage.plane.db().conn().await.unwrap();
        let ask = "WITH run AS (UPDATE runs SET cancel_requested_at = plumbline_now() WHERE id = $1)
                   UPDATE tasks SET cancel_requested_at = plumbline_now() WHERE subject_id = $1";
        conn.execute(ask, &[&run.parse::<uuid::Uuid>().unwrap()]).await.unwrap();
        drop(conn);
        stage.kill(&attempt).await;
        stage.sweep_until_over(&run, &attempt).await;
        let ended = stage.run(&run).await;
        assert_eq!((&ended["status"], &ended["status_reason"]), (&json!("cancelled"), &json!("cancelled")));
        assert!(!stage.is_blocked().await);
        stage.check_all("a cancelled plan").await;
    }
}

const BEFORE: Wanted = Wanted { method: "GET", path_end: "", step_status: None, side: Side::Before };
