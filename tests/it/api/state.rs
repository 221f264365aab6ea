//! The state as people see it: one version, and taking a lock away.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ids::ExecutorId;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::LockInfo;
use plumbline_core::tfstates::service::{self, StateActor};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use crate::plane::slug;
use crate::store::state_client::{Backend, lock_info, state};

impl Backend {
    async fn as_somebody(&self, method: &str, path: &str, token: &str) -> (StatusCode, Value) {
        let (status, _, body) = self.plane.call(method, &format!("/api/v1/{path}"), token, None).await;
        (status, body)
    }

    fn lock_path(&self) -> String {
        format!("workspaces/{}/state-lock", self.workspace)
    }
}

#[tokio::test]
async fn an_admin_takes_a_lock_away_and_its_holder_cannot_write_any_more() {
    let backend = Backend::start().await;
    let lock = backend.lock_path();
    backend.lock("l-1").await;
    backend.write(Some("l-1"), &state(1, "l", "a")).await;
    for role in [Role::Viewer, Role::Operator] {
        let token = backend.plane.user(role).await;
        let (status, problem) = backend.as_somebody("DELETE", &lock, &token).await;
        assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"), "{role:?}");
    }
    let (_, held) = backend.api("GET", &lock).await;
    assert_eq!((&held["held"], &held["lock_id"]), (&json!(true), &json!("l-1")), "{held}");

    let (status, body) = backend.as_somebody("DELETE", &lock, &backend.token).await;

    assert_eq!((status, &body), (StatusCode::NO_CONTENT, &Value::Null));
    let (_, free) = backend.api("GET", &lock).await;
    assert_eq!((&free["held"], &free["lock_id"], &free["info"]), (&json!(false), &Value::Null, &Value::Null));
    assert_eq!(backend.as_somebody("DELETE", &lock, &backend.token).await.0, StatusCode::CONFLICT);
    let (status, _, late) = backend.write(Some("l-1"), &state(2, "l", "late")).await;
    let late: Value = serde_json::from_slice(&late).unwrap();
    assert_eq!((status, slug(&late)), (StatusCode::CONFLICT, "state-quarantined"));
    assert_eq!(backend.lock("l-2").await.0, StatusCode::OK, "the next one gets it");
    assert_eq!(
        backend.audited().await,
        ["state.lock", "state.write", "state.force_unlock", "state.quarantine", "state.lock"]
    );
    let path = format!("audit?workspace_id={}&action=state.force_unlock", backend.workspace);
    let (_, log) = backend.api("GET", &path).await;
    assert_eq!(log["items"][0]["details"]["lock_id"], "l-1", "{log}");
}

#[tokio::test]
async fn an_executors_lock_is_taken_away_only_once_it_has_stopped() {
    let backend = Backend::start().await;
    let apply = backend.executor(RunPhase::Apply).await;
    let callback = backend.plane.as_function(Function::Callback);
    let info = LockInfo::parse(lock_info("run-lock").as_bytes()).unwrap();
    service::lock(&callback, &apply, backend.workspace, &info).await.unwrap();
    let lock = backend.lock_path();
    let (status, problem) = backend.as_somebody("DELETE", &lock, &backend.token).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "holder-may-live"), "{problem}");
    let StateActor::Executor { executor_id, .. } = apply else { unreachable!() };
    stop(&backend, executor_id).await;
    assert_eq!(backend.as_somebody("DELETE", &lock, &backend.token).await.0, StatusCode::NO_CONTENT);
    assert_eq!(backend.api("GET", &lock).await.1["held"], false);
}

async fn stop(backend: &Backend, executor: ExecutorId) {
    use plumbline_core::db::Query as _;
    const STOP: &str = "UPDATE executors SET status = 'stopped' WHERE id = $1";
    assert_eq!(backend.plane.db().conn().await.unwrap().execute(STOP, &[&executor]).await.unwrap(), 1);
}

#[tokio::test]
async fn one_version_says_what_it_is_and_whether_it_is_the_newest() {
    let backend = Backend::start().await;
    let viewer = backend.plane.user(Role::Viewer).await;
    let (first, second) = (state(1, "the-lineage", "a"), state(2, "the-lineage", "b"));
    backend.lock("l-1").await;
    backend.write(Some("l-1"), &first).await;
    let id = backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    let path = format!("state-versions/{id}");
    let (status, version) = backend.as_somebody("GET", &path, &viewer).await;
    assert_eq!(status, StatusCode::OK, "{version}");
    assert_eq!(version, backend.versions().await[0], "as in the list");
    let (_, me) = backend.api("GET", "me").await;
    for (field, expected) in [
        ("id", json!(id)),
        ("workspace_id", json!(backend.workspace)),
        ("serial", json!(1)),
        ("lineage", json!("the-lineage")),
        ("size_bytes", json!(first.len())),
        ("sha256", json!(Sha256Digest::of(first.as_bytes()))),
        ("terraform_version", json!("1.11.4")),
        ("opaque", json!(false)),
        ("run_id", Value::Null),
        ("created_by", me["id"].clone()),
        ("rolled_back_from", Value::Null),
        ("is_current", json!(true)),
    ] {
        assert_eq!(version[field], expected, "{field}: {version}");
    }
    backend.write(Some("l-1"), &second).await;
    let (_, older) = backend.as_somebody("GET", &path, &viewer).await;
    assert_eq!(older["is_current"], false, "{older}");
    // Its body is not for viewers.
    let (status, _) = backend.as_somebody("GET", &format!("{path}/download"), &viewer).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}
