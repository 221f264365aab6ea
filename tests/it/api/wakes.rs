//! Whatever makes work claimable wakes the worker once it is committed.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use async_trait::async_trait;
use http::StatusCode;
use plumbline_core::adapters::InProcessWaker;
use plumbline_core::ports::Waker;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::json;

use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, claim_and_prepare};
use crate::plane::TestPlane;
use crate::world::World;

/// Counts wake-ups.
#[derive(Debug, Default)]
struct Bell(AtomicUsize);

#[async_trait]
impl Waker for Bell {
    async fn wake(&self, _delay: Duration) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

impl Bell {
    /// It rang since the last call.
    #[track_caller]
    fn rang(&self, what: &str) {
        assert!(self.0.swap(0, Ordering::SeqCst) > 0, "{what} wakes nobody");
    }
}

async fn with_bell() -> (World, Arc<Bell>) {
    let bell = Arc::new(Bell::default());
    let mut plane = TestPlane::start().await;
    plane.deps.waker = bell.clone();
    let world = World::on(plane).await;
    bell.0.store(0, Ordering::SeqCst);
    (world, bell)
}

#[tokio::test]
async fn a_worker_in_the_same_process_is_woken_by_a_request_and_finds_its_task() {
    let waker = InProcessWaker::default();
    let mut plane = TestPlane::start().await;
    plane.deps.waker = Arc::new(waker.clone());
    let world = World::on(plane).await;
    let worker = async {
        waker.woken().await;
        claim_and_prepare(&world.plane).await
    };
    let (claimed, id) =
        tokio::join!(tokio::time::timeout(Duration::from_secs(30), worker), world.trigger("plan"));
    let (task, _) = claimed.expect("woken in time").expect("what was committed is found");
    assert_eq!(task.subject_id.to_string(), id);
}

#[tokio::test]
async fn whatever_makes_a_run_claimable_wakes_the_worker() {
    let (world, bell) = with_bell().await;
    let plan = world.trigger("plan").await;
    bell.rang("a run");
    FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await;
    bell.rang("the end of a plan");
    let (_, promoted) = world.post(&format!("runs/{plan}/promote"), json!({})).await;
    bell.rang("a promotion");
    // Each of these ends makes room for a run that waits.
    let waiting = [world.trigger("apply").await, world.trigger("apply").await, world.trigger("apply").await];
    FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await;
    bell.0.store(0, Ordering::SeqCst);
    let promoted = promoted["id"].as_str().unwrap();
    assert_eq!(world.post(&format!("approvals/{promoted}/reject"), json!({})).await.0, StatusCode::OK);
    bell.rang("a rejection");
    assert_eq!(world.post(&format!("runs/{}/cancel", waiting[0]), json!({})).await.0, StatusCode::OK);
    bell.rang("a cancellation");
    FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await;
    bell.0.store(0, Ordering::SeqCst);
    assert_eq!(world.post(&format!("approvals/{}/approve", waiting[1]), json!({})).await.0, StatusCode::OK);
    bell.rang("an approval");
    let apply = FakeExecutor::start(&world.plane).await;
    apply.begin_apply().await;
    assert_eq!(apply.apply_done().await.0, StatusCode::NO_CONTENT);
    bell.rang("the end of an apply");
    FakeExecutor::start(&world.plane).await.fail("permanent", "no").await;
    bell.rang("a failure");
}

#[tokio::test]
async fn an_approval_by_nobody_and_an_unblocking_wake_the_worker() {
    let (world, bell) = with_bell().await;
    let flags =
        json!({ "workspace_id": world.workspace, "command": "apply", "auto_approve_if_no_changes": true });
    world.post("runs", flags).await;
    let plan = FakeExecutor::start(&world.plane).await;
    bell.0.store(0, Ordering::SeqCst);
    plan.plan(NO_CHANGES).await;
    bell.rang("an empty plan that approves itself");
    let apply = FakeExecutor::start(&world.plane).await;
    apply.begin_apply().await;
    world.trigger("apply").await;
    apply.call(http::Method::POST, "fail", json!({ "kind": "timed_out", "error": "killed" })).await;
    bell.0.store(0, Ordering::SeqCst);
    let unblock = format!("workspaces/{}/unblock", world.workspace);
    assert_eq!(world.post(&unblock, json!({ "note": "looked at it" })).await.0, StatusCode::OK);
    bell.rang("an unblocking");
}

#[tokio::test]
async fn short_tasks_and_replays_wake_the_worker() {
    let (world, bell) = with_bell().await;
    let repository = json!({ "repo_url": "https://git.example.com/infra.git" });
    for path in ["workspaces/discover", "workspaces/import"] {
        assert_eq!(world.post(path, repository.clone()).await.0, StatusCode::ACCEPTED);
        bell.rang(path);
    }
    let (_, asked) = world.post(&format!("workspaces/{}/branches", world.workspace), json!({})).await;
    bell.rang("branches");
    let (worker, limits) = (world.plane.as_function(Function::Worker), &world.plane.deps.limits);
    for task in tasks::service::claim(&worker.db, TaskClass::Short, "test", 9, limits).await.unwrap() {
        let failure = FailedAttempt::Permanent("the forge said no".into());
        let failed = worker
            .db
            .transaction(async |tx| tasks::service::fail(tx, task.lease, &failure, 0.0, limits).await);
        failed.await.unwrap();
    }
    bell.0.store(0, Ordering::SeqCst);
    let replay = format!("tasks/{}/replay", asked["task_id"].as_str().unwrap());
    assert_eq!(world.post(&replay, json!({})).await.0, StatusCode::ACCEPTED);
    bell.rang("a replay");
}
