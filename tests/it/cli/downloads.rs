//! Bytes: state and artifacts, through a redirect to an object store.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::server::{FakeServer, Plumb, Reply};

const WORKSPACE: &str = "0190f3c2-0000-7000-8000-0000000000b1";
const VERSION: &str = "0190f3c2-0000-7000-8000-0000000000e1";
const RUN: &str = "0190f3c2-0000-7000-8000-0000000000d1";

/// A server whose current state lies in another server.
async fn with_store(content: Vec<u8>) -> (FakeServer, FakeServer, Plumb) {
    let (server, store) = (FakeServer::start().await, FakeServer::start().await);
    let plumb = Plumb::signed_in(&server).await;
    let older = json!({ "id": "0190f3c2-0000-7000-8000-0000000000e0", "serial": 3, "is_current": false });
    let current = json!({ "id": VERSION, "serial": 4, "is_current": true });
    let versions = json!({ "items": [current, older] });
    server.on("GET", &format!("/workspaces/{WORKSPACE}/state-versions"), [Reply::json(&versions)]);
    let address = format!("{}/raw/state?X-Amz-Signature=abc", store.url());
    let redirect = Reply::empty(307).header("location", address);
    server.on("GET", &format!("/state-versions/{VERSION}/download"), [redirect]);
    store.on("GET", "/raw/state", [Reply::bytes(content)]);
    (server, store, plumb)
}

#[tokio::test]
async fn pull_follows_the_redirect_without_showing_the_store_its_token() {
    let (_server, store, plumb) = with_store(b"{\"serial\":4}".to_vec()).await;

    let ran = plumb.run(&["state", "pull", WORKSPACE, "--business-unit", "default"]).await;

    assert_eq!((ran.code, ran.stdout.as_str()), (0, "{\"serial\":4}"), "{ran:?}");
    let asked = store.asked("GET", "/raw/state");
    assert_eq!(asked[0].query, "X-Amz-Signature=abc");
    assert_eq!((asked[0].header("authorization"), asked[0].header("x-business-unit")), (None, None));
}

#[tokio::test]
async fn pull_to_a_file_makes_it_private_and_leaves_nothing_half_written() {
    let content = vec![b'x'; 5 << 20];
    let (_server, _store, plumb) = with_store(content.clone()).await;
    let file = plumb.home.path().join("web.tfstate");

    let ran = plumb.run(&["state", "pull", WORKSPACE, "-o", file.to_str().expect("UTF-8")]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(std::fs::read(&file).expect("written").len(), content.len());
    assert_eq!(file.metadata().expect("written").permissions().mode() & 0o777, 0o600);
    assert!(!plumb.home.path().join("web.tfstate.part").exists());
}

#[tokio::test]
async fn a_store_that_refuses_leaves_no_file() {
    let (_server, store, plumb) = with_store(Vec::new()).await;
    store.on("GET", "/raw/state", [Reply::empty(403)]);
    let file = plumb.home.path().join("web.tfstate");

    let ran = plumb.run(&["state", "pull", WORKSPACE, "-o", file.to_str().expect("UTF-8")]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("answered 403"), "{ran:?}");
    assert!(!ran.stderr.contains("Signature"), "a signed address is a secret: {ran:?}");
    assert!(!file.exists());
}

#[tokio::test]
async fn an_artifact_may_come_directly() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", &format!("/runs/{RUN}/artifacts/plan_text"), [Reply::bytes(b"the plan".to_vec())]);

    let ran = plumb.run(&["run", "download", RUN, "plan_text"]).await;

    assert_eq!((ran.code, ran.stdout.as_str()), (0, "the plan"));
}

#[tokio::test]
async fn a_workspace_without_state_says_so() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on(
        "GET",
        &format!("/workspaces/{WORKSPACE}/state-versions"),
        [Reply::json(&json!({ "items": [] }))],
    );

    let ran = plumb.run(&["state", "pull", WORKSPACE]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("has no state yet"), "{ran:?}");
}

#[tokio::test]
async fn logs_are_listed_beside_the_artifacts_and_downloaded_by_the_same_names() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let plan = json!({ "kind": "plan_text", "size_bytes": 8, "sha256": "ab".repeat(32) });
    let growing = json!({ "kind": "log-9", "size_bytes": 4 });
    server.on("GET", &format!("/runs/{RUN}/artifacts"), [Reply::json(&json!({ "items": [plan, growing] }))]);
    server.on("GET", &format!("/runs/{RUN}/artifacts/log-9"), [Reply::bytes(b"made".to_vec())]);

    let listed = plumb.run(&["run", "artifacts", RUN]).await;
    let downloaded = plumb.run(&["run", "download", RUN, "log-9"]).await;

    assert_eq!(listed.code, 0, "{listed:?}");
    let lines: Vec<&str> = listed.stdout.lines().collect();
    assert!(lines[1].starts_with("plan_text") && lines[2].starts_with("log-9"), "{listed:?}");
    assert_eq!((downloaded.code, downloaded.stdout.as_str()), (0, "made"), "{downloaded:?}");
}
