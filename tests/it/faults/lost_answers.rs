//! Answers that get lost on the way: what was asked is done, and whoever asked asks again. And two who meet.

use std::time::Duration;

use http::{Method, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use serde_json::json;
use uuid::Uuid;

use super::gate::{Side, Wanted};
use super::stage::Stage;
use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::TestPlane;

/// Everything that an executor asks for once and must not be done twice.
const ASKED_ONCE: [(&str, &str); 9] = [
    ("POST", "/trade"),
    ("PUT", "/steps/1"),
    ("POST", "/artifacts"),
    ("POST", "/commit"),
    ("POST", "/plan/complete"),
    ("POST", "/apply/begin"),
    ("POST", "/state/lock"),
    ("PUT", "/state"),
    ("DELETE", "/state/lock"),
];

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_run_whose_answers_get_lost_is_applied_at_the_first_attempt() {
    let stage = Stage::start().await;
    stage.let_go();
    for (method, path_end) in ASKED_ONCE {
        stage.gate.lose_answer_of(Wanted { method, path_end, step_status: None, side: Side::After });
    }
    let run = stage.trigger().await;
    stage.drive(&run, "applied").await;
    assert_eq!(stage.gate.left_to_lose(), 0, "each was asked for");
    assert_eq!(stage.attempts_of(&run, "run_plan").await, 1);
    assert_eq!(stage.attempts_of(&run, "run_apply").await, 1);
    stage.check_all("lost answers").await;
}

/// A run of its own plane, triggered and planned as far as the command says.
async fn triggered(plane: &TestPlane, command: &str) -> (String, Uuid) {
    let token = plane.user(Role::Admin).await;
    let body = json!({ "name": "net", "environment": "dev", "repo_url": "https://git.example.com/net.git" });
    let (_, _, workspace) = plane.call("POST", "/api/v1/workspaces", token.as_str(), body).await;
    let body = json!({ "workspace_id": workspace["id"], "command": command });
    let (status, _, run) = plane.call("POST", "/api/v1/runs", token.as_str(), body).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    (token, run["id"].as_str().unwrap().parse().unwrap())
}

#[tokio::test]
async fn an_apply_that_asks_again_whether_it_may_begin_is_answered_alike() {
    const BEGUN: &str = "SELECT count(*) FROM audit_entries WHERE run_id = $1 AND action = 'run.apply_begin'";
    let plane = TestPlane::start().await;
    let (token, run) = triggered(&plane, "apply").await;
    FakeExecutor::start(&plane).await.plan(ADDS_ONE).await;
    let path = format!("/api/v1/approvals/{run}/approve");
    assert_eq!(plane.call("POST", &path, token.as_str(), json!({})).await.0, StatusCode::OK);
    let executor = FakeExecutor::start(&plane).await;

    assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT);
    assert_eq!(executor.begin_apply().await.0, StatusCode::NO_CONTENT, "its answer was lost");
    let other = json!({ "plan_sha256": Sha256Digest::of(b"another plan") });
    let (status, _) = executor.call(Method::POST, "apply/begin", other).await;
    assert_eq!(status, StatusCode::CONFLICT, "but not with another plan");

    let row = plane.db().conn().await.unwrap().query_one(BEGUN, &[&run]).await.unwrap();
    assert_eq!(row.get::<_, i64>(0), 1);
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_step_report_and_the_end_of_its_run_are_no_deadlock() {
    let plane = TestPlane::start().await;
    let (_, run) = triggered(&plane, "plan").await;
    let executor = FakeExecutor::start(&plane).await;
    let mut conn = plane.db().conn().await.unwrap();
    // As whoever ends a run: the run first, then its steps.
    let ending = conn.begin().await.unwrap();
    ending.query("SELECT 1 FROM runs WHERE id = $1 FOR NO KEY UPDATE", &[&run]).await.unwrap();
    let report = executor.step(5, json!({ "status": "running" }));
    let end = async {
        plane.until_a_lock_is_waited_for().await;
        ending.execute("UPDATE run_steps SET summary = NULL WHERE run_id = $1", &[&run]).await.unwrap();
        ending.commit().await.unwrap();
    };
    let ((status, answer), ()) = tokio::join!(report, end);
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
}

#[tokio::test]
async fn enqueueing_does_not_wait_for_whoever_changes_the_units_counter() {
    let plane = TestPlane::start().await;
    let (token, run) = triggered(&plane, "apply").await;
    FakeExecutor::start(&plane).await.plan(ADDS_ONE).await;
    let mut conn = plane.db().conn().await.unwrap();
    let ending = conn.begin().await.unwrap();
    ending.execute("UPDATE queue_units SET running = running", &[]).await.unwrap();
    let path = format!("/api/v1/approvals/{run}/approve");
    let approval = plane.call("POST", &path, token.as_str(), json!({}));
    let (status, _, answer) = tokio::time::timeout(Duration::from_secs(20), approval).await.expect("no wait");
    assert_eq!(status, StatusCode::OK, "{answer}");
    ending.commit().await.unwrap();
}
