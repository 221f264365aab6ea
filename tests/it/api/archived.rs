//! Business units that are out of use: nothing new, reads for superadmins, an orderly end for what was under way.

use http::StatusCode;
use plumbline_core::runs::sweeps;
use plumbline_core::tasks::{self, FailedAttempt, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::executors::FakeExecutor;
use crate::plane::{Answer, TestPlane, slug};
use crate::store::state_client::{Backend, lock_info, state};
use crate::world::World;

/// A world whose unit can be archived.
struct Unit {
    world: World,
    root: String,
    path: String,
}

impl Unit {
    async fn new() -> Self {
        let world = World::new().await;
        let root = world.plane.admin_token().await;
        let path = format!("/api/v1/business-units/{}", world.plane.unit("default").await);
        Self { world, root, path }
    }

    fn plane(&self) -> &TestPlane {
        &self.world.plane
    }

    async fn archive(&self) -> Answer {
        self.plane().call("POST", &format!("{}/archive", self.path), &*self.root, None).await
    }

    async fn unarchive(&self) -> Answer {
        self.plane().call("POST", &format!("{}/unarchive", self.path), &*self.root, None).await
    }

    /// As the superadmin, in the unit or in all of them.
    async fn as_root(&self, unit: Option<&str>, method: &str, path: &str, body: Option<Value>) -> Answer {
        let headers: Vec<_> =
            unit.map(|unit| ("x-business-unit", unit)).into_iter().chain([("if-match", "*")]).collect();
        let path = format!("/api/v1/{path}");
        self.plane().call_with(method, &path, self.root.as_str(), body, &headers).await
    }

    async fn sweep(&self) -> usize {
        sweeps::end_archived(&self.plane().as_function(Function::Reconciler)).await.unwrap()
    }
}

fn assert_archived(answer: &Answer, what: &str) {
    let expected = (StatusCode::CONFLICT, "unit-archived");
    assert_eq!((answer.0, slug(&answer.2)), expected, "{what}: {}", answer.2);
}

#[tokio::test]
async fn units_are_archived_and_unarchived_by_superadmins_and_listed_apart() {
    let unit = Unit::new().await;
    let plane = unit.plane();
    let list = async |query: &str| {
        let (status, _, page) = unit.as_root(None, "GET", &format!("business-units{query}"), None).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        let slugs =
            page["items"].as_array().unwrap().iter().map(|one| one["slug"].as_str().unwrap().to_owned());
        slugs.collect::<Vec<_>>()
    };
    plane.unit("blue").await;
    for _ in 0..2 {
        let (status, _, archived) = unit.archive().await;
        assert_eq!(status, StatusCode::OK, "{archived}");
        assert!(archived["archived_at"].is_string());
    }
    assert_eq!(list("").await, ["blue"]);
    assert_eq!(list("?archived=false").await, ["blue"]);
    assert_eq!(list("?archived=true").await, ["default"]);
    let renamed = plane.call("PUT", &unit.path, &*unit.root, json!({ "name": "Other" })).await;
    assert_archived(&renamed, "rename");
    let (_, _, read) = plane.call("GET", &unit.path, &*unit.root, None).await;
    assert!(read["archived_at"].is_string(), "it is still there");

    let member = &unit.world.token;
    for way in ["archive", "unarchive"] {
        let refused = plane.call("POST", &format!("{}/{way}", unit.path), member.as_str(), None).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN);
    }
    for _ in 0..2 {
        let (status, _, back) = unit.unarchive().await;
        assert_eq!((status, &back["archived_at"]), (StatusCode::OK, &Value::Null));
    }
    assert_eq!(list("").await, ["blue", "default"]);
    let member_again = plane.call("GET", "/api/v1/workspaces", member.as_str(), None).await;
    assert_eq!(member_again.0, StatusCode::OK, "memberships were kept");
    for action in ["business_unit.archive", "business_unit.unarchive"] {
        let (_, _, log) = unit.as_root(None, "GET", &format!("audit?action={action}"), None).await;
        assert_eq!(log["items"].as_array().map(Vec::len), Some(1), "{log}");
    }
}

