//! SIGKILL of the whole emulator in the middle of runs, and a new one on the same directory and ports. Executors are on
//! their own meanwhile.

use std::time::Duration;

use serde_json::json;

use super::machine::Machine;
use super::points::SLOW_STATE_READ;
use super::sql_barrier::{SqlBarrier, Statement};

const LAUNCH_LEASE: Duration = Duration::from_secs(600);

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_claimed_by_a_killed_emulator_is_launched_by_the_next_one() {
    let mut machine = Machine::start().await;
    let barrier = SqlBarrier::raise(&machine.database_url(), Statement::PrepareLaunch).await;
    let run = machine.trigger().await;
    barrier.reached().await;
    machine.kill_and_start_again().await;
    // The lock of the barrier went with Postgres, so nobody waits at it any more.
    drop(barrier);
    assert_eq!(machine.session.get(&format!("runs/{run}")).await["status"], json!("pending"));
    machine.pass(LAUNCH_LEASE).await;
    machine.finish(&run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_outlives_a_killed_emulator_and_reports_to_the_next_one() {
    let mut machine = Machine::start().await;
    let mut hold = machine.gate.arm(SLOW_STATE_READ);
    let run = machine.trigger().await;
    hold.reached().await;
    machine.kill_and_start_again().await;
    hold.release();
    machine.finish(&run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_plan_that_waits_for_approval_still_does_after_a_kill_of_the_emulator() {
    let mut machine = Machine::start().await;
    let run = machine.trigger().await;
    machine.session.run(&run, "awaiting_approval").await;
    machine.kill_and_start_again().await;
    assert_eq!(machine.session.get(&format!("runs/{run}")).await["status"], json!("awaiting_approval"));
    machine.finish(&run).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_apply_outlives_a_killed_emulator_and_delivers_its_state_to_the_next_one() {
    let mut machine = Machine::start().await;
    let run = machine.trigger().await;
    machine.approve(&run).await;
    machine.until_exists(&machine.sign("begun")).await;
    machine.kill().await;
    // Terraform ends and writes its state while nobody can take it.
    std::fs::write(machine.sign("go"), "").unwrap();
    machine.start_again().await;
    machine.finish(&run).await;
}
