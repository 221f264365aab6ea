//! What a run leaves behind: listed, and downloaded from the object store.

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::ArtifactKind;

use super::*;
use crate::plane::{TestPlane, slug};
use crate::store::object_stores::{self, Store};

/// A plane whose signed URLs are answered.
async fn served() -> (World, Store) {
    let store = object_stores::directory().await;
    let mut plane = TestPlane::start().await;
    plane.deps.blobs = store.blobs.clone();
    (World::on(plane).await, store)
}

impl World {
    /// Downloads as somebody: the way that was taken, and the bytes.
    async fn download(&self, run: &str, name: &str, token: &str) -> (StatusCode, Vec<u8>) {
        let path = format!("/api/v1/runs/{run}/artifacts/{name}");
        let request = http::Request::get(path).header("authorization", format!("Bearer {token}"));
        let response = self.plane.send(request.body(axum::body::Body::empty()).unwrap()).await;
        let status = response.status();
        if status == StatusCode::TEMPORARY_REDIRECT {
            let there = response.headers()["location"].to_str().unwrap();
            let stored = reqwest::get(there).await.unwrap().error_for_status().unwrap();
            return (status, stored.bytes().await.unwrap().to_vec());
        }
        let body = axum::body::to_bytes(response.into_body(), usize::MAX).await.unwrap();
        (status, body.to_vec())
    }

    async fn artifacts(&self, run: &str) -> Vec<Value> {
        let (status, list) = self.get(&format!("runs/{run}/artifacts")).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list["items"].as_array().unwrap().clone()
    }
}

/// An apply that has uploaded one of every kind and logged two steps.
async fn with_everything(world: &World) -> (String, Vec<(String, Vec<u8>)>) {
    let run = world.trigger("apply").await;
    let plan = FakeExecutor::start(&world.plane).await;
    let mut expected = vec![("log-1".to_owned(), "cloned: grün\n".as_bytes().to_vec())];
    plan.log(1, 0, &expected[0].1).await;
    assert_eq!(plan.upload(ArtifactKind::LockFile, b"a lock file").await, StatusCode::NO_CONTENT);
    assert_eq!(plan.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    world.post(&format!("approvals/{run}/approve"), json!({})).await;
    let apply = FakeExecutor::start(&world.plane).await;
    apply.begin_apply().await;
    apply.log(9, 0, b"made one").await;
    for (kind, bytes) in [(ArtifactKind::Outputs, b"{}".as_slice()), (ArtifactKind::ErroredState, b"{ }")] {
        assert_eq!(apply.upload(kind, bytes).await, StatusCode::NO_CONTENT);
        expected.push((kind.as_str().into(), bytes.into()));
    }
    assert_eq!(apply.apply_done().await.0, StatusCode::NO_CONTENT);
    expected.push(("log-9".into(), b"made one".into()));
    expected.push(("lock_file".into(), b"a lock file".into()));
    expected.push(("plan_text".into(), b"a plan in words".into()));
    expected.push(("plan_json".into(), ADDS_ONE.into()));
    expected.push(("plan_json_redacted".into(), ADDS_ONE.into()));
    (run, expected)
}

#[tokio::test]
async fn everything_a_run_has_produced_is_listed_and_downloaded_byte_for_byte() {
    let (world, _store) = served().await;
    let (run, expected) = with_everything(&world).await;
    let viewer = world.plane.user(Role::Viewer).await;
    let operator = world.plane.user(Role::Operator).await;
    let kinds =
        |list: &[Value]| list.iter().map(|one| one["kind"].as_str().unwrap().to_owned()).collect::<Vec<_>>();
    let all = [
        "errored_state",
        "lock_file",
        "outputs",
        "plan_file",
        "plan_json",
        "plan_json_redacted",
        "plan_text",
        "log-1",
        "log-9",
    ];
    assert_eq!(kinds(&world.artifacts(&run).await), all);

    // A log is answered as it is, then moved to the object store, and is the same there.
    for stored in [false, true] {
        if stored {
            let reconciler = world.plane.as_function(Function::Reconciler);
            assert_eq!(sweeps::compact_logs(&reconciler).await.unwrap(), 2);
        }
        let list = world.artifacts(&run).await;
        assert_eq!(kinds(&list), all);
        for (name, bytes) in &expected {
            let direct = name.starts_with("log-") && !stored;
            let way = if direct { StatusCode::OK } else { StatusCode::TEMPORARY_REDIRECT };
            let got = world.download(&run, name, &operator).await;
            assert_eq!(got, (way, bytes.clone()), "{name}");
            assert_eq!(world.download(&run, name, &viewer).await.0, StatusCode::FORBIDDEN, "{name}");
            let listed = list.iter().find(|one| one["kind"] == name.as_str()).unwrap();
            assert_eq!(listed["size_bytes"], bytes.len(), "{name}");
            let digest = (!direct).then(|| Sha256Digest::of(bytes).to_string());
            assert_eq!(listed["sha256"].as_str().map(str::to_owned), digest, "{name}");
        }
    }
    assert_eq!(world.download(&run, "plan_file", &world.token).await.0, StatusCode::NOT_FOUND, "nobody may");
    let read = world.audit_actions(&run).await.iter().filter(|action| *action == "run.read").count();
    assert_eq!(read, 2 * 6 + 2, "each artifact each time, and of each log that it was read within the hour");
}

#[tokio::test]
async fn a_long_log_is_downloaded_once_it_is_stored_and_read_by_pages_before() {
    let (world, _store) = served().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let chunk = vec![b'x'; 400 << 10];
    for offset in [0, chunk.len(), 2 * chunk.len()] {
        assert_eq!(executor.log(5, offset as u64, &chunk).await.0, StatusCode::OK);
    }
    let (status, problem) = world.get(&format!("runs/{run}/artifacts/log-5")).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "log-not-stored"), "{problem}");
    assert_eq!(problem["bytes"], 3 * chunk.len());
    let (status, page) = world.get(&format!("runs/{run}/logs?position=5&offset=900000")).await;
    assert_eq!((status, page["offset"].as_i64()), (StatusCode::OK, Some(900_000)));

    executor.fail("permanent", "enough").await;
    assert_eq!(sweeps::compact_logs(&world.plane.as_function(Function::Reconciler)).await.unwrap(), 1);
    let (way, bytes) = world.download(&run, "log-5", &world.token).await;
    assert_eq!((way, bytes.len()), (StatusCode::TEMPORARY_REDIRECT, 3 * chunk.len()));
}

#[tokio::test]
async fn names_that_no_artifact_has_are_not_found() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    executor.log(1, 0, b"text").await;
    for name in [
        "log",
        "log-",
        "log-0",
        "log-01",
        "log-+1",
        "log--1",
        "log-99",
        "log-70000",
        "log-1x",
        "LOG-1",
        "plan-text",
        "plan_text",
        "nonsense",
        "%00",
        "..",
        "log-1%2F..",
    ] {
        let (status, problem) = world.get(&format!("runs/{run}/artifacts/{name}")).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{name}: {problem}");
    }
    // A step without a log has an empty one.
    let (status, bytes) = world.download(&run, "log-2", &world.token).await;
    assert_eq!((status, bytes.len()), (StatusCode::OK, 0));
}
