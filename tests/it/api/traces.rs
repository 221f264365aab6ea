//! A trace crosses the queue: from the request's header to the task, the claim and the executor's bundle.

use http::{Method, StatusCode};
use plumbline_core::db::Query as _;
use plumbline_core::protocol::Bundle;
use serde_json::{Value, json};

use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, claim_and_prepare, nonce, trade};
use crate::world::World;

/// The `n`th trace.
fn trace(n: u8) -> String {
    format!("00-{n:032x}-00f067aa0ba902b7-01")
}

impl World {
    /// Posts under a trace.
    async fn traced(&self, trace: &str, path: &str, body: impl Into<Option<Value>>) -> Value {
        let path = format!("/api/v1/{path}");
        let headers = [("traceparent", trace)];
        let (status, _, answer) =
            self.plane.call_with("POST", &path, self.token.as_str(), body, &headers).await;
        assert!(status.is_success(), "{path}: {status} {answer}");
        answer
    }

    fn apply(&self) -> Value {
        json!({ "workspace_id": self.workspace, "command": "apply" })
    }

    /// The traces of live or finished tasks, in the order in which they were made.
    async fn stored(&self, table: &str) -> Vec<Option<String>> {
        let conn = self.plane.db().conn().await.unwrap();
        let sql = format!("SELECT traceparent FROM {table} ORDER BY id");
        conn.query(&sql, &[]).await.unwrap().iter().map(|row| row.get(0)).collect()
    }
}

#[tokio::test]
async fn a_trace_goes_with_its_request_to_the_executor() {
    let world = World::new().await;
    let run = world.traced(&trace(1), "runs", world.apply()).await;
    assert_eq!(world.stored("tasks").await, [Some(trace(1))]);
    let (task, launch) = claim_and_prepare(&world.plane).await.unwrap();
    assert_eq!(task.traceparent.as_ref().map(|trace| trace.as_str()), Some(&*trace(1)));
    let (_, bundle) = trade(&world.plane, &launch.ticket, &nonce(1)).await;
    let bundle: Bundle = serde_json::from_value(bundle).unwrap();
    assert_eq!(bundle.traceparent, Some(trace(1)));

    // Another attempt is of the same request; the apply is of whoever approved.
    let first = FakeExecutor::traded(&world.plane, launch, bundle);
    assert_eq!(first.fail("transient", "no route to host").await.0, StatusCode::NO_CONTENT);
    world.plane.advance(world.plane.deps.limits.backoff_max).await;
    let second = FakeExecutor::start(&world.plane).await;
    assert_eq!(second.bundle.traceparent, Some(trace(1)));
    assert_eq!(second.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    let approve = format!("approvals/{}/approve", run["id"].as_str().unwrap());
    world.traced(&trace(2), &approve, json!({})).await;
    let apply = FakeExecutor::start(&world.plane).await;
    assert_eq!(apply.bundle.traceparent, Some(trace(2)));
    assert_eq!(apply.begin_apply().await.0, StatusCode::NO_CONTENT);
    assert_eq!(apply.apply_done().await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.stored("finished_tasks").await, [Some(trace(1)), Some(trace(2))]);
}

#[tokio::test]
async fn a_run_that_waits_or_approves_itself_keeps_the_trace_of_its_request() {
    let world = World::new().await;
    let first = world.traced(&trace(1), "runs", world.apply()).await;
    let mut empty = world.apply();
    empty["auto_approve_if_no_changes"] = json!(true);
    world.traced(&trace(2), "runs", empty).await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    world.traced(&trace(3), &format!("approvals/{}/reject", first["id"].as_str().unwrap()), json!({})).await;
    let plan = FakeExecutor::start(&world.plane).await;
    assert_eq!(plan.bundle.traceparent, Some(trace(2)), "not of who made room for it");
    assert_eq!(plan.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    assert_eq!(FakeExecutor::start(&world.plane).await.bundle.traceparent, Some(trace(2)));
}

#[tokio::test]
async fn short_tasks_carry_the_trace_and_what_is_no_trace_is_left_out() {
    let world = World::new().await;
    let repository = json!({ "repo_url": "https://git.example.com/infra.git" });
    world.traced(&trace(1), "workspaces/discover", repository.clone()).await;
    world.traced(&trace(2), "workspaces/import", repository.clone()).await;
    world.traced(&trace(3), &format!("workspaces/{}/branches", world.workspace), None).await;
    let upper = trace(255).to_uppercase();
    for wrong in ["", "nonsense", "01-1-1-1", &trace(0), &upper, &format!("{}-more", trace(1))] {
        world.traced(wrong, "workspaces/discover", repository.clone()).await;
    }
    let mut stored = vec![Some(trace(1)), Some(trace(2)), Some(trace(3))];
    stored.resize(3 + 6, None);
    assert_eq!(world.stored("tasks").await, stored);
    let (status, _, _) =
        world.plane.call(Method::GET.as_str(), "/api/v1/tasks", world.token.as_str(), None).await;
    assert_eq!(status, StatusCode::OK);
}
