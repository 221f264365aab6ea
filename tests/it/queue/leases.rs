//! Silence: unstarted, unresponsive and lost are told apart; an outage kills nobody; sweeps run in parallel.

use std::time::Duration;

use plumbline_core::db::Query;
use plumbline_core::ids::{BusinessUnitId, WorkspaceId};
use plumbline_core::ports::ExecutorFate;
use plumbline_core::sweeps;
use plumbline_core::tasks::{
    ClaimedTask, NewTask, TaskClass, TaskError, TaskKind, UNSTARTED_MAX, sweeps as leases,
};
use plumbline_runtime::Function;
use uuid::Uuid;

use super::desk::{cheap_limits, enqueue, enqueue_one, new_task, unit, units};
use super::fake_launcher::FakeLauncher;
use crate::plane::TestPlane;

const LEASE: Duration = Duration::from_secs(60);
const SECOND: Duration = Duration::from_secs(1);

/// A task whose executor was launched.
async fn launched(plane: &TestPlane, launcher: &FakeLauncher) -> ClaimedTask {
    let task = plane.claim_one(TaskClass::Executor).await;
    plane.launch(launcher, &task).await;
    task
}

/// A run about which tasks can be, with its apply begun or not.
async fn run_task(plane: &TestPlane, unit: BusinessUnitId, kind: TaskKind, begun: bool) -> NewTask {
    let workspace = WorkspaceId(Uuid::now_v7());
    let run = Uuid::now_v7();
    let conn = plane.db().conn().await.unwrap();
    let workspace_sql = "INSERT INTO workspaces
        (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
        VALUES ($1, $2, $3, 'dev', 'global', 'global', 'https://git.test/x', $3)";
    conn.execute(workspace_sql, &[&workspace, &unit, &workspace.to_string()]).await.unwrap();
    let run_sql =
        "INSERT INTO runs (id, business_unit_id, workspace_id, command, status, branch, apply_begun_at)
        VALUES ($1, $2, $3, 'apply', 'applying', 'main', CASE WHEN $4 THEN plumbline_now() END)";
    conn.execute(run_sql, &[&run, &unit, &workspace, &begun]).await.unwrap();
    NewTask::new(kind, unit, run, format!("{}:{run}", kind.as_str()))
}

async fn phase(plane: &TestPlane) -> Option<String> {
    plane.text("SELECT coalesce(lease_phase, status) FROM tasks").await
}

#[tokio::test]
async fn an_attempt_that_never_traded_is_given_back_applies_included() {
    for kind in [TaskKind::RunPlan, TaskKind::RunApply] {
        let plane = TestPlane::start().await;
        let launcher = FakeLauncher::default();
        let unit = unit(plane.db(), "unit-a").await;
        enqueue_one(plane.db(), kind, unit).await;
        let first = launched(&plane, &launcher).await;
        plane.advance(plane.deps.limits.launch_lease - SECOND).await;
        leases::judge_silent(&plane.as_function(Function::Reconciler)).await.unwrap();
        assert_eq!(phase(&plane).await.as_deref(), Some("launching"), "its launch lease still runs");

        plane.advance(2 * SECOND).await;
        leases::judge_silent(&plane.as_function(Function::Reconciler)).await.unwrap();

        assert!(matches!(plane.go_live(first.lease).await, Err(TaskError::LeaseLost)));
        assert_eq!(plane.count("SELECT count(*) FROM tickets WHERE voided_at IS NOT NULL").await, 1);
        plane.advance(plane.deps.limits.backoff_base + SECOND).await;
        let second = plane.claim_one(TaskClass::Executor).await;
        assert_eq!(second.lease.task_id, first.lease.task_id);
        assert_eq!(second.attempts, 1, "the attempt did not count");
        assert!(second.lease.token > first.lease.token);
    }
}

#[tokio::test]
async fn a_task_whose_executors_never_start_is_tried_ever_more_rarely_and_then_given_up() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    let task = run_task(&plane, unit, TaskKind::RunPlan, false).await;
    enqueue(plane.db(), &task).await;
    for launch in 1..=UNSTARTED_MAX {
        let attempt = launched(&plane, &launcher).await;
        assert_eq!(attempt.attempts, 1, "none of them counts");
        launcher.end(&format!("handle-{launch}"));
        plane.sweep(&launcher).await;
        plane.advance(plane.deps.limits.backoff_max).await;
    }
    assert_eq!(plane.count("SELECT count(*) FROM tasks").await, 0);
    let error = plane.text("SELECT last_error FROM finished_tasks WHERE outcome = 'dead'").await.unwrap();
    assert!(error.starts_with("none of 20 launched executors reported for work"), "{error}");
    assert_eq!(plane.text("SELECT status FROM runs").await.as_deref(), Some("failed"));
    assert_eq!(plane.text("SELECT error FROM runs").await, Some(error));
}

#[tokio::test]
async fn a_claim_whose_worker_died_before_launching_is_given_back() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunApply, unit).await;
    plane.claim_one(TaskClass::Executor).await;
    plane.advance(plane.deps.limits.launch_lease + SECOND).await;
    leases::judge_silent(&plane.as_function(Function::Reconciler)).await.unwrap();
    plane.advance(plane.deps.limits.backoff_base + SECOND).await;
    assert_eq!(plane.claim_one(TaskClass::Executor).await.attempts, 1);
}

