//! The worker and the reconciler around the queue.

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use plumbline_core::Deps;
use plumbline_core::limits::Limits;
use plumbline_core::ports::{LaunchError, Waker};
use plumbline_core::tasks::{ClaimedTask, FailedAttempt, NOT_BEGUN_DELAY, TaskKind};
use plumbline_runtime::Function;
use plumbline_worker::{Outbound, Worked};
use serde_json::{Value, json};

use super::desk::{cheap_limits, enqueue_one, unit, units};
use super::fake_launcher::FakeLauncher;
use crate::plane::TestPlane;

/// Answers every short task the same way.
struct Canned(Result<Value, FailedAttempt>);

#[async_trait]
impl Outbound for Canned {
    async fn handle(&self, _deps: &Deps, _task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        self.0.clone()
    }
}

fn fine() -> Canned {
    Canned(Ok(json!({"branches": ["main"]})))
}

/// Remembers the delays it was asked for.
#[derive(Debug, Default)]
struct Recorder(Mutex<Vec<Duration>>);

#[async_trait]
impl Waker for Recorder {
    async fn wake(&self, delay: Duration) {
        self.0.lock().unwrap().push(delay);
    }
}

#[tokio::test]
async fn executors_are_launched_and_short_tasks_are_run_to_their_result() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;

    let worked =
        plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine()).await.unwrap();

    assert_eq!(worked, Worked { launched: 1, short_tasks: 1 });
    assert_eq!(plane.text("SELECT handle FROM executors").await.as_deref(), Some("handle-1"));
    let result = plane.text("SELECT result::text FROM finished_tasks WHERE outcome = 'done'").await;
    assert_eq!(result.as_deref(), Some(r#"{"branches": ["main"]}"#));
}

#[tokio::test]
async fn a_result_that_no_row_should_hold_is_not_kept_and_lists_hold_no_results() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let blue = plane.unit("blue").await;
    let admin = plane.member(blue, plumbline_core::access::Role::Admin).await;
    let deps = plane.as_function(Function::Worker);
    let huge = Canned(Ok(json!({ "branches": vec!["x".repeat(1000); 300] })));
    for (answer, outcome) in [(&huge, "dead"), (&fine(), "done")] {
        let id = enqueue_one(plane.db(), TaskKind::WorkspaceBranches, blue).await;
        plumbline_worker::handle(&deps, &launcher, answer).await.unwrap();
        let (_, _, task) = plane.call("GET", &format!("/api/v1/tasks/{id}"), &*admin, None).await;
        assert_eq!(
            (&task["status"], task["result"].is_null()),
            (&json!(outcome), outcome == "dead"),
            "{task}"
        );
        let said = task["last_error"].as_str().unwrap_or_default();
        assert_eq!(said.contains("too large"), outcome == "dead", "{task}");
    }
    let (_, _, page) = plane.call("GET", "/api/v1/tasks", &*admin, None).await;
    let items = page["items"].as_array().unwrap();
    assert!(items.len() == 2 && items.iter().all(|task| task["result"].is_null()), "{page}");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn every_wake_up_sent_three_times_launches_each_attempt_once() {
    let plane = TestPlane::start_with(Limits { launches_per_second: 1e6, ..cheap_limits() }, 8).await;
    let launcher = FakeLauncher::default();
    for unit in units(plane.db(), 3).await {
        for _ in 0..5 {
            enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
        }
    }
    let outbound = fine();
    let deps = plane.as_function(Function::Worker);
    let workers = (0..3).map(|_| plumbline_worker::handle(&deps, &launcher, &outbound));
    let worked = futures::future::try_join_all(workers).await.unwrap();
    assert_eq!(worked.iter().map(|worked| worked.launched).sum::<usize>(), 15);
    assert_eq!(launcher.launches(), 15);
}

#[tokio::test]
async fn a_throttled_launch_gives_the_attempt_back_and_wakes_up_later() {
    let mut plane = TestPlane::start().await;
    let wakes = std::sync::Arc::new(Recorder::default());
    plane.deps.waker = wakes.clone();
    let launcher = FakeLauncher::default();
    launcher.refuse_next(LaunchError::Throttled("slow down".into()));
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;

    let worked =
        plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine()).await.unwrap();

    assert_eq!(worked.launched, 0);
    assert_eq!(plane.count("SELECT attempts::int8 FROM tasks WHERE status = 'queued'").await, 0);
    let delays = wakes.0.lock().unwrap().clone();
    assert!(delays.iter().all(|delay| *delay >= Duration::from_secs(1)), "{delays:?}");
    assert!(!delays.is_empty());

    plane.advance(Duration::from_secs(10)).await;
    assert_eq!(
        plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine())
            .await
            .unwrap()
            .launched,
        1
    );
}

