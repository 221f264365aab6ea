//! States of people that are too large for a request: begin, upload, commit, over HTTP.

use http::{HeaderMap, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::protocol::{Presigned, RunPhase, StateUploadBegin};
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::object_stores::{self, Store};
use super::state_client::{self, Backend, insert_workspace, lock_info, send_signed, state};
use crate::plane::{TestPlane, slug};

struct World {
    backend: Backend,
    store: Store,
}

type Answer = (StatusCode, HeaderMap, Value);

impl World {
    async fn new() -> Self {
        let store = object_stores::s3s_fs().await;
        let mut plane = TestPlane::start().await;
        plane.deps.blobs = store.blobs.clone();
        Self { backend: Backend::on(plane).await, store }
    }

    async fn post(&self, token: Option<&str>, below: &str, body: Value) -> Answer {
        self.backend.plane.call("POST", &format!("{}{below}", self.backend.path()), token, body).await
    }

    async fn begin_as(&self, token: &str, lock: Option<&str>, body: &str) -> Answer {
        self.post(Some(token), "/uploads", announce(lock, body)).await
    }

    async fn begin(&self, lock: Option<&str>, body: &str) -> Answer {
        self.begin_as(&self.backend.token, lock, body).await
    }

    async fn commit_as(&self, token: &str, begun: &Value) -> Answer {
        let below = format!("/uploads/{}/commit", begun["upload_id"].as_str().unwrap());
        self.post(Some(token), &below, json!({})).await
    }

    async fn commit(&self, begun: &Value) -> Answer {
        self.commit_as(&self.backend.token, begun).await
    }

    /// Begins, and sends the bytes.
    async fn send(&self, lock: Option<&str>, body: &str) -> Value {
        let (status, headers, begun) = self.begin(lock, body).await;
        assert_eq!(status, StatusCode::OK, "{begun}");
        assert_eq!(headers["cache-control"], "no-store", "the URL is a credential");
        put(&begun, body).await;
        begun
    }

    async fn stored(&self) -> Vec<String> {
        const KEYS: &str = "SELECT key FROM state_uploads";
        let conn = self.backend.plane.db().conn().await.unwrap();
        let mut found = Vec::new();
        for row in conn.query(KEYS, &[]).await.unwrap() {
            let key: String = row.get(0);
            if self.store.blobs.head(&key).await.unwrap().is_some() {
                found.push(key);
            }
        }
        found
    }

    async fn set(&self, statement: &str) {
        self.backend.plane.db().conn().await.unwrap().batch(statement).await.unwrap();
    }
}

fn announce(lock: Option<&str>, body: &str) -> Value {
    let said: Value = serde_json::from_str(body).unwrap();
    let (serial, lineage) = (said["serial"].as_i64().unwrap(), said["lineage"].as_str().unwrap());
    serde_json::to_value(state_client::announce(lock, serial, lineage, body)).unwrap()
}

async fn put(begun: &Value, body: &str) {
    let request: Presigned = serde_json::from_value(begun["request"].clone()).unwrap();
    assert!(send_signed(&request, body.to_owned()).await.0.is_success());
}

#[tokio::test]
async fn a_person_uploads_a_state_under_their_lock_and_the_same_calls_once_more_answer_the_same() {
    let world = World::new().await;
    let body = state(1, "l", &"x".repeat(6 << 20));
    let (inline, _, _) = world.backend.write(None, &body).await;
    assert_eq!(inline, StatusCode::PAYLOAD_TOO_LARGE);
    world.backend.lock("l").await;
    let begun = world.send(Some("l"), &body).await;
    assert_eq!(world.backend.unlock("l").await.0, StatusCode::CONFLICT, "it is on its way");
    assert_eq!(world.begin(Some("l"), &body).await.2["upload_id"], begun["upload_id"]);
    for _ in 0..2 {
        let (status, _, answer) = world.commit(&begun).await;
        assert_eq!((status, answer), (StatusCode::OK, json!("accepted")));
    }
    assert_eq!(world.backend.unlock("l").await.0, StatusCode::OK);
    let (status, headers, _) = world.backend.read().await;
    assert_eq!(status, StatusCode::TEMPORARY_REDIRECT);
    let read = reqwest::get(headers["location"].to_str().unwrap()).await.unwrap().bytes().await.unwrap();
    assert!(read == body);
    let version = &world.backend.versions().await[0];
    assert!(version["created_by"].is_string() && version["run_id"].is_null(), "{version}");
}

#[tokio::test]
async fn without_a_lock_a_person_uploads_only_while_nobody_holds_one() {
    let world = World::new().await;
    let begun = world.send(None, &state(1, "l", "a")).await;
    assert_eq!(world.commit(&begun).await.2, json!("accepted"));
    let late = world.send(None, &state(2, "l", "b")).await;
    world.backend.lock("theirs").await;
    for (status, _, holder) in [world.begin(None, &state(3, "l", "c")).await, world.commit(&late).await] {
        assert_eq!((status, &holder["ID"]), (StatusCode::LOCKED, &json!("theirs")), "{holder}");
    }
    world.backend.unlock("theirs").await;
    let (status, _, problem) = world.commit(&late).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "upload-unresolved"), "{problem}");
    let again = world.send(None, &state(2, "l", "b")).await;
    assert_eq!(world.commit(&again).await.2, json!("accepted"));
    assert_eq!(world.backend.versions().await.len(), 2);
}

