//! What executors may do in a run, and what they no longer may.

use super::*;

#[tokio::test]
async fn a_plan_is_written_once_per_attempt() {
    let world = World::new().await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.upload(ArtifactKind::PlanFile, b"one").await, StatusCode::NO_CONTENT);
    assert_eq!(executor.upload(ArtifactKind::PlanFile, b"one").await, StatusCode::NO_CONTENT);
    assert_eq!(executor.upload(ArtifactKind::PlanFile, b"two").await, StatusCode::CONFLICT);
    assert_eq!(executor.upload(ArtifactKind::Outputs, b"{}").await, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_begun_apply_is_asked_to_stop_and_ends_as_failed_with_the_reason() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let (status, run) = world.post(&format!("runs/{id}/cancel"), json!({"reason": "wrong account"})).await;
    assert_eq!((status, run["status"].as_str()), (StatusCode::OK, Some("applying")));
    assert_eq!(run["cancel_requested"], true);
    assert_eq!(executor.heartbeat().await.1["cancel"], "interrupt");
    assert_eq!(executor.fail("cancelled", "interrupted").await.0, StatusCode::NO_CONTENT);
    let run = world.run(&id).await;
    assert_eq!((run["status"].as_str(), run["status_reason"].as_str()), (Some("failed"), Some("cancelled")));
}

#[tokio::test]
async fn a_ticket_is_good_for_one_nonce_and_a_second_ends_the_attempt() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let ticket = &executor.launch.ticket;
    let (status, again) = trade(&world.plane, ticket, &nonce(1)).await;
    assert_eq!((status, again["token"].as_str()), (StatusCode::OK, Some(executor.bundle.token.as_str())));

    assert_eq!(trade(&world.plane, ticket, &nonce(2)).await.0, StatusCode::CONFLICT);
    assert_eq!(executor.heartbeat().await.0, StatusCode::CONFLICT, "the attempt is over");
    let conn = world.plane.db().conn().await.unwrap();
    let alarms =
        conn.query("SELECT 1 FROM audit_entries WHERE action = 'executor.ticket_reused'", &[]).await.unwrap();
    assert_eq!(alarms.len(), 1);
    assert_eq!(trade(&world.plane, "made up", &nonce(1)).await.0, StatusCode::GONE);
    assert_eq!(world.status(&id).await, "running", "the run goes on with another attempt");
}

#[tokio::test]
async fn a_transient_failure_is_tried_again_with_fresh_steps_until_attempts_are_spent() {
    let world = World::new().await;
    let id = world.trigger("apply").await;
    for attempt in 1..=3 {
        let executor = FakeExecutor::start(&world.plane).await;
        assert_eq!(executor.bundle.attempt, attempt);
        let (_, steps) = world.get(&format!("runs/{id}/steps")).await;
        assert_eq!(steps["items"][0]["status"], "pending");
        assert_eq!(steps["items"][0]["attempt"], attempt);
        executor.step(1, json!({"status": "running"})).await;
        assert_eq!(executor.fail("transient", "no route to host").await.0, StatusCode::NO_CONTENT);
        world.plane.advance(Duration::from_secs(900)).await;
    }
    let run = world.run(&id).await;
    assert_eq!((run["status"].as_str(), run["error"].as_str()), (Some("failed"), Some("no route to host")));
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!(workspace["active_run_id"], Value::Null);
    assert_eq!(workspace["blocked"], Value::Null, "a plan changes nothing, so nothing is blocked");
}

#[tokio::test]
async fn an_executor_that_lost_its_lease_writes_nothing_anywhere() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    world.post(&format!("runs/{id}/cancel"), json!({})).await;
    let begin = json!({"kind": "plan_file", "size_bytes": 1, "sha256": "ab".repeat(32)});
    let refused = [
        executor.heartbeat().await,
        executor.step(1, json!({"status": "running"})).await,
        executor.log(1, 0, b"late").await,
        executor.call(Method::POST, "artifacts", begin).await,
        executor.call(Method::POST, "apply/complete", json!({})).await,
        executor.fail("permanent", "late").await,
    ];
    for (status, problem) in refused {
        assert_eq!(status, StatusCode::CONFLICT, "{problem}");
        assert_eq!(problem["type"], "urn:plumbline:problem:lease-lost", "{problem}");
    }
}

#[tokio::test]
async fn an_apply_that_does_not_vouch_for_its_state_blocks_its_workspace() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let killed = json!({"kind": "timed_out", "error": "killed"});
    assert_eq!(executor.call(Method::POST, "fail", killed).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.status(&id).await, "failed");
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert!(workspace["blocked"]["reason"].as_str().unwrap().contains("before it was done"), "{workspace}");
}

#[tokio::test]
async fn a_run_that_can_be_handed_to_no_executor_fails_at_once_and_says_why() {
    let world = World::new().await;
    let secret = json!({"workspace_id": world.workspace, "command": "plan",
                        "variables": [{"key": "password", "value": "hunter2-hunter2", "is_secret": true}]});
    let (_, run) = world.post("runs", secret).await;
    let id = run["id"].as_str().unwrap();
    // As after a restore of the database next to another root key.
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE runs SET variables_sealed = 'other' || variables_sealed", &[]).await.unwrap();
    drop(conn);

    let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
    let (status, problem) = trade(&world.plane, &launch.ticket, &nonce(1)).await;

    assert_eq!(status, StatusCode::GONE, "{problem}");
    let run = world.run(id).await;
    assert_eq!(run["status"], "failed", "{run}");
    assert!(run["error"].as_str().unwrap().contains("sealed under another root key"), "{run}");
    world.plane.advance(Duration::from_secs(3600)).await;
    assert!(FakeExecutor::try_start(&world.plane).await.is_none(), "it is not launched again");
}

#[tokio::test]
async fn an_executor_that_is_to_stop_does_not_begin_an_apply() {
    let world = World::new().await;
    let id = world.planned().await;
    world.post(&format!("approvals/{id}/approve"), json!({})).await;
    let executor = FakeExecutor::start(&world.plane).await;
    let conn = world.plane.db().conn().await.unwrap();
    const ASK: &str = "UPDATE executors SET stop_requested_at = plumbline_now() WHERE id = $1";
    conn.execute(ASK, &[&executor.launch.executor_id]).await.unwrap();
    drop(conn);
    let (status, problem) = executor.begin_apply().await;
    assert_eq!(
        (status, &problem["type"]),
        (StatusCode::CONFLICT, &json!("urn:plumbline:problem:lease-lost"))
    );
    assert_eq!(world.status(&id).await, "applying");
}

#[tokio::test]
async fn the_tool_that_planned_is_the_tool_of_every_later_attempt() {
    let world = World::new().await;
    world.trigger("apply").await;
    let first = FakeExecutor::start(&world.plane).await;
    let tofu = json!({"status": "running", "tool": "tofu", "tool_version": "1.8.0"});
    assert_eq!(first.step(3, tofu).await.0, StatusCode::NO_CONTENT);
    let other = json!({"status": "running", "tool": "terraform", "tool_version": "1.8.0"});
    assert_eq!(first.step(3, other).await.0, StatusCode::CONFLICT);
    first.fail("transient", "no route to host").await;
    world.plane.advance(Duration::from_secs(900)).await;
    let second = FakeExecutor::start(&world.plane).await;
    let tool = &second.bundle.tool;
    assert_eq!((tool.name.as_str(), tool.version.as_deref(), tool.pinned), ("tofu", Some("1.8.0"), true));
}
