//! Approving: exactly one wins, and it binds what was planned.

use super::*;

#[tokio::test]
async fn an_approved_run_is_applied_and_every_step_is_audited() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    assert_eq!(world.status(&id).await, "applying");
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.status(&id).await, "applied");
    assert_eq!(
        world.audit_actions(&id).await,
        ["run.trigger", "run.planned", "run.approve", "run.apply_begin", "run.end"]
    );
    let (_, verified) = world.get("audit/verify").await;
    assert_eq!(verified["ok"], true, "{verified}");
}

#[tokio::test]
async fn of_fifty_parallel_approvals_one_wins_and_queues_one_apply() {
    let world = World::new().await;
    let id = world.planned().await;
    let path = format!("approvals/{id}/approve");
    let answers = futures::future::join_all((0..50).map(|_| world.post(&path, json!({})))).await;
    let won = answers.iter().filter(|(status, _)| *status == StatusCode::OK).count();
    assert_eq!(won, 1);
    for (status, problem) in answers.iter().filter(|(status, _)| *status != StatusCode::OK) {
        assert_eq!(*status, StatusCode::CONFLICT, "{problem}");
        assert_eq!(problem["from"], "applying");
        assert_eq!(problem["to"], "applying");
    }
    assert_eq!(world.live_tasks("run_apply").await, 1);
    assert_eq!(world.audit_actions(&id).await.iter().filter(|action| *action == "run.approve").count(), 1);
}

#[tokio::test]
async fn an_approval_after_the_state_moved_is_refused_as_stale() {
    let world = World::new().await;
    let id = world.planned().await;
    world.move_state(7).await;
    let (status, problem) = world.post(&format!("approvals/{id}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["type"], "urn:plumbline:problem:stale-plan");
    assert_eq!(world.status(&id).await, "awaiting_approval");
}

#[tokio::test]
async fn an_apply_whose_state_moved_after_approval_ends_as_stale() {
    let world = World::new().await;
    let id = world.planned().await;
    world.post(&format!("approvals/{id}/approve"), json!({})).await;
    world.move_state(7).await;
    let executor = FakeExecutor::start(&world.plane).await;
    let (status, problem) = executor.begin_apply().await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["type"], "urn:plumbline:problem:stale-plan");
    let run = world.run(&id).await;
    assert_eq!((run["status"].as_str(), run["status_reason"].as_str()), (Some("failed"), Some("stale_plan")));
}

#[tokio::test]
async fn a_swapped_plan_is_refused_at_approval_and_at_apply() {
    let world = World::new().await;
    let id = world.planned().await;
    let other = json!({"digest": "ab".repeat(32)});
    let (status, problem) = world.post(&format!("approvals/{id}/approve"), other).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["type"], "urn:plumbline:problem:digest-mismatch");

    let digest = world.run(&id).await["approval_digest"].clone();
    let (status, _) = world.post(&format!("approvals/{id}/approve"), json!({"digest": digest})).await;
    assert_eq!(status, StatusCode::OK);
    let executor = FakeExecutor::start(&world.plane).await;
    let swapped = json!({"plan_sha256": "cd".repeat(32)});
    let (status, _) = executor.call(Method::POST, "apply/begin", swapped).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(world.status(&id).await, "failed");
}

#[tokio::test]
async fn an_empty_plan_is_applied_without_an_executor_only_if_asked_and_provably_empty() {
    let world = World::new().await;
    let body = json!({"workspace_id": world.workspace, "command": "apply",
                      "auto_approve_if_no_changes": true, "auto_approve_skip_apply": true});
    let (_, run) = world.post("runs", body.clone()).await;
    FakeExecutor::start(&world.plane).await.plan(NO_CHANGES).await;
    let id = run["id"].as_str().unwrap();
    let done = world.run(id).await;
    assert_eq!(
        (done["status"].as_str(), done["status_reason"].as_str()),
        (Some("applied"), Some("no_changes"))
    );
    assert_eq!(
        world.audit_actions(id).await,
        ["run.trigger", "run.planned", "run.auto_approve", "run.apply_skipped"]
    );

    for plan in [ADDS_ONE, r#"{"format_version":"9.0"}"#, r#""""#] {
        let (_, run) = world.post("runs", body.clone()).await;
        FakeExecutor::start(&world.plane).await.plan(plan).await;
        let id = run["id"].as_str().unwrap();
        assert_eq!(world.status(id).await, "awaiting_approval", "{plan}");
        world.post(&format!("approvals/{id}/reject"), json!({})).await;
    }
}
