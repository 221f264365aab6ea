//! A person's lock of a workspace: what it keeps from beginning, what goes on under it, and who may end it.

use std::collections::BTreeSet;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::limits::Limits;
use plumbline_core::runs::sweeps;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::executors::{self, ADDS_ONE, FakeExecutor, NO_CHANGES};
use crate::plane::{TestPlane, slug};
use crate::store::state_client::{self, Backend, state};
use crate::world::{World, post};

impl World {
    /// Locks as somebody.
    async fn lock_as(&self, token: &str, reason: &str) -> (StatusCode, Value) {
        let path = format!("/api/v1/workspaces/{}/lock", self.workspace);
        post(&self.plane, token, &path, json!({ "reason": reason })).await
    }

    async fn unlock_as(&self, token: &str) -> (StatusCode, Value) {
        let path = format!("/api/v1/workspaces/{}/unlock", self.workspace);
        let (status, _, body) = self.plane.call("POST", &path, token, None).await;
        (status, body)
    }

    /// An operator who holds the lock.
    async fn locked(&self) -> String {
        let holder = self.plane.user(Role::Operator).await;
        let (status, locked) = self.lock_as(&holder, "moving the database by hand").await;
        assert_eq!(status, StatusCode::OK, "{locked}");
        holder
    }

    async fn approve(&self, id: &str) -> (StatusCode, Value) {
        self.post(&format!("approvals/{id}/approve"), json!({})).await
    }
}

#[tokio::test]
async fn under_a_lock_runs_wait_and_say_who_holds_it_and_begin_once_it_ends() {
    let world = World::new().await;
    let holder = world.locked().await;
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    let who = workspace["locked"]["who"].as_str().unwrap().to_owned();
    assert_eq!(workspace["locked"]["reason"], "moving the database by hand", "{workspace}");

    let (first, second) = (world.trigger("apply").await, world.trigger("destroy").await);

    let held = format!("the workspace is locked by {who} (moving the database by hand)");
    assert_eq!(world.run(&first).await["waiting"]["reason"], held);
    let behind = format!("{held}, and one more waits before this one");
    assert_eq!(world.run(&second).await["waiting"]["reason"], behind);
    assert_eq!(sweeps::start_waiting(&world.plane.as_function(Function::Reconciler)).await.unwrap(), 0);
    assert_eq!(world.live_tasks("run_plan").await, 0);

    assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);

    assert_eq!(world.live_tasks("run_plan").await, 1);
    assert_eq!(world.run(&first).await["waiting"], Value::Null);
    assert_eq!(world.run(&second).await["waiting"]["reason"], "another run holds the workspace");
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn runs_that_only_plan_go_on_under_a_lock() {
    let world = World::new().await;
    world.locked().await;
    let id = world.trigger("plan").await;
    assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.status(&id).await, "planned");
    let (status, promoted) = world.post(&format!("runs/{id}/promote"), json!({})).await;
    assert_eq!(status, StatusCode::CREATED, "{promoted}");
    assert!(promoted["waiting"]["reason"].as_str().unwrap().contains("is locked by"), "{promoted}");
}

