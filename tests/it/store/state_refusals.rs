//! What the state backend refuses, and how: foreign callers, bad bodies, odd paths, a missing store.

use std::sync::Arc;

use axum::body::Body;
use http::{Request, StatusCode};
use plumbline_core::access::Role;
use plumbline_core::adapters::DirectoryStore;
use plumbline_core::db::Query as _;
use plumbline_core::executors;
use plumbline_core::protocol::RunPhase;
use plumbline_core::tfstates::service::{self, StateActor};
use plumbline_core::tfstates::{LockInfo, StateError};
use plumbline_runtime::Function;
use serde_json::Value;

use super::state_client::{Backend, basic, insert_workspace, lock_info, md5_of, state};

fn json_of(body: &[u8]) -> Value {
    serde_json::from_slice(body).unwrap_or(Value::Null)
}

#[tokio::test]
async fn where_only_runs_write_people_can_read_but_neither_lock_nor_write() {
    let mut backend = Backend::start().await;
    backend.workspace = insert_workspace(&backend.plane, backend.unit, "runs_only").await;
    assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT);
    assert_eq!(backend.lock("l-1").await.0, StatusCode::FORBIDDEN);
    assert_eq!(backend.write(None, &state(1, "l", "a")).await.0, StatusCode::FORBIDDEN);
    assert_eq!(backend.write(Some("l-1"), &state(1, "l", "a")).await.0, StatusCode::FORBIDDEN);
    assert!(backend.audited().await.is_empty());
}

#[tokio::test]
async fn an_executor_that_is_found_to_have_stopped_takes_no_lock_any_more() {
    let backend = Backend::start().await;
    let deps = &backend.plane.as_function(Function::Callback);
    let apply = backend.executor(RunPhase::Apply).await;
    let StateActor::Executor { executor_id, .. } = apply else { unreachable!() };
    let info = LockInfo::parse(lock_info("late").as_bytes()).unwrap();
    let mut conn = backend.plane.db().conn().await.unwrap();
    let stopping = conn.begin().await.unwrap();
    assert!(executors::service::mark_stopped(&stopping, executor_id, "exit code 137").await.unwrap());

    // Its LOCK is in flight while somebody marks it as stopped: freed before it was taken, the lock would stay.
    let lock = service::lock(deps, &apply, backend.workspace, &info);
    let stop = async {
        backend.plane.until_a_lock_is_waited_for().await;
        stopping.commit().await.unwrap();
    };
    let (locked, ()) = tokio::join!(lock, stop);

    assert!(matches!(locked, Err(StateError::ExecutorStopped)), "{locked:?}");
    assert_eq!(backend.lock("mine").await.0, StatusCode::OK, "the state is free for others");
}

#[tokio::test]
async fn a_state_is_never_purged() {
    let backend = Backend::start().await;
    backend.write(None, &state(1, "l", "a")).await;
    let (status, _, body) = backend.send_as(&backend.token, "DELETE", &backend.path(), "").await;
    assert!(status.is_client_error(), "{status}");
    assert!(json_of(&body)["detail"].as_str().unwrap().contains("delete the workspace"));
    assert_eq!(backend.read().await.0, StatusCode::OK);
}

#[tokio::test]
async fn who_may_not_gets_401_403_or_404_and_learns_nothing() {
    let backend = Backend::start().await;
    let stranger_unit = backend.plane.unit("strangers").await;
    let stranger = backend.plane.member(stranger_unit, Role::Admin).await;
    let viewer = backend.plane.user(Role::Viewer).await;
    backend.write(None, &state(1, "l", "a")).await;
    for (method, body) in [
        ("GET", String::new()),
        ("POST", state(2, "l", "b")),
        ("LOCK", lock_info("l")),
        ("UNLOCK", lock_info("l")),
        ("UNLOCK", String::new()),
    ] {
        let as_whom =
            async |token: &str| backend.send_as(token, method, &backend.path(), body.clone()).await.0;
        assert_eq!(as_whom("no token").await, StatusCode::UNAUTHORIZED, "{method}");
        assert_eq!(as_whom(&stranger).await, StatusCode::NOT_FOUND, "{method}");
        assert_eq!(as_whom(&viewer).await, StatusCode::FORBIDDEN, "{method}");
        let bare =
            Request::builder().method(method).uri(backend.path()).body(Body::from(body.clone())).unwrap();
        assert_eq!(backend.raw(bare).await.0, StatusCode::UNAUTHORIZED, "{method}");
    }
    let version = backend.versions().await[0]["id"].as_str().unwrap().to_owned();
    for path in [format!("state-versions/{version}"), format!("state-versions/{version}/download")] {
        let (status, ..) =
            backend.plane.call("GET", &format!("/api/v1/{path}"), stranger.as_str(), None).await;
        assert_eq!(status, StatusCode::NOT_FOUND, "{path}");
    }
}