#[tokio::test]
async fn a_ticket_in_the_middle_of_its_trade_is_left_alone() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let task = launched(&plane, &launcher).await;
    plane.advance(plane.deps.limits.launch_lease + SECOND).await;
    let mut conn = plane.db().conn().await.unwrap();
    let trade = conn.begin().await.unwrap();
    trade.query("SELECT 1 FROM tickets FOR UPDATE", &[]).await.unwrap();

    leases::judge_silent(&plane.as_function(Function::Reconciler)).await.unwrap();
    assert_eq!(phase(&plane).await.as_deref(), Some("launching"));

    drop(trade);
    plane.go_live(task.lease).await.unwrap();
}

#[tokio::test]
async fn a_silent_plan_is_stopped_first_and_requeued_once_it_has_stopped() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let first = launched(&plane, &launcher).await;
    plane.trade(&first).await;
    plane.advance(LEASE + SECOND).await;

    plane.sweep(&launcher).await;
    assert_eq!(phase(&plane).await.as_deref(), Some("live"), "its executor may still act");
    assert!(plane.claim(TaskClass::Executor, 1).await.is_empty());
    plane.advance(30 * SECOND).await;
    plane.sweep(&launcher).await;
    assert_eq!(launcher.stopped(), ["handle-1"]);

    launcher.end("handle-1");
    plane.sweep(&launcher).await;
    plane.advance(plane.deps.limits.backoff_max).await;
    let second = plane.claim_one(TaskClass::Executor).await;
    assert_eq!((second.lease.task_id, second.attempts), (first.lease.task_id, 2));
}

#[tokio::test]
async fn an_executor_known_to_have_stopped_ends_its_attempt_before_the_lease_does() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    launcher.end("handle-1");
    plane.sweep(&launcher).await;
    assert_eq!(phase(&plane).await.as_deref(), Some("queued"));
}

#[tokio::test]
async fn a_silent_apply_is_unresponsive_and_speaking_again_makes_it_live() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    let work = run_task(&plane, unit, TaskKind::RunApply, true).await;
    enqueue(plane.db(), &work).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    plane.advance(LEASE + SECOND).await;

    plane.judge().await;
    plane.judge().await;
    assert_eq!(phase(&plane).await.as_deref(), Some("unresponsive"));
    assert!(launcher.stopped().is_empty(), "nobody kills an apply for not answering");

    plane.heartbeat(task.lease).await.unwrap();
    assert_eq!(phase(&plane).await.as_deref(), Some("live"));
    plane.judge().await;
    assert_eq!(phase(&plane).await.as_deref(), Some("live"));
}

#[tokio::test]
async fn an_unresponsive_apply_is_lost_when_the_platform_says_it_stopped() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    let work = run_task(&plane, unit, TaskKind::RunApply, true).await;
    enqueue(plane.db(), &work).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    plane.advance(LEASE + SECOND).await;
    launcher.forget("handle-1");
    plane.sweep(&launcher).await;
    assert_eq!(phase(&plane).await.as_deref(), Some("unresponsive"), "not knowing it proves nothing");

    launcher.end("handle-1");
    plane.sweep(&launcher).await;

    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("dead"));
    assert!(plane.text("SELECT last_error FROM finished_tasks").await.is_some());
    assert_eq!(plane.text("SELECT status FROM runs").await.as_deref(), Some("failed"));
    assert_eq!(plane.count("SELECT count(*) FROM workspaces WHERE blocked_at IS NOT NULL").await, 1);
    assert_eq!(plane.count("SELECT count(*) FROM audit_entries WHERE action = 'executor.lost'").await, 1);
    assert_eq!(plane.count("SELECT sum(running)::int8 FROM queue_units").await, 0);
}

#[tokio::test]
async fn an_unresponsive_apply_is_lost_when_its_wall_clock_passes() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    let work = run_task(&plane, unit, TaskKind::RunApply, true).await;
    enqueue(plane.db(), &work).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    plane.advance(plane.deps.limits.apply_wall_clock + SECOND).await;
    plane.judge().await;
    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("dead"));
}

#[tokio::test]
async fn no_lease_expires_for_a_whole_period_after_an_outage() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    plane.claim_one(TaskClass::Short).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    plane.judge().await;

    plane.advance(3 * LEASE).await;
    plane.judge().await;
    plane.advance(LEASE / 2).await;
    plane.judge().await;
    assert_eq!(plane.count("SELECT count(*) FROM tasks WHERE status = 'running'").await, 2);
    assert_eq!(plane.count("SELECT count(*) FROM executors WHERE stop_requested_at IS NOT NULL").await, 0);

    plane.heartbeat(task.lease).await.unwrap();
    plane.advance(LEASE / 2 + SECOND).await;
    plane.judge().await;
    assert_eq!(
        plane.text("SELECT kind FROM tasks WHERE status = 'running'").await.as_deref(),
        Some("run_plan"),
        "who reported after the outage keeps its lease; who did not loses it"
    );
}

