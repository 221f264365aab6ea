//! Postgres stops at once in the middle of a run, stays away, and comes back. Time is real here: an outage is what
//! nobody can write about.

use std::time::{Duration, Instant};

use plumbline_core::db::PgMode;
use plumbline_core::limits::Limits;
use plumbline_runtime::Function;

use super::cluster::PrivateCluster;
use super::points::SLOW_STATE_READ;
use super::stage::{NoShortTasks, PATIENCE, Stage};
use crate::plane::TestPlane;

const LEASE: Duration = Duration::from_secs(4);
const SWEEP: Duration = Duration::from_millis(500);

async fn stage_on(cluster: &PrivateCluster) -> Stage {
    let limits = Limits {
        bcrypt_cost: 4,
        lease: LEASE,
        heartbeat: Duration::from_secs(1),
        sweep_period: Duration::from_secs(1),
        backoff_base: Duration::from_secs(1),
        ..Limits::default()
    };
    Stage::on(TestPlane::start_on(&cluster.url(), limits, 8, PgMode::Direct).await).await
}

/// One tick, whatever becomes of it: nobody tells the reconciler that the database is away.
async fn tick(stage: &Stage) {
    let reconciler = stage.plane.as_function(Function::Reconciler);
    plumbline_reconciler::handle(&reconciler, &stage.launcher, &NoShortTasks).await;
    tokio::time::sleep(SWEEP).await;
}

/// Ticks until the run has the status; fails at another end.
async fn tick_until(stage: &Stage, run: &str, wanted: &str) {
    let deadline = Instant::now() + PATIENCE;
    loop {
        let now = stage.run(run).await;
        let status = now["status"].as_str().unwrap();
        if status == wanted {
            return;
        }
        let is_over = ["applied", "failed", "cancelled"].contains(&status);
        assert!(!is_over && Instant::now() < deadline, "not {wanted}: {now}");
        tick(stage).await;
    }
}

/// Away for that long, with the sweeps going on in vain.
async fn stay_away(stage: &Stage, time: Duration) {
    let back_at = Instant::now() + time;
    while Instant::now() < back_at {
        tick(stage).await;
    }
}

async fn nobody_was_stopped(stage: &Stage) {
    const STOPPED: &str = "
        SELECT count(*) FROM executors x JOIN finished_tasks t ON t.id = x.task_id
        WHERE x.stop_requested_at < t.finished_at OR t.outcome <> 'done' OR t.attempts <> 1";
    assert_eq!(stage.count(STOPPED).await, 0, "nobody was asked to stop before its work was done");
    assert!(!stage.is_blocked().await);
    stage.check_counters("after the outage").await;
    stage.check_history("after the outage").await;
    assert_eq!(stage.get("audit/verify").await["ok"], true);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_survives_postgres_being_away_for_three_leases() {
    let mut cluster = PrivateCluster::start().await;
    let stage = stage_on(&cluster).await;
    let run = stage.trigger().await;
    tick_until(&stage, &run, "awaiting_approval").await;
    stage.approve(&run).await;
    stage.work().await;
    stage.second_begun().await;

    cluster.stop_immediately().await;
    stay_away(&stage, LEASE).await;
    // Terraform ends and writes its state while nobody can take it.
    stage.let_go();
    stay_away(&stage, 2 * LEASE).await;
    cluster.start_again().await;

    tick_until(&stage, &run, "applied").await;
    let versions = stage.get(&format!("workspaces/{}/state-versions", stage.workspace)).await;
    assert!(!versions["items"].as_array().unwrap().is_empty(), "its state was accepted");
    nobody_was_stopped(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_survives_a_restart_of_postgres() {
    let mut cluster = PrivateCluster::start().await;
    let stage = stage_on(&cluster).await;
    stage.let_go();
    let run = stage.trigger().await;
    let mut hold = stage.gate.arm(SLOW_STATE_READ);
    stage.work().await;
    hold.reached().await;

    cluster.stop_immediately().await;
    tick(&stage).await;
    cluster.start_again().await;
    hold.release();

    tick_until(&stage, &run, "awaiting_approval").await;
    stage.approve(&run).await;
    tick_until(&stage, &run, "applied").await;
    nobody_was_stopped(&stage).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn queued_and_waiting_runs_survive_a_restart_of_postgres() {
    let mut cluster = PrivateCluster::start().await;
    let stage = stage_on(&cluster).await;
    stage.let_go();
    let (queued, waiting) = (stage.trigger().await, stage.trigger().await);

    cluster.stop_immediately().await;
    tick(&stage).await;
    cluster.start_again().await;

    for run in [queued, waiting] {
        tick_until(&stage, &run, "awaiting_approval").await;
        stage.approve(&run).await;
        tick_until(&stage, &run, "applied").await;
    }
    nobody_was_stopped(&stage).await;
}