#[tokio::test]
async fn a_short_task_that_was_not_begun_waits_and_has_lost_no_attempt() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let busy = Canned(Err(FailedAttempt::NotBegun("busy".into())));
    for _ in 0..5 {
        plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &busy).await.unwrap();
        assert_eq!(plane.count("SELECT attempts::int8 FROM tasks WHERE status = 'queued'").await, 0);
        plane.advance(NOT_BEGUN_DELAY).await;
    }
    plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine()).await.unwrap();
    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("done"));
}

#[tokio::test]
async fn a_launch_that_can_never_work_is_a_dead_letter_and_one_that_may_is_retried() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    launcher.refuse_next(LaunchError::Unavailable("no room".into()));
    plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine()).await.unwrap();
    assert_eq!(plane.count("SELECT attempts::int8 FROM tasks WHERE status = 'queued'").await, 1);

    plane.advance(plane.deps.limits.backoff_max).await;
    launcher.refuse_next(LaunchError::Refused("no such cluster".into()));
    plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &fine()).await.unwrap();
    assert_eq!(plane.text("SELECT last_error FROM finished_tasks").await.as_deref(), Some("no such cluster"));
}

#[tokio::test]
async fn a_short_task_that_fails_is_retried_and_keeps_its_last_error() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let broken = Canned(Err(FailedAttempt::Retry("the forge is away".into())));
    for _ in 0..2 {
        plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &broken).await.unwrap();
        plane.advance(plane.deps.limits.backoff_max).await;
    }
    let dead = plane.text("SELECT outcome || ': ' || last_error FROM finished_tasks").await;
    assert_eq!(dead.as_deref(), Some("dead: the forge is away"));
}

/// Crashes on its first task, then works.
#[derive(Default)]
struct CrashesOnce(AtomicUsize);

#[async_trait]
impl Outbound for CrashesOnce {
    async fn handle(&self, _deps: &Deps, _task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        assert!(self.0.fetch_add(1, Ordering::SeqCst) > 0, "a defect");
        Ok(json!({}))
    }
}

#[tokio::test]
async fn a_handler_that_crashes_takes_nobody_with_it() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..3 {
        enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    }
    let outbound = CrashesOnce::default();
    plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &outbound).await.unwrap();
    plane.advance(plane.deps.limits.backoff_max).await;
    plumbline_worker::handle(&plane.as_function(Function::Worker), &launcher, &outbound).await.unwrap();
    assert_eq!(plane.count("SELECT count(*) FROM finished_tasks WHERE outcome = 'done'").await, 3);
}

/// Never answers.
struct Hangs;

#[async_trait]
impl Outbound for Hangs {
    async fn handle(&self, _deps: &Deps, _task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        std::future::pending().await
    }
}

#[tokio::test]
async fn heartbeats_keep_a_long_short_task_until_its_wall_clock_passes() {
    let limits = Limits { heartbeat: Duration::from_millis(50), ..cheap_limits() };
    let plane = TestPlane::start_with(limits, 4).await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let overrun = async {
        let running = "SELECT count(*) FROM tasks WHERE status = 'running'";
        while plane.count(running).await == 0 {
            tokio::task::yield_now().await;
        }
        plane.advance(plane.deps.limits.short_wall_clock + Duration::from_secs(1)).await;
    };
    let worker = plane.as_function(Function::Worker);
    let work = plumbline_worker::handle(&worker, &launcher, &Hangs);
    let both = async { tokio::join!(work, overrun) };
    tokio::time::timeout(Duration::from_secs(30), both).await.expect("the handler is dropped").0.unwrap();
    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("cancelled"));
}

#[tokio::test]
async fn the_reconciler_does_all_the_work_when_nobody_is_ever_woken() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    enqueue_one(plane.db(), TaskKind::WorkspaceImport, unit).await;
    let done =
        plumbline_reconciler::handle(&plane.as_function(Function::Reconciler), &launcher, &fine()).await;
    assert!(done.sweeps.iter().all(|sweep| sweep.outcome.is_ok()), "{done:?}");
    assert_eq!(done.worked, Ok(Worked { launched: 1, short_tasks: 1 }));
}

#[tokio::test]
async fn a_sweep_that_fails_does_not_keep_the_others_from_running() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    plane.execute("ALTER TABLE queue_units RENAME TO hidden_units").await.unwrap();
    let done =
        plumbline_reconciler::handle(&plane.as_function(Function::Reconciler), &launcher, &fine()).await;
    let failed: Vec<_> =
        done.sweeps.iter().filter(|sweep| sweep.outcome.is_err()).map(|sweep| sweep.name).collect();
    assert_eq!(failed, ["tasks.counters"]);
    assert_eq!(done.sweeps.last().map(|sweep| sweep.outcome.is_ok()), Some(true));
}