#[tokio::test]
async fn what_contradicts_the_head_is_refused_with_the_reason_and_not_kept_aside() {
    let world = World::new().await;
    world.backend.write(None, &state(5, "l", "a")).await;
    for (body, said) in
        [(state(4, "l", "b"), "higher serial"), (state(9, "other", "b"), "accept-next-lineage")]
    {
        let (status, _, problem) = world.begin(None, &body).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "state-refused"), "{problem}");
        assert!(problem["detail"].as_str().unwrap().contains(said), "{problem}");
    }
    // The head moves while the bytes come.
    world.backend.lock("l").await;
    let begun = world.send(Some("l"), &state(6, "l", "b")).await;
    world.backend.write(Some("l"), &state(7, "l", "c")).await;
    let (status, _, problem) = world.commit(&begun).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "state-refused"), "{problem}");
    assert!(world.stored().await.is_empty(), "its writer has it");
    assert_eq!(world.backend.unlock("l").await.0, StatusCode::OK, "nothing is on its way any more");
    assert!(world.backend.quarantined().await.is_empty());
    // The same serial with other content is kept aside, as an inline write is.
    let same = world.send(None, &state(7, "l", "other")).await;
    assert_eq!(world.commit(&same).await.2, json!("quarantined"));
    assert_eq!(world.backend.quarantined().await[0]["reason"], "same_serial");
}

#[tokio::test]
async fn what_came_under_a_lost_lock_or_was_never_committed_is_quarantined() {
    let world = World::new().await;
    world.backend.lock("l").await;
    let begun = world.send(Some("l"), &state(1, "l", "a")).await;
    assert_eq!(world.backend.send_as(&world.backend.token, "UNLOCK", &world.backend.path(), "").await.0, 200);
    assert_eq!(world.commit(&begun).await.2, json!("quarantined"));
    world.send(None, &state(2, "l", "b")).await;
    world.backend.plane.advance(std::time::Duration::from_secs(61)).await;
    let reconciler = world.backend.plane.as_function(Function::Reconciler);
    assert_eq!(service::sweep_uploads(&reconciler).await.unwrap(), 1);
    assert!(world.backend.versions().await.is_empty());
    assert_eq!(world.backend.quarantined().await.len(), 2);
}

#[tokio::test]
async fn nobody_commits_or_finds_the_upload_of_another() {
    let world = World::new().await;
    let body = state(1, "l", "a");
    let other = world.backend.plane.user(Role::Admin).await;
    let begun = world.send(None, &body).await;
    assert_eq!(world.commit_as(&other, &begun).await.0, StatusCode::NOT_FOUND);
    let (_, _, theirs) = world.begin_as(&other, None, &body).await;
    assert_ne!(
        theirs["upload_id"], begun["upload_id"],
        "the URL of one lets nobody write what another commits"
    );

    let apply = world.backend.executor(RunPhase::Apply).await;
    let callback = world.backend.plane.as_function(Function::Callback);
    let info = LockInfo::parse(lock_info("run").as_bytes()).unwrap();
    service::lock(&callback, &apply, world.backend.workspace, &info).await.unwrap();
    let run: StateUploadBegin = serde_json::from_value(announce(Some("run"), &body)).unwrap();
    let of_run = service::begin_upload(&callback, &apply, world.backend.workspace, &run).await.unwrap();
    let of_run_id = json!({ "upload_id": of_run.upload_id.to_string() });
    assert_eq!(world.commit(&of_run_id).await.0, StatusCode::NOT_FOUND);
    let (status, _, mine) = world.begin(Some("run"), &body).await;
    assert_eq!(status, StatusCode::OK, "taken for quarantine: the lock is not theirs");
    assert_ne!(mine["upload_id"], of_run_id["upload_id"]);
    put(&mine, &body).await;
    assert_eq!(world.commit(&mine).await.2, json!("quarantined"));
    assert!(
        service::commit_upload(
            &callback,
            &apply,
            world.backend.workspace,
            mine["upload_id"].as_str().unwrap().parse().unwrap()
        )
        .await
        .is_err()
    );
}

