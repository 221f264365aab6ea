//! SIGKILL of the executor and of the worker at each named point, sweeps, and what became of the run.

use serde_json::json;

use super::points::{Becomes, POINTS, Phase, Point, Stop, Victim};
use super::sql_barrier::SqlBarrier;
use super::stage::{Attempt, Stage};
use super::worker_program::WorkerProgram;

/// A run that is about to launch the point's phase.
async fn run_before(stage: &Stage, phase: Phase) -> String {
    let run = stage.trigger().await;
    if phase == Phase::Apply {
        stage.drive(&run, "awaiting_approval").await;
        stage.approve(&run).await;
    }
    run
}

/// Brings the run to the point, kills the victim there, and returns the attempt that was hit.
async fn kill_at(stage: &Stage, run: &str, point: &Point) -> Attempt {
    match (point.victim, point.stop) {
        (Victim::Executor, Stop::Request(wanted)) => {
            let mut hold = stage.gate.arm(wanted);
            stage.work().await;
            hold.reached().await;
            // What is held after it was served may have ended the attempt.
            let attempt = stage.newest_attempt(run).await;
            stage.kill(&attempt).await;
            attempt
        }
        (Victim::Executor, Stop::SecondResource) => {
            stage.work().await;
            stage.second_begun().await;
            let attempt = stage.newest_attempt(run).await;
            stage.kill(&attempt).await;
            attempt
        }
        (Victim::Worker, Stop::Statement(statement)) => {
            let barrier = SqlBarrier::raise(&stage.plane.database_url, statement).await;
            let worker = WorkerProgram::start(stage).await;
            barrier.reached().await;
            worker.kill();
            barrier.lift().await;
            stage.find_attempt(run).await.expect("it was claimed")
        }
        (victim, stop) => panic!("{victim:?} does not come by {stop:?}"),
    }
}

/// The whole: kill, sweep, look at the run, and finish it as a person would.
async fn strike(point: &Point) {
    let stage = Stage::start().await;
    let is_made_later = matches!(point.stop, Stop::SecondResource);
    if !is_made_later {
        stage.let_go();
    }
    let run = run_before(&stage, point.phase).await;
    let attempt = kill_at(&stage, &run, point).await;
    let goes_on_alone = point.victim == Victim::Worker && point.becomes == Becomes::GoesOn;
    if !goes_on_alone {
        stage.sweep_until_over(&run, &attempt).await;
    }
    stage.check_counters(point.name).await;
    stage.let_go();
    if point.becomes == Becomes::LostAndBlocked {
        is_lost_and_can_be_resolved(&stage, &run, point).await;
    } else {
        stage.drive(&run, "applied").await;
        assert!(!stage.is_blocked().await, "{}", point.name);
        let kind = if point.phase == Phase::Plan { "run_plan" } else { "run_apply" };
        let expected = if point.becomes == Becomes::TriedAgain { 2 } else { 1 };
        assert_eq!(stage.attempts_of(&run, kind).await, expected, "{}: attempts", point.name);
    }
    stage.check_all(point.name).await;
}

async fn is_lost_and_can_be_resolved(stage: &Stage, run: &str, point: &Point) {
    let ended = stage.run(run).await;
    assert_eq!(
        (&ended["status"], &ended["status_reason"]),
        (&json!("failed"), &json!("lost")),
        "{}",
        point.name
    );
    assert_eq!(
        stage.attempts_of(run, "run_apply").await,
        1,
        "{}: a begun apply is never repeated",
        point.name
    );
    assert!(stage.is_blocked().await, "{}", point.name);
    stage.check_all(point.name).await;
    let path = format!("workspaces/{}/unblock", stage.workspace);
    let (status, answer) = stage.post(&path, json!({ "note": "looked at it" })).await;
    assert!(status.is_success(), "{answer}");
    let next = stage.trigger().await;
    stage.drive(&next, "applied").await;
}

#[expect(clippy::print_stdout, reason = "the last line names the point at which a test failed")]
async fn strike_all(victim: Victim, phase: Phase, becomes: &[Becomes]) {
    let fits =
        |point: &&Point| point.victim == victim && point.phase == phase && becomes.contains(&point.becomes);
    let points: Vec<&Point> = POINTS.iter().filter(fits).collect();
    assert!(!points.is_empty());
    for point in points {
        println!("{}: {}", point.name, point.becomes.words());
        strike(point).await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_worker_killed_around_the_launch_loses_no_run() {
    strike_all(Victim::Worker, Phase::Plan, &[Becomes::GivenBack, Becomes::GoesOn]).await;
    strike_all(Victim::Worker, Phase::Apply, &[Becomes::GivenBack, Becomes::GoesOn]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_killed_before_its_trade_does_not_burn_an_attempt() {
    strike_all(Victim::Executor, Phase::Plan, &[Becomes::GivenBack]).await;
    strike_all(Victim::Executor, Phase::Apply, &[Becomes::GivenBack]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_killed_anywhere_before_its_report_is_tried_again() {
    strike_all(Victim::Executor, Phase::Plan, &[Becomes::TriedAgain]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_killed_before_it_began_is_tried_again() {
    strike_all(Victim::Executor, Phase::Apply, &[Becomes::TriedAgain]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_killed_after_it_began_is_lost_and_blocks_its_workspace() {
    strike_all(Victim::Executor, Phase::Apply, &[Becomes::LostAndBlocked]).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_executor_killed_after_its_last_report_changes_nothing() {
    strike_all(Victim::Executor, Phase::Plan, &[Becomes::GoesOn]).await;
    strike_all(Victim::Executor, Phase::Apply, &[Becomes::GoesOn]).await;
}