#[tokio::test]
async fn a_run_that_has_not_begun_waits_again_even_with_an_executor_on_its_way() {
    for claimed in [false, true] {
        let world = World::new().await;
        let id = world.trigger("apply").await;
        let late = if claimed { executors::claim_and_prepare(&world.plane).await } else { None };
        assert_eq!(late.is_some(), claimed);

        let holder = world.locked().await;

        let run = world.run(&id).await;
        assert_eq!((run["status"].as_str(), run["waiting"]["position"].as_i64()), (Some("pending"), Some(1)));
        if let Some((_, launch)) = late {
            let (status, _) = executors::trade(&world.plane, &launch.ticket, &executors::nonce(1)).await;
            assert_eq!(status, StatusCode::GONE);
        }
        assert!(FakeExecutor::try_start(&world.plane).await.is_none());
        assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
        assert_eq!(FakeExecutor::start(&world.plane).await.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
        assert_eq!(world.status(&id).await, "awaiting_approval");
    }
}

#[tokio::test]
async fn a_plan_under_way_ends_at_its_approval_which_is_refused_until_the_lock_ends() {
    let world = World::new().await;
    let id = world.trigger("apply").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let holder = world.locked().await;
    assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    for token in [&world.token, &holder] {
        let path = format!("/api/v1/approvals/{id}/approve");
        let (status, problem) = post(&world.plane, token, &path, json!({})).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-locked"), "{problem}");
        let detail = problem["detail"].as_str().unwrap();
        assert!(detail.contains(problem["locked_by"].as_str().unwrap()), "{problem}");
        assert!(detail.contains("moving the database by hand"), "{problem}");
    }
    assert_eq!(world.status(&id).await, "awaiting_approval");
    assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
    assert_eq!(world.approve(&id).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_running_apply_is_not_disturbed_and_nothing_follows_it() {
    let world = World::new().await;
    let (id, executor) = world.applying().await;
    let next = world.trigger("apply").await;
    let holder = world.locked().await;
    assert_eq!(executor.heartbeat().await.1["cancel"], json!("no"));
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
    assert_eq!(world.status(&id).await, "applied");
    assert!(world.run(&next).await["waiting"]["reason"].as_str().unwrap().contains("is locked by"));
    assert_eq!(world.live_tasks("run_plan").await, 0);
    assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
    assert_eq!(world.live_tasks("run_plan").await, 1);
}

#[tokio::test]
async fn an_approved_apply_that_has_not_begun_ends_and_says_who_locked() {
    let world = World::new().await;
    let id = world.planned().await;
    assert_eq!(world.approve(&id).await.0, StatusCode::OK);
    let executor = FakeExecutor::start(&world.plane).await;
    world.locked().await;
    let (status, problem) = executor.begin_apply().await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-locked"), "{problem}");
    let run = world.run(&id).await;
    assert_eq!((&run["status"], &run["status_reason"]), (&json!("failed"), &json!("workspace_locked")));
    assert!(run["error"].as_str().unwrap().contains("moving the database by hand"), "{run}");
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!((&workspace["active_run_id"], &workspace["blocked"]), (&Value::Null, &Value::Null));
}

#[tokio::test]
async fn an_empty_plan_approves_itself_only_once_the_lock_ends() {
    for (skip_apply, status) in [(false, "applying"), (true, "applied")] {
        let world = World::new().await;
        let body = json!({
            "workspace_id": world.workspace, "command": "apply",
            "auto_approve_if_no_changes": true, "auto_approve_skip_apply": skip_apply,
        });
        let (_, run) = world.post("runs", body).await;
        let id = run["id"].as_str().unwrap();
        let executor = FakeExecutor::start(&world.plane).await;
        let holder = world.locked().await;
        assert_eq!(executor.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
        assert_eq!(world.status(id).await, "awaiting_approval");
        assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
        assert_eq!(world.status(id).await, status);
    }
}

#[tokio::test]
async fn an_empty_plan_on_a_state_that_was_changed_under_the_lock_waits_for_a_person() {
    let world = World::new().await;
    let flags = json!({
        "workspace_id": world.workspace, "command": "apply", "auto_approve_if_no_changes": true,
    });
    let (_, run) = world.post("runs", flags).await;
    let executor = FakeExecutor::start(&world.plane).await;
    let holder = world.locked().await;
    assert_eq!(executor.plan(NO_CHANGES).await.0, StatusCode::NO_CONTENT);
    world.move_state(7).await;
    assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
    assert_eq!(world.status(run["id"].as_str().unwrap()).await, "awaiting_approval");
}

#[tokio::test]
async fn a_lock_is_one_persons_and_ends_by_them_or_by_an_admin_on_record() {
    let world = World::new().await;
    let holder = world.locked().await;
    let other = world.plane.user(Role::Operator).await;
    let (status, first) = world.lock_as(&holder, "moving the database by hand").await;
    assert_eq!(status, StatusCode::OK, "the same request again");
    let (status, second) = world.lock_as(&holder, "still moving it").await;
    assert_eq!((status, &second["locked"]["reason"]), (StatusCode::OK, &json!("still moving it")));
    assert_eq!(second["locked"]["at"], first["locked"]["at"], "it is as old as it was");
    for (status, problem) in [world.lock_as(&other, "mine").await, world.unlock_as(&other).await] {
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-locked"), "{problem}");
        assert_eq!(problem["reason"], "still moving it");
    }
    let viewer = world.plane.user(Role::Viewer).await;
    assert_eq!(world.lock_as(&viewer, "mine").await.0, StatusCode::FORBIDDEN);
    for reason in ["", " ", &"x".repeat(1001)] {
        assert_eq!(world.lock_as(&holder, reason).await.0, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let (status, unlocked) = world.unlock_as(&world.token).await;
    assert_eq!((status, &unlocked["locked"]), (StatusCode::OK, &Value::Null), "an admin");
    let (status, problem) = world.unlock_as(&holder).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-not-locked"));
    assert_eq!(world.lock_as(&other, "mine").await.0, StatusCode::OK);
    assert_eq!(world.unlock_as(&other).await.0, StatusCode::OK);

    let (_, log) =
        world.get(&format!("audit?workspace_id={}&action=workspace.unlock", world.workspace)).await;
    let forced: Vec<&Value> =
        log["items"].as_array().unwrap().iter().map(|entry| &entry["details"]["forced"]).collect();
    assert_eq!(forced, [&json!(false), &json!(true)], "{log}");
    let (_, log) = world.get(&format!("audit?workspace_id={}&action=workspace.lock", world.workspace)).await;
    assert_eq!(log["items"].as_array().unwrap().len(), 3, "a repetition is no lock: {log}");
}

#[tokio::test]
async fn a_locked_workspace_is_not_deleted() {
    let world = World::new().await;
    let holder = world.locked().await;
    let path = format!("/api/v1/workspaces/{}", world.workspace);
    let (status, _, problem) = world.plane.call("DELETE", &path, &*world.token, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-locked"), "{problem}");
    assert_eq!(world.unlock_as(&holder).await.0, StatusCode::OK);
    assert_eq!(world.plane.call("DELETE", &path, &*world.token, None).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn another_persons_terraform_meets_a_lock_info_that_says_who_and_why() {
    let backend = Backend::start().await;
    let (status, ..) = backend.write(None, &state(1, "l", "a")).await;
    assert_eq!(status, StatusCode::OK);
    let version = backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    assert_eq!(backend.write(None, &state(2, "l", "b")).await.0, StatusCode::OK);
    let holder = backend.plane.user(Role::Operator).await;
    let lock = format!("/api/v1/workspaces/{}/lock", backend.workspace);
    let (status, locked) = post(&backend.plane, &holder, &lock, json!({ "reason": "moving it" })).await;
    assert_eq!(status, StatusCode::OK, "{locked}");

    for (status, _, body) in [backend.lock("l-1").await, backend.write(None, &state(3, "l", "c")).await] {
        let info: Value = serde_json::from_slice(&body).unwrap();
        assert_eq!(status, StatusCode::LOCKED, "{info}");
        assert_eq!((&info["Who"], &info["Info"]), (&locked["locked"]["who"], &json!("moving it")), "{info}");
        assert!(info["ID"].is_string() && info["Created"].is_string(), "{info}");
    }
    let (status, problem) = backend.api("POST", &format!("state-versions/{version}/rollback")).await;
    assert_eq!((status, slug(&problem)), (StatusCode::LOCKED, "state-locked"), "{problem}");
    let (status, _, forced) = backend.send_as(&backend.token, "UNLOCK", &backend.path(), "").await;
    assert_eq!(status, StatusCode::CONFLICT);
    assert!(String::from_utf8_lossy(&forced).contains("plumb workspace unlock"), "{forced:?}");

    let own = state_client::lock_info("l-2");
    let (status, ..) = backend.send_as(&holder, "LOCK", &backend.path(), own.clone()).await;
    assert_eq!(status, StatusCode::OK, "the holder's own Terraform works");
    let written = backend.path() + "?ID=l-2";
    let (status, ..) = backend.send_as(&holder, "POST", &written, state(3, "l", "c")).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(backend.send_as(&holder, "UNLOCK", &backend.path(), own).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_persons_terraform_that_had_the_states_lock_before_may_finish() {
    let backend = Backend::start().await;
    assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
    let holder = backend.plane.user(Role::Operator).await;
    let lock = format!("/api/v1/workspaces/{}/lock", backend.workspace);
    assert_eq!(post(&backend.plane, &holder, &lock, json!({ "reason": "r" })).await.0, StatusCode::OK);
    assert_eq!(backend.write(Some("l-1"), &state(1, "l", "a")).await.0, StatusCode::OK);
    assert_eq!(backend.unlock("l-1").await.0, StatusCode::OK);
    assert_eq!(backend.lock("l-2").await.0, StatusCode::LOCKED);
}

/// One step of the race, by turns.
async fn step(world: &World, people: &[String], n: usize) {
    let person = &people[n % people.len()];
    match n % 8 {
        0 => drop(world.lock_as(person, "race").await),
        1 => drop(world.unlock_as(&world.token).await),
        2 => {
            let body = json!({"workspace_id": world.workspace, "command": "apply"});
            drop(world.post("runs", body).await);
        }
        3 => {
            let (_, runs) = world.get("runs?status=awaiting_approval").await;
            for run in runs["items"].as_array().unwrap() {
                drop(world.approve(run["id"].as_str().unwrap()).await);
            }
        }
        _ => {
            let Some((_, launch)) = executors::claim_and_prepare(&world.plane).await else { return };
            let (status, bundle) = executors::trade(&world.plane, &launch.ticket, &executors::nonce(1)).await;
            if status != StatusCode::OK {
                return;
            }
            let executor =
                FakeExecutor::traded(&world.plane, launch, serde_json::from_value(bundle).unwrap());
            if executor.bundle.plan.is_none() {
                drop(executor.plan(ADDS_ONE).await);
            } else if executor.begin_apply().await.0 == StatusCode::NO_CONTENT {
                assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
            }
        }
    }
}

#[tokio::test]
async fn thirty_two_at_once_never_bring_a_run_to_apply_under_a_lock() {
    let limits = Limits { bcrypt_cost: 4, ..Limits::default() };
    let world = World::on(TestPlane::start_with(limits, 32).await).await;
    let people =
        [world.token.clone(), world.plane.user(Role::Operator).await, world.plane.user(Role::Operator).await];
    for round in 0..10 {
        let steps = (0..32).map(|n| step(&world, &people, n + round));
        futures::future::join_all(steps).await;
        let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
        if !workspace["locked"].is_null() {
            assert_eq!(world.unlock_as(&world.token).await.0, StatusCode::OK);
        }
        // One of each while nobody locks, so that every round has something to approve and to apply.
        step(&world, &people, 4).await;
    }

    // Each entry was written under the workspace's row lock, so the log's order is the order of what happened.
    let conn = world.plane.db().conn().await.unwrap();
    let entries = plumbline_core::db::Query::query(
        &conn,
        "SELECT action FROM audit_entries WHERE workspace_id IS NOT NULL ORDER BY sequence",
        &[],
    )
    .await
    .unwrap();
    let (mut locked, mut seen) = (false, BTreeSet::new());
    for entry in &entries {
        let action: &str = entry.get(0);
        match action {
            "workspace.lock" => locked = true,
            "workspace.unlock" => locked = false,
            "run.approve" | "run.apply_begin" => assert!(!locked, "{action} under a lock"),
            _ => {}
        }
        seen.insert(action.to_owned());
    }
    for action in ["workspace.lock", "workspace.unlock", "run.trigger", "run.approve", "run.apply_begin"] {
        assert!(seen.contains(action), "the race has each of its parts: {seen:?}");
    }
    drop(conn);
    // Nothing is stuck: what waits has begun, or something else holds the workspace.
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    let (_, pending) = world.get("runs?status=pending").await;
    let waits = pending["items"].as_array().unwrap().iter().any(|run| !run["waiting"].is_null());
    assert!(!waits || workspace["active_run_id"].is_string(), "{workspace} {pending}");
}
