//! Runs from trigger to end, with an executor played by the test: lifecycle, approval, cancellation, fencing.

mod approvals;
mod artifacts;
mod attempts;
mod decisions;
mod empty_plans;
mod identity;
mod requests;
mod touched;

use std::time::Duration;

use http::{Method, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::db::Query;
use plumbline_core::protocol::ArtifactKind;
use plumbline_core::runs::sweeps;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::executors::{ADDS_ONE, FakeExecutor, NO_CHANGES, claim_and_prepare, nonce, trade};
use crate::world::{World, post};

#[tokio::test]
async fn a_plan_run_goes_from_pending_to_planned_and_holds_nothing() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    assert_eq!(world.status(&id).await, "pending");

    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(world.status(&id).await, "running");
    executor.pin().await;
    assert_eq!(world.status(&id).await, "planning");
    let summary = plumbline_core::runs::summarise(ADDS_ONE.as_bytes()).ok();
    assert_eq!(executor.report_plan(ADDS_ONE, summary).await.0, StatusCode::NO_CONTENT);

    let run = world.run(&id).await;
    assert_eq!(run["status"], "planned");
    assert_eq!(run["plan_summary"]["add"], 1);
    assert_eq!(run["has_changes"], true);
    assert!(run["completed_at"].is_string());
    let (_, plan) = world.get(&format!("runs/{id}/plan")).await;
    assert_eq!(plan["resource_changes"][0]["address"], "terraform_data.a");
    let (_, steps) = world.get(&format!("runs/{id}/steps")).await;
    assert_eq!(steps["items"].as_array().unwrap().len(), 6);
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!(workspace["active_run_id"], Value::Null);
}

#[tokio::test]
async fn a_plan_too_large_to_be_read_is_shown_by_its_summary() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await;
    let conn = world.plane.db().conn().await.unwrap();
    // Recorded as larger than anything that one answer may read, and gone: reading either would be an error.
    const GROW: &str = "UPDATE blobs SET size_bytes = 33 << 20 RETURNING key";
    for row in conn.query(GROW, &[]).await.unwrap() {
        world.plane.deps.blobs.delete(row.get(0)).await.unwrap();
    }
    drop(conn);
    let (status, plan) = world.get(&format!("runs/{id}/plan")).await;
    assert_eq!(status, StatusCode::OK, "{plan}");
    assert_eq!((&plan["summary"]["add"], &plan["truncated"]), (&json!(1), &json!(true)), "{plan}");
    assert_eq!((&plan["resource_changes"], &plan["text"]), (&json!([]), &Value::Null), "{plan}");
}

#[tokio::test]
async fn a_second_run_waits_with_its_position_and_starts_when_the_first_ends() {
    let world = World::new().await;
    let first = world.planned().await;
    let second = world.trigger("apply").await;
    let third = world.trigger("destroy").await;
    assert_eq!(world.run(&second).await["waiting"]["position"], 1);
    assert_eq!(world.run(&third).await["waiting"]["position"], 2);
    assert!(FakeExecutor::try_start(&world.plane).await.is_none(), "a waiting run has no task");

    let plan = world.trigger("plan").await;
    assert_eq!(world.run(&plan).await["waiting"], Value::Null, "plan-only runs never wait");

    let (status, _) = world.post(&format!("approvals/{first}/reject"), json!({"comment": "no"})).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(world.run(&second).await["waiting"], Value::Null);
    assert_eq!(world.run(&third).await["waiting"]["position"], 1);
    assert_eq!(world.live_tasks("run_plan").await, 2);
}