#[tokio::test]
async fn nobody_but_a_superadmin_gets_into_an_archived_unit_and_nobody_changes_anything_in_it() {
    let unit = Unit::new().await;
    let world = &unit.world;
    let planned = world.planned().await;
    let workspace = &world.workspace;
    // A dead letter, which could be replayed.
    let (_, asked) = world.post(&format!("workspaces/{workspace}/branches"), json!({})).await;
    let (worker, limits) = (unit.plane().as_function(Function::Worker), &unit.plane().deps.limits);
    let claimed = tasks::service::claim(&worker.db, TaskClass::Short, "test", 1, limits).await.unwrap();
    let failure = FailedAttempt::Permanent("the forge said no".into());
    let failed = worker
        .db
        .transaction(async |tx| tasks::service::fail(tx, claimed[0].lease, &failure, 0.0, limits).await);
    failed.await.unwrap();
    let dead = asked["task_id"].as_str().unwrap();
    assert_eq!(unit.archive().await.0, StatusCode::OK);

    for path in ["workspaces", "runs", "me", "business-units", "tasks"] {
        let (status, problem) = world.get(path).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "unit-archived"), "{path}");
    }
    let before = unit.plane().every_row().await;
    let new = json!({ "name": "two", "environment": "dev", "repo_url": "https://git.example.com/2.git" });
    let run = json!({ "workspace_id": workspace, "command": "plan" });
    let edit = json!({ "environment": "prod" });
    let repository = json!({ "repo_url": "https://git.example.com/infra.git" });
    // In the unit; and where an id says enough, in all units at once, too.
    for (method, path, body, also_in_all) in [
        ("POST", "workspaces".to_owned(), Some(new), false),
        ("POST", "workspaces/discover".to_owned(), Some(repository.clone()), false),
        ("POST", "workspaces/import".to_owned(), Some(repository), false),
        ("PUT", format!("workspaces/{workspace}"), Some(edit), true),
        ("DELETE", format!("workspaces/{workspace}"), None, true),
        ("POST", "runs".to_owned(), Some(run), true),
        ("POST", format!("approvals/{planned}/approve"), Some(json!({})), true),
        ("POST", format!("tasks/{dead}/replay"), None, true),
    ] {
        let scopes = [Some("default"), None];
        for scope in scopes.into_iter().take(if also_in_all { 2 } else { 1 }) {
            let answer = unit.as_root(scope, method, &path, body.clone()).await;
            assert_archived(&answer, &format!("{method} {path} in {scope:?}"));
        }
    }
    assert_eq!(unit.plane().every_row().await, before);
    for path in ["workspaces", "runs", "tasks", "audit", &format!("runs/{planned}")] {
        let (status, _, read) = unit.as_root(Some("default"), "GET", path, None).await;
        assert_eq!(status, StatusCode::OK, "{path}: {read}");
    }
}

#[tokio::test]
async fn nobody_joins_an_archived_unit_and_everybody_can_leave_it() {
    let unit = Unit::new().await;
    let id = unit.path.rsplit('/').next().unwrap();
    let own = unit.plane().call("GET", "/api/v1/me", unit.world.token.as_str(), None).await.2;
    unit.archive().await;
    let join = json!([{ "business_unit_id": id, "role": "viewer" }]);
    let (_, email) = unit.plane().insert_user().await;
    let (_, _, found) = unit.as_root(None, "GET", &format!("users?email={email}"), None).await;
    let other = format!("users/{}", found["items"][0]["id"].as_str().unwrap());
    let joined = unit.as_root(None, "PATCH", &other, Some(json!({ "add_memberships": join }))).await;
    assert_archived(&joined, "join");
    let made =
        unit.as_root(None, "POST", "users", Some(json!({ "email": "n@b.c", "memberships": join }))).await;
    assert_archived(&made, "make");
    let member = format!("users/{}", own["id"].as_str().unwrap());
    let left = unit.as_root(None, "PATCH", &member, Some(json!({ "remove_memberships": [id] }))).await;
    assert_eq!((left.0, &left.2["memberships"]), (StatusCode::OK, &json!([])));
}