#[tokio::test]
async fn a_member_of_two_units_names_one_in_the_user_name() {
    use base64::Engine as _;
    let mut backend = Backend::start().await;
    let second = backend.plane.unit("second").await;
    backend.workspace = insert_workspace(&backend.plane, second, "runs_and_people").await;
    const JOIN: &str = "
        INSERT INTO memberships (user_id, business_unit_id, role)
        SELECT m.user_id, $1, 'admin' FROM memberships m JOIN users u ON u.id = m.user_id WHERE NOT u.is_superadmin";
    backend.plane.db().conn().await.unwrap().execute(JOIN, &[&second]).await.unwrap();
    assert_eq!(backend.read().await.0, StatusCode::NOT_FOUND);
    let user = base64::engine::general_purpose::STANDARD.encode(format!("unit/second:{}", backend.token));
    let request = Request::get(backend.path()).header("authorization", format!("Basic {user}"));
    assert_eq!(backend.raw(request.body(Body::empty()).unwrap()).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn bad_bodies_are_refused_with_their_reason_and_never_kept() {
    let backend = Backend::start().await;
    let bodies: &[&[u8]] = &[
        b"",
        b"{}",
        b"[]",
        b"null",
        b"\xff\xfe",
        b"PK\x03\x04plan",
        b"{\"version\":4",
        br#"{"format_version":"1.2","planned_values":{},"resource_changes":[]}"#,
        br#"{"format_version":"1.0","values":{}}"#,
        br#"{"version":4,"serial":1}"#,
        br#"{"version":4,"lineage":"x"}"#,
        br#"{"version":4,"serial":-1,"lineage":"x"}"#,
        br#"{"version":4,"serial":1,"lineage":"\u0000"}"#,
    ];
    for body in bodies {
        let (status, _, answer) =
            backend.send_as(&backend.token, "POST", &backend.path(), body.to_vec()).await;
        let text = String::from_utf8_lossy(body);
        assert!(matches!(status.as_u16(), 400 | 422), "{text}: {status}");
        assert!(!json_of(&answer)["detail"].as_str().unwrap().is_empty(), "{text}");
    }
    for body in ["", "{}", "[]", r#"{"ID":""}"#, r#"{"ID":7}"#, "\u{0}"] {
        let (status, ..) = backend.send_as(&backend.token, "LOCK", &backend.path(), body).await;
        assert_eq!(status, StatusCode::BAD_REQUEST, "{body:?}");
    }
    let nul =
        backend.send_as(&backend.token, "POST", &(backend.path() + "?ID=%00"), state(1, "l", "a")).await;
    assert_eq!(nul.0, StatusCode::UNPROCESSABLE_ENTITY);
    let damaged = Request::post(backend.path())
        .header("authorization", basic(&backend.token))
        .header("content-md5", md5_of(b"something else"))
        .body(Body::from(state(1, "l", "a")))
        .unwrap();
    assert_eq!(backend.raw(damaged).await.0, StatusCode::BAD_REQUEST);
    assert_eq!(backend.read().await.0, StatusCode::NO_CONTENT);
    assert!(backend.quarantined().await.is_empty());
}

#[tokio::test]
async fn a_state_too_large_for_one_request_is_refused_with_the_way_out() {
    let backend = Backend::start().await;
    let (status, _, body) = backend.write(None, &state(1, "l", &"x".repeat(6 << 20))).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
    assert!(json_of(&body)["detail"].as_str().unwrap().contains("let a run write it"));
}

#[tokio::test]
async fn odd_paths_are_served_or_refused_but_never_redirected() {
    let backend = Backend::start().await;
    let id = backend.workspace;
    for path in
        [format!("/api/v1/state/{id}/"), format!("//api//v1//state//{id}//"), format!("/api/v1/state/{id}?")]
    {
        let (status, ..) = backend.send_as(&backend.token, "POST", &path, state(1, "l", "a")).await;
        assert_eq!(status, StatusCode::OK, "{path}");
    }
    for path in [
        "/".to_owned(),
        "/api/v1/state".into(),
        "/api/v1/state/".into(),
        "/api/v1/state/..".into(),
        "/api/v1/state/not-an-id".into(),
        format!("/api/v1/state/{id}/lock/more"),
        format!("/api/v1/state/{id}/.."),
        format!("/API/V1/state/{id}"),
        format!("/api/v1/state/%2e%2e/{id}"),
    ] {
        for method in ["GET", "POST", "PUT", "LOCK", "UNLOCK", "DELETE", "PATCH", "OPTIONS", "HEAD"] {
            let (status, ..) = backend.send_as(&backend.token, method, &path, state(1, "l", "a")).await;
            assert!(status.is_client_error(), "{method} {path}: {status}");
        }
    }
    for method in ["PATCH", "OPTIONS", "PROPFIND"] {
        let (status, ..) = backend.send_as(&backend.token, method, &backend.path(), "").await;
        assert_eq!(status, StatusCode::METHOD_NOT_ALLOWED, "{method}");
    }
}

#[tokio::test]
async fn a_store_or_body_that_is_missing_is_never_no_state() {
    let mut backend = Backend::start().await;
    backend.write(None, &state(1, "l", "a")).await;
    let nowhere = std::env::temp_dir().join(backend.workspace.to_string());
    let there = std::mem::replace(
        &mut backend.plane.deps.blobs,
        Arc::new(DirectoryStore::new(nowhere, "http://127.0.0.1:9", [0; 32])),
    );
    assert_eq!(backend.read().await.0, StatusCode::FAILED_DEPENDENCY);
    assert_eq!(backend.write(None, &state(2, "l", "b")).await.0, StatusCode::FAILED_DEPENDENCY);
    backend.plane.deps.blobs = there;
    let key: String = {
        let conn = backend.plane.db().conn().await.unwrap();
        conn.query_one("SELECT head_key FROM tfstates", &[]).await.unwrap().get(0)
    };
    assert!(key.contains(&backend.workspace.to_string()), "{key}");
    backend.plane.deps.blobs.delete(&key).await.unwrap();
    assert_eq!(backend.read().await.0, StatusCode::FAILED_DEPENDENCY);
}
