//! What people decide about runs and what they read of it: rejections, waiting, branches, words for the history.

use super::*;
use crate::plane::slug;

#[tokio::test]
async fn a_rejected_run_is_cancelled_for_good_and_says_so() {
    let world = World::new().await;
    let id = world.planned().await;
    let operator = world.plane.user(Role::Operator).await;
    let path = format!("/api/v1/approvals/{id}/reject");
    let (status, run) = post(&world.plane, &operator, &path, json!({"comment": "too large"})).await;
    assert_eq!(status, StatusCode::OK, "{run}");
    for run in [run, world.run(&id).await] {
        assert_eq!(
            (&run["status"], &run["status_reason"]),
            (&json!("cancelled"), &json!("rejected")),
            "{run}"
        );
        assert_eq!(run["error"], "too large", "{run}");
        assert!(run["completed_at"].is_string() && run["approved_at"].is_null(), "{run}");
    }
    let (_, log) = world.get(&format!("audit?run_id={id}&action=run.reject")).await;
    let entry = &log["items"][0];
    assert!(entry["user_id"].is_string(), "{log}");
    assert_eq!(
        (&entry["details"]["to"], &entry["details"]["error"]),
        (&json!("cancelled"), &json!("too large"))
    );
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!(workspace["active_run_id"], Value::Null);
    for decision in ["reject", "approve"] {
        let (status, problem) = world.post(&format!("approvals/{id}/{decision}"), json!({})).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "illegal-transition"), "{problem}");
        assert_eq!(problem["from"], "cancelled");
    }
    let steps = world.get(&format!("runs/{id}/steps")).await.1["items"].clone();
    let open = |step: &&Value| matches!(step["status"].as_str(), Some("pending" | "running"));
    assert_eq!(steps.as_array().unwrap().iter().filter(open).count(), 0, "{steps}");
}

#[tokio::test]
async fn a_waiting_run_says_what_it_waits_for() {
    let world = World::new().await;
    let (_, executor) = world.applying().await;
    let waiting =
        [world.trigger("apply").await, world.trigger("apply").await, world.trigger("destroy").await];
    let reasons = async || {
        let mut reasons = Vec::new();
        for id in &waiting {
            reasons.push(world.run(id).await["waiting"]["reason"].as_str().unwrap().to_owned());
        }
        reasons
    };
    assert_eq!(
        reasons().await,
        [
            "another run holds the workspace",
            "another run holds the workspace, and one more waits before this one",
            "another run holds the workspace, and 2 more wait before this one",
        ]
    );
    // The run that held it has left it blocked: now they wait for a person.
    executor.call(Method::POST, "fail", json!({"kind": "timed_out", "error": "killed"})).await;
    let blocked = reasons().await;
    assert!(
        blocked[0].starts_with("the workspace is blocked (Terraform was ended before it was done"),
        "{blocked:?}"
    );
    assert!(blocked[1].ends_with("), and one more waits before this one"), "{blocked:?}");
    let unblock = format!("workspaces/{}/unblock", world.workspace);
    assert_eq!(world.post(&unblock, json!({"note": "looked at it"})).await.0, StatusCode::OK);
    assert_eq!(world.run(&waiting[0]).await["waiting"], Value::Null);
    assert_eq!(world.run(&waiting[1]).await["waiting"]["position"], 1);
}

#[tokio::test]
async fn a_run_takes_its_own_branch_and_leaves_the_workspaces_alone() {
    let world = World::new().await;
    let body = json!({"workspace_id": world.workspace, "command": "plan", "branch": "feature/a/b"});
    let (_, run) = world.post("runs", body).await;
    assert_eq!(run["branch"], "feature/a/b");
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.bundle.source.branch, "feature/a/b");
    executor.plan(ADDS_ONE).await;
    let (_, workspace) = world.get(&format!("workspaces/{}", world.workspace)).await;
    assert_eq!((&workspace["repo_ref"], &workspace["version"]), (&json!("main"), &json!(1)), "{workspace}");

    // An apply of it is of the same branch; a run that names none is of the workspace's.
    let (_, promoted) = world.post(&format!("runs/{}/promote", run["id"].as_str().unwrap()), json!({})).await;
    assert_eq!(promoted["branch"], "feature/a/b");
    let apply = FakeExecutor::start(&world.plane).await;
    assert_eq!(apply.bundle.source.branch, "feature/a/b");
    apply.plan(ADDS_ONE).await;
    world.trigger("plan").await;
    assert_eq!(FakeExecutor::start(&world.plane).await.bundle.source.branch, "main");
}

#[tokio::test]
async fn words_for_the_history_are_kept_to_a_length() {
    let world = World::new().await;
    let id = world.planned().await;
    let long = "ä".repeat(1_001);
    let message = json!({"workspace_id": world.workspace, "command": "plan", "message": long});
    for (path, body, field) in [
        ("runs".to_owned(), message, "message"),
        (format!("runs/{id}/cancel"), json!({"reason": long}), "reason"),
        (format!("approvals/{id}/approve"), json!({"comment": long}), "comment"),
        (format!("approvals/{id}/reject"), json!({"comment": long}), "comment"),
    ] {
        let (status, problem) = world.post(&path, body).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!(field)), "{path}");
    }
    let fits = json!({"comment": "ä".repeat(1_000)});
    assert_eq!(world.post(&format!("approvals/{id}/approve"), fits).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_list_of_one_workspaces_runs_has_no_others() {
    let world = World::new().await;
    let other = json!({"name": "web", "environment": "dev", "repo_url": "https://git.example.com/web.git"});
    let (_, other) = world.post("workspaces", other).await;
    let mine = [world.trigger("plan").await, world.trigger("apply").await];
    let theirs = json!({"workspace_id": other["id"], "command": "plan"});
    let (_, theirs) = world.post("runs", theirs).await;
    let ids = async |query: &str| -> Vec<Value> {
        let (status, page) = world.get(&format!("runs?{query}")).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        page["items"].as_array().unwrap().iter().map(|run| run["id"].clone()).collect()
    };
    assert_eq!(ids(&format!("workspace_id={}", world.workspace)).await, [json!(mine[1]), json!(mine[0])]);
    assert_eq!(ids(&format!("workspace_id={}", other["id"].as_str().unwrap())).await, [theirs["id"].clone()]);
    assert_eq!(ids(&format!("workspace_id={}&command=apply", world.workspace)).await, [json!(mine[1])]);
    let first = ids(&format!("workspace_id={}&limit=1", world.workspace)).await;
    let next = format!("workspace_id={}&cursor={}", world.workspace, first[0].as_str().unwrap());
    assert_eq!(ids(&next).await, [json!(mine[0])]);
    assert_eq!(world.get("runs?workspace_id=nonsense").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    assert_eq!(ids("workspace_id=01890000-0000-7000-8000-000000000000").await, [json!(null); 0]);
}