#[tokio::test]
async fn what_waits_plans_or_awaits_approval_is_cancelled_and_its_executor_stopped() {
    let unit = Unit::new().await;
    let world = &unit.world;
    let planned = world.planned().await;
    let waiting = world.trigger("apply").await;
    let planning = world.trigger("plan").await;
    let executor = FakeExecutor::start(unit.plane()).await;
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
    let untouched = sweeps::end_archived(&unit.plane().as_function(Function::Reconciler)).await.unwrap();
    assert_eq!(untouched, 0, "the unit is in use");
    unit.archive().await;

    assert_eq!(unit.sweep().await, 3);
    assert_eq!(unit.sweep().await, 0);
    for id in [&planned, &waiting, &planning] {
        let (_, _, run) = unit.as_root(None, "GET", &format!("runs/{id}"), None).await;
        assert_eq!((&run["status"], &run["status_reason"]), (&json!("cancelled"), &json!("unit_archived")));
    }
    assert_eq!(executor.heartbeat().await.0, StatusCode::CONFLICT, "it learns at its next call");
    assert_eq!(world.live_tasks("run_plan").await, 0, "and no other run was started instead");
    let entries = world.audit_actions(&planned).await;
    assert_eq!(entries.last().map(String::as_str), Some("run.cancel"));
    unit.unarchive().await;
    assert_eq!(world.status(&planned).await, "cancelled", "what ended stays ended");
    world.trigger("plan").await;
}

#[tokio::test]
async fn a_begun_apply_is_finished_in_an_archived_unit() {
    let unit = Unit::new().await;
    let (id, executor) = unit.world.applying().await;
    unit.archive().await;
    assert_eq!(unit.sweep().await, 0);
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
    assert_eq!(executor.apply_done().await.0, StatusCode::NO_CONTENT);
    let (_, _, run) = unit.as_root(None, "GET", &format!("runs/{id}"), None).await;
    assert_eq!(run["status"], "applied");
}

#[tokio::test]
async fn an_approved_apply_that_has_not_begun_never_begins() {
    let unit = Unit::new().await;
    let id = unit.world.planned().await;
    let (status, _) = unit.world.post(&format!("approvals/{id}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::OK);
    unit.archive().await;
    assert_eq!(unit.sweep().await, 1);
    let (_, _, run) = unit.as_root(None, "GET", &format!("runs/{id}"), None).await;
    assert_eq!((&run["status"], &run["status_reason"]), (&json!("failed"), &json!("unit_archived")));
    assert_eq!(unit.world.live_tasks("run_apply").await, 0);
}

#[tokio::test]
async fn a_unit_is_not_archived_while_somebodys_terraform_holds_a_lock_in_it() {
    let backend = Backend::start().await;
    let plane = &backend.plane;
    let root = plane.admin_token().await;
    assert_eq!(backend.lock("l-1").await.0, StatusCode::OK);
    let archive = format!("/api/v1/business-units/{}/archive", backend.unit);
    let (status, _, problem) = plane.call("POST", &archive, &*root, None).await;
    assert_eq!((status, slug(&problem), &problem["locks"]), (StatusCode::CONFLICT, "unit-in-use", &json!(1)));
    assert_eq!(backend.write(Some("l-1"), &state(1, "l", "a")).await.0, StatusCode::OK, "they go on");
    assert_eq!(backend.unlock("l-1").await.0, StatusCode::OK);
    assert_eq!(plane.call("POST", &archive, &*root, None).await.0, StatusCode::OK);

    // From now on: members are kept out, superadmins read.
    let path = format!("/api/v1/state/{}", backend.workspace);
    assert_eq!(backend.lock("l-2").await.0, StatusCode::FORBIDDEN);
    assert_eq!(backend.read().await.0, StatusCode::FORBIDDEN);
    assert_eq!(backend.send_as(&root, "GET", &path, String::new()).await.0, StatusCode::OK);
    let locked = backend.send_as(&root, "LOCK", &path, lock_info("l-3")).await;
    assert_eq!(locked.0, StatusCode::CONFLICT);
    let written = backend.send_as(&root, "POST", &path, state(2, "l", "b")).await;
    assert_eq!(written.0, StatusCode::CONFLICT);
    let versions = format!("/api/v1/workspaces/{}/state-versions", backend.workspace);
    let (_, _, page) = plane.call("GET", &versions, &*root, None).await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1), "{page}");
}
