//! What a run password reads, and what it does not.

use std::time::Duration;

use http::{Request, StatusCode};
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::state_client::{self, Backend, lock_info, state};
use crate::executors::FakeExecutor;
use crate::plane::slug;
use crate::world::{World, post};

/// A producer with a state, and an attempt of a run of another workspace.
struct Sharing {
    backend: Backend,
    consumer: String,
}

impl Sharing {
    async fn start() -> Self {
        let World { plane, workspace, .. } = World::new().await;
        let backend = Backend::on(plane).await;
        assert_eq!(backend.write(None, &state(3, "l", "shared")).await.0, StatusCode::OK);
        Self { backend, consumer: workspace }
    }

    async fn executor(&self, command: &str) -> FakeExecutor<'_> {
        let body = json!({ "workspace_id": self.consumer, "command": command });
        let (status, run) = post(&self.backend.plane, &self.backend.token, "/api/v1/runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        FakeExecutor::start(&self.backend.plane).await
    }

    async fn share(&self, with: Value) -> (StatusCode, Value) {
        let path = format!("/api/v1/workspaces/{}/state-consumers", self.backend.workspace);
        let body = json!({ "workspace_ids": with });
        let (status, _, answer) =
            self.backend.plane.call("PUT", &path, self.backend.token.as_str(), body).await;
        (status, answer)
    }

    /// Asks with a password for the producer's state.
    async fn read(&self, password: &str) -> (StatusCode, Value) {
        let (status, _, body) = self.backend.send_as(password, "GET", &self.backend.path(), "").await;
        (status, serde_json::from_slice(&body).unwrap_or(Value::Null))
    }
}

#[tokio::test]
async fn a_run_reads_only_the_outputs_and_only_of_what_is_shared_with_its_workspace() {
    let sharing = Sharing::start().await;
    let executor = sharing.executor("plan").await;
    let password = &executor.bundle.run_password;
    let (status, problem) = sharing.read(password).await;
    assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "state-not-shared"), "{problem}");

    let (status, list) = sharing.share(json!([sharing.consumer])).await;
    assert_eq!((status, &list["items"][0]["workspace_id"]), (StatusCode::OK, &json!(sharing.consumer)));

    let (status, reduced) = sharing.read(password).await;
    let outputs = json!({ "value": { "value": "shared", "type": "string" } });
    assert_eq!(status, StatusCode::OK, "{reduced}");
    assert_eq!(
        reduced,
        json!({
            "version": 4, "serial": 3, "lineage": "l", "outputs": outputs, "resources": [], "check_results": null,
        })
    );
    let bearer = Request::get(sharing.backend.path()).header("authorization", format!("Bearer {password}"));
    assert_eq!(sharing.backend.raw(bearer.body("".into()).unwrap()).await.0, StatusCode::OK);
    assert_eq!(sharing.share(json!([])).await.0, StatusCode::OK);
    assert_eq!(sharing.read(password).await.0, StatusCode::FORBIDDEN, "from the next read on");
    let audited = sharing.backend.audited().await;
    assert_eq!(audited.iter().filter(|action| *action == "state.shared_read").count(), 2, "{audited:?}");
}

