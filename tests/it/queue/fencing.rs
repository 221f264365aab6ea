//! After the claim: every write carries the lease, and a lost lease may write nothing.

use std::time::Duration;

use plumbline_core::db::Query;
use plumbline_core::ids::IdSource;
use plumbline_core::tasks::{
    Backoff, Enqueued, FailedAttempt, Lease, TaskClass, TaskError, TaskKind, service,
};

use super::desk::{enqueue, enqueue_one, new_task, unit};
use crate::plane::TestPlane;

async fn assert_powerless(plane: &TestPlane, lease: Lease) {
    let lost = |result: Result<(), TaskError>| assert!(matches!(result, Err(TaskError::LeaseLost)));
    lost(plane.finish(lease).await);
    lost(plane.fail(lease, FailedAttempt::Retry("late".into())).await.map(|_| ()));
    lost(plane.fail(lease, FailedAttempt::Permanent("late".into())).await.map(|_| ()));
    lost(plane.give_back(lease).await);
    lost(plane.go_live(lease).await);
    lost(plane.heartbeat(lease).await.map(|_| ()));
    let locked: Result<_, TaskError> =
        plane.db().transaction(async |tx| service::lock_held(tx, lease).await).await;
    lost(locked.map(|_| ()));
    let conn = plane.db().conn().await.unwrap();
    assert!(service::find_held(&conn, lease).await.unwrap().is_none());
}

#[tokio::test]
async fn a_worker_that_lost_its_lease_can_write_nothing() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let slow = plane.claim_one(TaskClass::Executor).await;
    plane.give_back(slow.lease).await.unwrap();
    assert_powerless(&plane, slow.lease).await;

    let fast = plane.claim_one(TaskClass::Executor).await;
    assert_eq!(fast.lease.task_id, slow.lease.task_id);
    assert_powerless(&plane, slow.lease).await;

    plane.go_live(fast.lease).await.unwrap();
    plane.heartbeat(fast.lease).await.unwrap();
    plane.finish(fast.lease).await.unwrap();
    assert_powerless(&plane, fast.lease).await;
    assert_eq!(plane.count("SELECT count(*) FROM finished_tasks WHERE outcome = 'done'").await, 1);
}

#[tokio::test]
async fn tasks_that_end_together_are_recorded_but_for_those_whose_lease_was_lost() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..3 {
        enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    }
    let tasks = plane.claim(TaskClass::Short, 3).await;
    plane.give_back(tasks[1].lease).await.unwrap();
    let taken = plane.claim_one(TaskClass::Short).await;
    assert_eq!(taken.lease.task_id, tasks[1].lease.task_id);

    let result = serde_json::json!({"branches": ["main"]});
    let done: Vec<_> = tasks.iter().map(|task| (task, Some(&result))).collect();
    let conn = plane.db().conn().await.unwrap();
    let lost = service::finish_together(&conn, &done).await.unwrap();
    drop(conn);

    assert_eq!(lost, [tasks[1].lease]);
    let recorded = "SELECT count(*) FROM finished_tasks WHERE outcome = 'done' AND result IS NOT NULL";
    assert_eq!(plane.count(recorded).await, 2);
    assert_eq!(plane.count("SELECT running::int8 FROM queue_units").await, 1);
    plane.finish(taken.lease).await.unwrap();
}

#[tokio::test]
async fn the_same_worker_claiming_again_does_not_revive_its_old_lease() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    let first = plane.claim_one(TaskClass::Short).await;
    plane.fail(first.lease, FailedAttempt::Retry("once".into())).await.unwrap();
    let second = plane.claim_one(TaskClass::Short).await;

    assert_eq!(second.lease.task_id, first.lease.task_id);
    assert!(second.lease.token > first.lease.token);
    assert_powerless(&plane, first.lease).await;
    plane.finish(second.lease).await.unwrap();
}

#[tokio::test]
async fn giving_back_does_not_burn_an_attempt_and_failing_does() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    for _ in 0..5 {
        let task = plane.claim_one(TaskClass::Executor).await;
        assert_eq!(task.attempts, 1);
        plane.give_back(task.lease).await.unwrap();
    }
    for attempt in 1..=3 {
        let task = plane.claim_one(TaskClass::Executor).await;
        assert_eq!((task.attempts, task.attempts_max), (attempt, 3));
        let next = plane.fail(task.lease, FailedAttempt::Retry(format!("error {attempt}"))).await.unwrap();
        let last = attempt == 3;
        assert_eq!(next, if last { Backoff::DeadLettered } else { Backoff::Requeued(Duration::ZERO) });
    }
    assert!(plane.claim(TaskClass::Executor, 1).await.is_empty());
    let dead = plane.text("SELECT outcome || ': ' || last_error FROM finished_tasks").await;
    assert_eq!(dead.as_deref(), Some("dead: error 3"));
    assert_eq!(plane.count("SELECT sum(running)::int8 FROM queue_units").await, 0);
}