#[tokio::test]
async fn those_who_may_not_write_the_state_may_not_upload_it() {
    let world = World::new().await;
    let plane = &world.backend.plane;
    let body = state(1, "l", "a");
    let begun = world.send(None, &body).await;
    let viewer = plane.user(Role::Viewer).await;
    let elsewhere = plane.unit("elsewhere").await;
    let stranger = plane.member(elsewhere, Role::Admin).await;
    assert_eq!(world.post(None, "/uploads", announce(None, &body)).await.0, StatusCode::UNAUTHORIZED);
    for (token, expected) in [(&viewer, StatusCode::FORBIDDEN), (&stranger, StatusCode::NOT_FOUND)] {
        assert_eq!(world.begin_as(token, None, &body).await.0, expected);
        assert_eq!(world.commit_as(token, &begun).await.0, expected);
    }
    let beyond = insert_workspace(plane, world.backend.unit, "runs_and_people").await;
    let key = json!({ "name": "k", "capability": "apply", "workspace_ids": [beyond] });
    let (_, _, made) = plane.call("POST", "/api/v1/api-keys", &*world.backend.token, key).await;
    let key = made["token"].as_str().or(made["key"].as_str()).unwrap().to_owned();
    assert_eq!(world.begin_as(&key, None, &body).await.0, StatusCode::NOT_FOUND);

    world.set("UPDATE workspaces SET state_writes = 'runs_only'").await;
    for (status, _, problem) in [world.begin(None, &body).await, world.commit(&begun).await] {
        assert_eq!(status, StatusCode::FORBIDDEN, "{problem}");
    }
    world.set("UPDATE workspaces SET state_writes = 'runs_and_people'").await;
    assert!(world.backend.quarantined().await.is_empty());
    let root = plane.admin_token().await;
    let archive = format!("/api/v1/business-units/{}/archive", world.backend.unit);
    assert_eq!(plane.call("POST", &archive, &*root, None).await.0, StatusCode::OK);
    assert_eq!(world.begin(None, &body).await.0, StatusCode::FORBIDDEN);
    assert_eq!(world.begin_as(&root, None, &body).await.0, StatusCode::CONFLICT);
}

#[tokio::test]
async fn odd_requests_are_answered_with_a_problem_and_never_with_a_redirect_or_a_5xx() {
    let world = World::new().await;
    let token = Some(world.backend.token.as_str());
    let good = announce(None, &state(1, "l", "a"));
    for (field, value) in [
        ("lock_id", json!("")),
        ("lock_id", json!("x".repeat(256))),
        ("lock_id", json!(7)),
        ("serial", json!(-1)),
        ("serial", json!(1.5)),
        ("lineage", json!("")),
        ("size_bytes", json!(0)),
        ("size_bytes", json!(u64::MAX)),
        ("size_bytes", json!((5_u64 << 30) + 1)),
        ("md5", json!("nonsense")),
        ("sha256", json!("nonsense")),
        ("terraform_version", json!("x".repeat(300))),
        ("unknown", json!(1)),
    ] {
        let mut odd = good.clone();
        odd[field] = value;
        let (status, _, problem) = world.post(token, "/uploads", odd).await;
        assert!(matches!(status.as_u16(), 400 | 422), "{field}: {status} {problem}");
    }
    assert_eq!(world.post(token, "/uploads", json!([])).await.0.as_u16() / 100, 4);
    let path = world.backend.path();
    let some = "0190f3c2-0000-7000-8000-000000000001";
    for (method, path, expected) in [
        ("GET", format!("{path}/uploads"), 405),
        ("PUT", format!("{path}/uploads/{some}/commit"), 405),
        ("POST", format!("{path}/uploads/{some}/commit"), 404),
        ("POST", format!("{path}/uploads/nonsense/commit"), 404),
        ("POST", format!("{path}/uploads/{some}"), 404),
        ("POST", format!("{path}/uploads/{some}/commit/more"), 404),
        // Slashes too many lead nowhere else.
        ("POST", format!("{path}//uploads//{some}/commit/"), 404),
    ] {
        let (status, _, problem) = world.backend.plane.call(method, &path, token, json!({})).await;
        assert_eq!(status.as_u16(), expected, "{method} {path}: {problem}");
    }
    // Before the bytes have come.
    let (_, _, begun) = world.begin(None, &state(1, "l", "a")).await;
    let (status, _, problem) = world.commit(&begun).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "upload-unresolved"), "{problem}");
}