#[tokio::test]
async fn a_run_password_writes_locks_and_lists_nothing_and_opens_no_other_door() {
    let sharing = Sharing::start().await;
    let executor = sharing.executor("plan").await;
    assert_eq!(sharing.share(json!([sharing.consumer])).await.0, StatusCode::OK);
    let password = executor.bundle.run_password.as_str();
    let (backend, path) = (&sharing.backend, sharing.backend.path());
    let lock = format!("{path}/lock");
    let before = backend.versions().await;
    for (method, path, body) in [
        ("POST", path.clone(), state(4, "l", "x")),
        ("PUT", path.clone(), state(4, "l", "x")),
        ("DELETE", path.clone(), String::new()),
        ("LOCK", path.clone(), lock_info("l-1")),
        ("UNLOCK", path.clone(), String::new()),
        ("POST", lock.clone(), lock_info("l-1")),
        ("DELETE", lock.clone(), String::new()),
    ] {
        let (status, ..) = backend.send_as(password, method, &path, body).await;
        assert_eq!(status, StatusCode::FORBIDDEN, "{method} {path}");
    }
    assert_eq!(backend.versions().await, before);
    // Its own workspace's state goes through the executor's proxy alone.
    let own = format!("/api/v1/state/{}", sharing.consumer);
    assert_eq!(backend.send_as(password, "GET", &own, "").await.0, StatusCode::FORBIDDEN);
    let other = backend.plane.unit("other").await;
    let foreign = state_client::insert_workspace(&backend.plane, other, "runs_only").await;
    let path = format!("/api/v1/state/{foreign}");
    assert_eq!(backend.send_as(password, "GET", &path, "").await.0, StatusCode::NOT_FOUND);
    for path in ["/api/v1/me", "/api/v1/runs", "/api/v1/workspaces"] {
        assert_eq!(
            backend.plane.call("GET", path, password, None).await.0,
            StatusCode::UNAUTHORIZED,
            "{path}"
        );
    }
    let mut thief = FakeExecutor::traded(&backend.plane, executor.launch.clone(), executor.bundle.clone());
    thief.bundle.token = password.to_owned();
    assert_eq!(thief.heartbeat().await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_run_password_ends_with_its_attempt() {
    let sharing = Sharing::start().await;
    assert_eq!(sharing.share(json!([sharing.consumer])).await.0, StatusCode::OK);
    let executor = sharing.executor("plan").await;
    let first = executor.bundle.run_password.clone();
    assert_eq!(sharing.read(&first).await.0, StatusCode::OK);
    sharing.backend.plane.advance(sharing.backend.plane.deps.limits.lease + Duration::from_secs(1)).await;
    assert_eq!(sharing.read(&first).await.0, StatusCode::UNAUTHORIZED, "its lease has run out");
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
    assert_eq!(sharing.read(&first).await.0, StatusCode::OK, "and was renewed");
    assert_eq!(executor.fail("permanent", "no").await.0, StatusCode::NO_CONTENT);
    assert_eq!(sharing.read(&first).await.0, StatusCode::UNAUTHORIZED, "the attempt is over");

    let conn = sharing.backend.plane.db().conn().await.unwrap();
    let with_it = format!("%{first}%");
    let count = "SELECT count(*) FROM executors WHERE executors::text LIKE $1";
    let kept: i64 = conn.query_one(count, &[&with_it]).await.unwrap().get(0);
    assert_eq!(kept, 0, "only its digest is stored");
}

#[tokio::test]
async fn a_workspace_shares_with_workspaces_of_its_unit_alone() {
    let sharing = Sharing::start().await;
    let other = sharing.backend.plane.unit("other").await;
    let foreign = state_client::insert_workspace(&sharing.backend.plane, other, "runs_only").await;
    let nobody = "00000000-0000-7000-8000-000000000000";
    for bad in [json!([foreign]), json!([sharing.backend.workspace]), json!([sharing.consumer, nobody])] {
        let (status, problem) = sharing.share(bad.clone()).await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("workspace_ids")),
            "{bad}"
        );
    }
    let path = format!("workspaces/{}/state-consumers", sharing.backend.workspace);
    assert_eq!(
        sharing.backend.api("GET", &path).await.1["items"],
        json!([]),
        "nothing of a bad list is kept"
    );
    let twice = json!([sharing.consumer, sharing.consumer]);
    assert_eq!(sharing.share(twice).await.1["items"].as_array().map(Vec::len), Some(1));
    let gone = format!("/api/v1/workspaces/{}", sharing.consumer);
    let token = sharing.backend.token.as_str();
    assert_eq!(sharing.backend.plane.call("DELETE", &gone, token, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(sharing.backend.api("GET", &path).await.1["items"], json!([]));
}

#[tokio::test]
async fn what_has_no_outputs_to_show_is_refused_and_not_shown() {
    let sharing = Sharing::start().await;
    assert_eq!(sharing.share(json!([sharing.consumer])).await.0, StatusCode::OK);
    let executor = sharing.executor("plan").await;
    let password = &executor.bundle.run_password;
    // As OpenTofu encrypts it; its serial rises as everybody's.
    let encrypted =
        json!({ "serial": 4, "lineage": "l", "encrypted_data": "AAAA", "encryption_version": "v0" });
    assert_eq!(sharing.backend.write(None, &encrypted.to_string()).await.0, StatusCode::OK);
    let (status, problem) = sharing.read(password).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "state-opaque"), "{problem}");
    let conn = sharing.backend.plane.db().conn().await.unwrap();
    let none = "UPDATE tfstates SET head_version_id = NULL, head_serial = NULL, head_lineage = NULL, head_key = NULL,
        head_size_bytes = NULL, head_md5 = NULL, head_sha256 = NULL WHERE workspace_id = $1";
    conn.execute(none, &[&sharing.backend.workspace]).await.unwrap();
    assert_eq!(sharing.read(password).await.0, StatusCode::NO_CONTENT, "no state yet");
}

#[tokio::test]
async fn the_outputs_of_a_large_state_are_shared_and_too_long_ones_are_not() {
    let sharing = Sharing::start().await;
    assert_eq!(sharing.share(json!([sharing.consumer])).await.0, StatusCode::OK);
    let executor = sharing.executor("plan").await;
    let password = &executor.bundle.run_password;
    let conn = sharing.backend.plane.db().conn().await.unwrap();
    let filler = |mebibytes: usize| "x".repeat(mebibytes << 20);
    for (output, resource, expected) in [
        ("small".to_owned(), filler(40), StatusCode::OK),
        (filler(6), String::new(), StatusCode::PAYLOAD_TOO_LARGE),
    ] {
        // As if an executor had uploaded it.
        let body = json!({
            "version": 4, "terraform_version": "1.11.4", "serial": 3, "lineage": "l",
            "outputs": { "o": { "value": output, "type": "string" } }, "resources": [{ "name": resource }],
        })
        .to_string();
        let (key, size) = (format!("states/{}.tfstate", uuid::Uuid::now_v7()), body.len() as i64);
        sharing.backend.plane.deps.blobs.put(&key, body.into(), "application/json").await.unwrap();
        let head = "UPDATE tfstates SET head_key = $2, head_size_bytes = $3 WHERE workspace_id = $1";
        conn.execute(head, &[&sharing.backend.workspace, &key, &size]).await.unwrap();
        let (status, answer) = sharing.read(password).await;
        assert_eq!(status, expected, "{answer}");
        if status == StatusCode::OK {
            assert_eq!(
                (&answer["outputs"]["o"]["value"], &answer["resources"]),
                (&json!("small"), &json!([]))
            );
        }
    }
}