#[tokio::test]
async fn a_failure_that_repeating_cannot_help_is_a_dead_letter_at_once() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceImport, unit).await;
    let task = plane.claim_one(TaskClass::Short).await;
    let next = plane.fail(task.lease, FailedAttempt::Permanent("no such repository".into())).await.unwrap();
    assert_eq!(next, Backoff::DeadLettered);
}

#[tokio::test]
async fn a_queued_twin_is_found_and_cannot_start_before_the_finder_commits() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let work = new_task(TaskKind::WorkspaceBranches, unit);
    let Enqueued::New(id) = enqueue(plane.db(), &work).await else { panic!("the first is new") };
    let mut conn = plane.db().conn().await.unwrap();
    let tx = conn.begin().await.unwrap();
    let again = service::enqueue(&tx, IdSource, &work).await.unwrap();
    assert_eq!(again, Enqueued::Existing(id));
    assert!(plane.claim(TaskClass::Short, 1).await.is_empty(), "it would not see what the finder wrote");
    tx.commit().await.unwrap();

    assert_eq!(plane.claim_one(TaskClass::Short).await.lease.task_id, id);
    assert!(matches!(enqueue(plane.db(), &work).await, Enqueued::New(_)), "a running task is no twin");
}

#[tokio::test]
async fn concurrent_enqueues_with_one_key_make_one_task() {
    let plane = TestPlane::start_with(crate::queue::desk::cheap_limits(), 16).await;
    let unit = unit(plane.db(), "unit-a").await;
    let work = new_task(TaskKind::WorkspaceBranches, unit);
    let answers = futures::future::join_all((0..16).map(|_| enqueue(plane.db(), &work))).await;
    let new = answers.iter().filter(|answer| matches!(answer, Enqueued::New(_))).count();
    assert_eq!(new, 1);
    assert_eq!(plane.count("SELECT count(*) FROM tasks").await, 1);
}

#[tokio::test]
async fn a_failed_attempt_whose_work_was_queued_again_gives_way_to_the_twin() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let work = new_task(TaskKind::WorkspaceBranches, unit);
    let old = enqueue(plane.db(), &work).await.task_id();
    let running = plane.claim_one(TaskClass::Short).await;
    let twin = enqueue(plane.db(), &work).await.task_id();
    assert_ne!(old, twin);

    plane.fail(running.lease, FailedAttempt::Retry("no".into())).await.unwrap();

    assert_eq!(plane.text("SELECT outcome FROM finished_tasks").await.as_deref(), Some("superseded"));
    assert_eq!(plane.claim_one(TaskClass::Short).await.lease.task_id, twin);
}

#[tokio::test]
async fn cancelling_a_subject_withdraws_the_queued_and_tells_the_running() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let work = new_task(TaskKind::RunPlan, unit);
    enqueue(plane.db(), &work).await;
    let running = plane.claim_one(TaskClass::Executor).await;
    plane.go_live(running.lease).await.unwrap();
    let queued = enqueue(plane.db(), &work).await.task_id();
    assert!(!plane.heartbeat(running.lease).await.unwrap());

    let told: Vec<Lease> =
        plane.db().transaction(async |tx| service::cancel_subject(tx, work.subject_id).await).await.unwrap();

    assert_eq!(told, [running.lease]);
    assert!(plane.heartbeat(running.lease).await.unwrap(), "the next heartbeat says stop");
    let conn = plane.db().conn().await.unwrap();
    let row = conn.query_one("SELECT outcome FROM finished_tasks WHERE id = $1", &[&queued]).await.unwrap();
    assert_eq!(row.get::<_, &str>(0), "cancelled");
}

#[tokio::test]
async fn a_cancelled_attempt_that_has_not_traded_gets_nothing() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let work = new_task(TaskKind::RunPlan, unit);
    enqueue(plane.db(), &work).await;
    let running = plane.claim_one(TaskClass::Executor).await;
    let told: Result<_, TaskError> =
        plane.db().transaction(async |tx| Ok(service::cancel_subject(tx, work.subject_id).await?)).await;
    told.unwrap();
    assert!(matches!(plane.go_live(running.lease).await, Err(TaskError::LeaseLost)));
}