#[tokio::test]
async fn a_dead_workers_short_task_is_tried_again_and_then_a_dead_letter_with_its_error() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    for attempt in 1..=2 {
        assert_eq!(plane.claim_one(TaskClass::Short).await.attempts, attempt);
        plane.advance(LEASE + SECOND).await;
        plane.judge().await;
        plane.advance(20 * SECOND).await;
        plane.judge().await;
    }
    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("dead"));
    let error = plane.text("SELECT last_error FROM finished_tasks").await;
    assert_eq!(error.as_deref(), Some("the attempt ended without a report"));
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn eight_sweeps_at_once_do_each_thing_once() {
    let plane = TestPlane::start_with(cheap_limits(), 16).await;
    let units = units(plane.db(), 5).await;
    for n in 0..40 {
        let kind = if n % 2 == 0 { TaskKind::WorkspaceBranches } else { TaskKind::RunPlan };
        enqueue(plane.db(), &new_task(kind, units[n % 5])).await;
    }
    while !plane.claim(TaskClass::Executor, 10).await.is_empty() {}
    while !plane.claim(TaskClass::Short, 10).await.is_empty() {}
    assert_eq!(plane.count("SELECT count(*) FROM tasks WHERE status = 'running'").await, 40);
    plane.advance(plane.deps.limits.launch_lease + SECOND).await;

    let launcher = FakeLauncher::default();
    let reconciler = plane.as_function(Function::Reconciler);
    let ticks = futures::future::join_all((0..8).map(|_| sweeps::run_all(&reconciler, &launcher))).await;

    for report in ticks.iter().flatten() {
        assert!(report.outcome.is_ok(), "{report:?}");
    }
    let acted = |name: &str| -> usize {
        ticks.iter().flatten().filter(|r| r.name == name).filter_map(|r| r.outcome.as_ref().ok()).sum()
    };
    assert_eq!(acted("tasks.leases"), 40);
    assert_eq!(plane.count("SELECT count(*) FROM tasks WHERE status = 'queued'").await, 40);
    assert_eq!(plane.count("SELECT sum(running)::int8 FROM queue_units").await, 0);
    assert_eq!(plane.count("SELECT running::int8 FROM launch_budget").await, 0);
    assert_eq!(plane.count("SELECT sum(attempts)::int8 FROM tasks WHERE class = 'short'").await, 20);
    assert_eq!(plane.count("SELECT sum(attempts)::int8 FROM tasks WHERE class = 'executor'").await, 0);
}

#[tokio::test]
async fn wrong_counters_are_put_right() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    plane.claim_one(TaskClass::Executor).await;
    assert_eq!(leases::repair_counters(&plane.as_function(Function::Reconciler)).await.unwrap(), 0);
    plane.execute("UPDATE queue_units SET running = 7; UPDATE launch_budget SET running = 0").await.unwrap();

    assert_eq!(leases::repair_counters(&plane.as_function(Function::Reconciler)).await.unwrap(), 2);

    assert_eq!(plane.count("SELECT running::int8 FROM queue_units").await, 1);
    assert_eq!(plane.count("SELECT running::int8 FROM launch_budget").await, 1);
}

#[tokio::test]
async fn finished_tasks_are_kept_for_their_time_only() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let task = plane.claim_one(TaskClass::Executor).await;
    plane.finish(task.lease).await.unwrap();
    plane.advance(plane.deps.limits.finished_task_age - SECOND).await;
    assert_eq!(leases::forget_finished(&plane.as_function(Function::Reconciler)).await.unwrap(), 0);
    plane.advance(2 * SECOND).await;
    assert_eq!(leases::forget_finished(&plane.as_function(Function::Reconciler)).await.unwrap(), 1);
}

#[tokio::test]
async fn an_executor_without_a_live_task_is_stopped() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let task = launched(&plane, &launcher).await;
    plane.trade(&task).await;
    plane.sweep(&launcher).await;
    assert!(launcher.stopped().is_empty());

    plane.finish(task.lease).await.unwrap();
    plane.sweep(&launcher).await;
    assert!(launcher.stopped().is_empty(), "one that is done leaves by itself");
    plane.advance(30 * SECOND).await;
    plane.sweep(&launcher).await;
    assert_eq!(launcher.stopped(), ["handle-1"]);

    launcher.end("handle-1");
    plane.sweep(&launcher).await;
    assert_eq!(plane.text("SELECT status FROM executors").await.as_deref(), Some("stopped"));
}

#[tokio::test]
async fn a_launch_that_was_not_recorded_is_found_again() {
    let plane = TestPlane::start().await;
    let launcher = FakeLauncher::default();
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    launched(&plane, &launcher).await;
    plane.execute("UPDATE executors SET handle = NULL").await.unwrap();
    plane.advance(61 * SECOND).await;
    plane.sweep(&launcher).await;
    assert_eq!(plane.text("SELECT handle FROM executors").await.as_deref(), Some("handle-1"));
    assert_eq!(launcher.fate_of("handle-1"), ExecutorFate::Running);
}
