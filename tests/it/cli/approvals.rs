//! Approving exactly what was shown.

use serde_json::json;

use super::runs::{RUN, run, server_with};
use super::server::{Plumb, Reply};

#[tokio::test]
async fn approve_shows_the_plan_and_sends_the_digest_that_it_showed() {
    let server = server_with("apply", &["awaiting_approval", "applying", "applied"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/approvals/{RUN}/approve");
    server.on("POST", &path, [Reply::json(&run("apply", "applying"))]);

    let ran = plumb.run(&["approve", RUN, "--yes", "--comment", "as discussed"]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.starts_with("Plan: 2 to add"), "{ran:?}");
    assert!(ran.stdout.contains("Applied."), "{ran:?}");
    let asked = server.asked("POST", &path);
    assert_eq!(asked[0].body, json!({ "digest": "ab".repeat(32), "comment": "as discussed" }));
}

#[tokio::test]
async fn nothing_is_approved_without_a_yes() {
    let server = server_with("apply", &["awaiting_approval"]).await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["approve", RUN]).await;

    assert_eq!(ran.code, 2, "{ran:?}");
    assert!(ran.stderr.contains("--yes"), "{ran:?}");
    assert!(server.asked("POST", &format!("/approvals/{RUN}/approve")).is_empty());
}

#[tokio::test]
async fn a_run_that_does_not_wait_is_not_approved() {
    let server = server_with("apply", &["applied"]).await;
    let plumb = Plumb::signed_in(&server).await;

    let ran = plumb.run(&["approve", RUN, "--yes"]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("is applied"), "{ran:?}");
}

#[tokio::test]
async fn a_plan_that_changed_meanwhile_is_refused_with_what_to_do() {
    let server = server_with("apply", &["awaiting_approval"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let stale = Reply::problem(409, "stale-plan", "The state moved from serial 3 to 4.");
    server.on("POST", &format!("/approvals/{RUN}/approve"), [stale]);

    let ran = plumb.run(&["approve", RUN, "--yes"]).await;

    assert_eq!(ran.code, 1);
    assert!(
        ran.stderr.contains("The state moved from serial 3 to 4.") && ran.stderr.contains("Plan again"),
        "{ran:?}"
    );
}

#[tokio::test]
async fn reject_ends_the_run_with_the_comment() {
    let server = server_with("apply", &["awaiting_approval"]).await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/approvals/{RUN}/reject");
    server.on("POST", &path, [Reply::json(&run("apply", "cancelled"))]);

    let ran = plumb.run(&["reject", RUN, "--comment", "too much"]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(server.asked("POST", &path)[0].body, json!({ "comment": "too much" }));
}