#[tokio::test]
async fn cancelling_stops_a_run_wherever_it_stands() {
    let world = World::new().await;
    let held = world.planned().await;
    let waiting = world.trigger("apply").await;
    let cancel = |id: String| {
        let world = &world;
        async move { world.post(&format!("runs/{id}/cancel"), json!({})).await }
    };
    assert_eq!(cancel(waiting.clone()).await.1["status"], "cancelled");
    assert_eq!(cancel(held).await.1["status"], "cancelled");

    let queued = world.trigger("apply").await;
    assert_eq!(cancel(queued.clone()).await.1["status"], "cancelled");
    assert_eq!(world.live_tasks("run_plan").await, 0);
    let (status, problem) = cancel(queued).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!((problem["from"].as_str(), problem["to"].as_str()), (Some("cancelled"), Some("cancelled")));

    let launched = world.trigger("apply").await;
    let (_, launch) = claim_and_prepare(&world.plane).await.unwrap();
    assert_eq!(cancel(launched).await.1["status"], "cancelled");
    assert_eq!(trade(&world.plane, &launch.ticket, &nonce(1)).await.0, StatusCode::GONE);

    let planning = world.trigger("apply").await;
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(cancel(planning).await.1["status"], "cancelled");
    assert_eq!(executor.heartbeat().await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn a_log_grows_by_offsets_and_reads_the_same_once_it_is_moved() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let (_, answer) = executor.log(1, 0, "grün".as_bytes()).await;
    assert_eq!(answer["next_offset"], 5);
    assert_eq!(
        executor.log(1, 0, "grün".as_bytes()).await.1["next_offset"],
        5,
        "a repeated chunk counts once"
    );
    let (status, gap) = executor.log(1, 9, b"x").await;
    assert_eq!((status, gap["next_offset"].as_i64()), (StatusCode::CONFLICT, Some(5)));
    executor.log(1, 5, b" and more").await;

    let path = |offset: i64, limit: i64| format!("runs/{id}/logs?position=1&offset={offset}&limit={limit}");
    let (_, page) = world.get(&path(0, 3)).await;
    assert_eq!(
        (page["text"].as_str(), page["next_offset"].as_i64()),
        (Some("gr"), Some(2)),
        "no half characters"
    );
    let (_, page) = world.get(&path(2, 100)).await;
    assert_eq!((page["text"].as_str(), page["complete"].as_bool()), (Some("ün and more"), Some(false)));

    executor.step(1, json!({"status": "succeeded"})).await;
    executor.fail("permanent", "enough").await;
    assert_eq!(sweeps::compact_logs(&world.plane.as_function(Function::Reconciler)).await.unwrap(), 1);
    assert_eq!(sweeps::compact_logs(&world.plane.as_function(Function::Reconciler)).await.unwrap(), 0);
    let (_, page) = world.get(&path(0, 100)).await;
    assert_eq!((page["text"].as_str(), page["complete"].as_bool()), (Some("grün and more"), Some(true)));
    let conn = world.plane.db().conn().await.unwrap();
    assert!(conn.query("SELECT 1 FROM log_chunks", &[]).await.unwrap().is_empty());
}

#[tokio::test]
async fn an_old_plan_cannot_be_approved_and_is_swept() {
    let world = World::new().await;
    let id = world.planned().await;
    world.plane.advance(Duration::from_secs(25 * 3600)).await;
    let token = world.plane.user(Role::Operator).await;
    let (status, problem) =
        post(&world.plane, &token, &format!("/api/v1/approvals/{id}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::CONFLICT, "{problem}");
    assert_eq!(problem["type"], "urn:plumbline:problem:plan-expired");
    let reconciler = world.plane.as_function(Function::Reconciler);
    let sweeps = futures::future::join_all((0..4).map(|_| sweeps::expire_plans(&reconciler))).await;
    assert_eq!(sweeps.into_iter().map(Result::unwrap).sum::<usize>(), 1);
    let conn = world.plane.db().conn().await.unwrap();
    let run: uuid::Uuid = id.parse().unwrap();
    let row = conn.query_one("SELECT status, status_reason FROM runs WHERE id = $1", &[&run]).await.unwrap();
    assert_eq!((row.get::<_, &str>(0), row.get::<_, &str>(1)), ("cancelled", "expired"));
}

#[tokio::test]
async fn a_lost_apply_blocks_its_workspace_until_a_person_has_looked() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let lease =
        plumbline_core::tasks::Lease { task_id: executor.bundle.task_id, token: executor.launch.lease_token };
    let deps = &world.plane.deps;
    deps.db
        .transaction(async |tx| -> anyhow::Result<()> {
            let task = plumbline_core::tasks::service::lock_held(tx, lease).await?;
            let lost = plumbline_core::tasks::FailedAttempt::Permanent("stopped answering".into());
            plumbline_core::tasks::service::fail(tx, lease, &lost, 0.5, &deps.limits).await?;
            plumbline_core::dispatch::dead_lettered(tx, deps.ids, &task, "stopped answering").await?;
            Ok(())
        })
        .await
        .unwrap();
    let run = world.run(&id).await;
    assert_eq!((run["status"].as_str(), run["status_reason"].as_str()), (Some("failed"), Some("lost")));
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!(workspace["blocked"]["run_id"], json!(id));

    let body = json!({"workspace_id": world.workspace, "command": "apply"});
    let (status, problem) = world.post("runs", body).await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert_eq!(problem["type"], "urn:plumbline:problem:workspace-blocked");
    world.trigger("plan").await;

    let path = format!("workspaces/{}/unblock", world.workspace);
    assert_eq!(world.post(&path, json!({"note": "looked at it"})).await.0, StatusCode::OK);
    world.trigger("apply").await;
}

#[tokio::test]
async fn a_finished_plan_can_be_promoted_to_an_apply() {
    let world = World::new().await;
    let id = world.trigger("plan").await;
    FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await;
    let (status, promoted) = world.post(&format!("runs/{id}/promote"), json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{promoted}");
    assert_eq!(
        (promoted["command"].as_str(), promoted["trigger_source"].as_str()),
        (Some("apply"), Some("promotion"))
    );
    let waiting = promoted["id"].as_str().unwrap();
    assert_eq!(world.post(&format!("runs/{waiting}/promote"), json!({})).await.0, StatusCode::CONFLICT);
}
