//! Stopping: cancel, platform, time limit, a lost lease; and nothing of the child stays.

use std::sync::atomic::Ordering;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::protocol::FailureKind;

use super::fake_tool;
use super::world::{Running, World, eventually, is_named_by_a_process, open_directory, waiting_stack};

/// A plan that says `begun` and never ends; `stubborn` ones ignore interrupts.
async fn endless_plan(
    signs: &std::path::Path,
    is_stubborn: bool,
    wall_clock_seconds: u64,
) -> (World, Running) {
    let mut world = World::with(&[("main.tf", "")]);
    let trap = if is_stubborn { "trap '' INT TERM" } else { "trap 'exit 1' INT" };
    let plan = format!("{trap}; touch {0}/begun; while :; do sleep 0.1; : {0}; done", signs.display());
    let tools = world.scratch("tools");
    fake_tool::write(&tools, "1.99.0", &plan);
    world.environment.push(("PLUMBLINE_TOOL_DIRS".into(), tools.display().to_string()));
    world.bundle.tool.version = Some("1.99.0".into());
    world.bundle.lease.wall_clock_seconds = wall_clock_seconds;
    let running = world.start().await;
    running.until("the plan is under way", |_| signs.join("begun").exists()).await;
    (world, running)
}

#[tokio::test]
async fn a_cancelled_plan_is_interrupted_and_reported() {
    let signs = open_directory();
    let (_world, running) = endless_plan(signs.path(), false, 100).await;
    running.fake.cancels.store(true, Ordering::SeqCst);
    let finished = running.finish().await;
    assert_eq!(finished.fake.told().failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Cancelled));
    assert!(!finished.fake.log_of("Terraform Plan").contains("is killed"));
}

#[tokio::test]
async fn a_plan_that_ignores_the_interrupt_is_killed() {
    let signs = open_directory();
    let (_world, running) = endless_plan(signs.path(), true, 100).await;
    running.fake.cancels.store(true, Ordering::SeqCst);
    let finished = running.finish().await;
    assert_eq!(finished.fake.told().failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Cancelled));
    assert!(finished.fake.log_of("Terraform Plan").contains("is killed"));
    let mark = signs.path().display().to_string();
    assert!(!is_named_by_a_process(&mark));
}

#[tokio::test]
async fn the_platform_can_stop_an_executor() {
    let signs = open_directory();
    let (_world, running) = endless_plan(signs.path(), false, 100).await;
    kill(Pid::from_raw(running.child.id().cast_signed()), Signal::SIGTERM).unwrap();
    let finished = running.finish().await;
    assert_eq!(finished.fake.told().failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Cancelled));
}

#[tokio::test]
async fn an_attempt_ends_at_its_wall_clock_limit() {
    let signs = open_directory();
    let (_world, running) = endless_plan(signs.path(), false, 3).await;
    let finished = running.finish().await;
    assert_eq!(finished.fake.told().failed.as_ref().map(|failed| failed.kind), Some(FailureKind::TimedOut));
}

#[tokio::test]
async fn a_plan_that_lost_its_lease_ends_at_once_and_says_nothing() {
    let signs = open_directory();
    let (_world, running) = endless_plan(signs.path(), true, 100).await;
    running.fake.is_lease_lost.store(true, Ordering::SeqCst);
    let finished = running.finish().await;
    assert_eq!(finished.code, Some(3));
    assert!(finished.fake.told().failed.is_none());
}

#[tokio::test]
async fn a_cancelled_apply_is_asked_gracefully_and_keeps_its_state() {
    let signs = open_directory();
    let world = World::with(&[("main.tf", &waiting_stack(signs.path()))]);
    let planned = world.run().await;
    let running = world.start_apply(&planned);
    running.until("the apply is under way", |_| signs.path().join("begun").exists()).await;
    running.fake.cancels.store(true, Ordering::SeqCst);
    let finished = running.finish().await;
    let told = finished.fake.told();
    assert_eq!(told.failed.as_ref().map(|failed| failed.kind), Some(FailureKind::Cancelled));
    assert!(told.failed.as_ref().is_some_and(|failed| failed.is_state_whole), "it ended in an orderly way");
    assert!(!told.states.is_empty() && told.lock.is_none());
}

#[tokio::test]
async fn a_killed_supervisor_leaves_no_process_behind() {
    let signs = open_directory();
    let (_world, mut running) = endless_plan(signs.path(), true, 100).await;
    running.child.kill().unwrap();
    running.child.wait().unwrap();
    let mark = signs.path().display().to_string();
    eventually("its child is gone", || !is_named_by_a_process(&mark)).await;
}

#[tokio::test]
async fn a_traded_ticket_is_worth_nothing_to_a_second_executor() {
    let world = World::with(&[("main.tf", "")]);
    let first = world.run().await;
    let second = world.start_against(first.fake.clone()).finish().await;
    assert_eq!(second.code, Some(1));
}
