//! Signing in, and sessions that renew themselves.

use std::os::unix::fs::PermissionsExt as _;

use serde_json::json;

use super::server::{EMAIL, FakeServer, Plumb, Reply, ran, tokens};

#[tokio::test]
async fn login_keeps_the_session_in_a_file_that_only_its_owner_reads() {
    let server = FakeServer::start().await;
    let plumb = Plumb::new(&server.url());

    let ran = plumb.run_with(&["login", "--email", EMAIL, "--password-stdin"], "open please\n").await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains(EMAIL), "{ran:?}");
    let asked = server.asked("POST", "/auth/token");
    assert_eq!(asked[0].body, json!({ "email": EMAIL, "password": "open please" }));
    let directory = plumb.config().join("sessions");
    assert_eq!(directory.metadata().expect("made").permissions().mode() & 0o777, 0o700);
    let files: Vec<_> =
        std::fs::read_dir(directory).expect("made").map(|entry| entry.expect("readable")).collect();
    assert_eq!(files.len(), 1, "one server, one file, nothing half-written: {files:?}");
    assert_eq!(files[0].metadata().expect("there").permissions().mode() & 0o777, 0o600);
}

#[tokio::test]
async fn the_password_may_come_from_the_environment() {
    let server = FakeServer::start().await;
    let plumb = Plumb::new(&server.url());
    let mut command = plumb.command(&["login", "--email", EMAIL]);

    let ran = ran(command.env("PLUMB_PASSWORD", "from outside").output().await.expect("plumb ends"));

    assert_eq!(ran.code, 0, "{ran:?}");
    assert_eq!(server.asked("POST", "/auth/token")[0].body["password"], "from outside");
}

#[tokio::test]
async fn a_wrong_password_is_said_as_the_server_says_it() {
    let server = FakeServer::start().await;
    let refusal = Reply::problem(401, "wrong-credentials", "E-mail or password is wrong.");
    server.on("POST", "/auth/token", [refusal]);

    let ran =
        Plumb::new(&server.url()).run_with(&["login", "--email", EMAIL, "--password-stdin"], "no\n").await;

    assert_eq!(ran.code, 1);
    assert_eq!(ran.stderr, "error: E-mail or password is wrong.\n");
}

#[tokio::test]
async fn a_refused_access_token_is_renewed_once_and_the_call_repeated() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("POST", "/auth/refresh", [Reply::json(&tokens(2))]);
    server.accept_only("access-sesame-2");

    let first = plumb.run(&["whoami"]).await;
    let second = plumb.run(&["whoami"]).await;

    assert_eq!((first.code, second.code), (0, 0), "{first:?} {second:?}");
    let refreshed = server.asked("POST", "/auth/refresh");
    assert_eq!(refreshed.len(), 1);
    assert_eq!(refreshed[0].body, json!({ "refresh_token": "refresh-sesame-1" }));
}

#[tokio::test]
async fn processes_that_meet_an_expired_session_together_renew_it_once() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let reused = Reply::problem(401, "refresh-reused", "This session was ended.");
    server.on("POST", "/auth/refresh", [Reply::json(&tokens(2)), reused]);
    server.accept_only("access-sesame-2");

    let all = futures::future::join_all((0..6).map(|_| plumb.run(&["whoami"]))).await;

    assert!(all.iter().all(|ran| ran.code == 0), "{all:?}");
    assert_eq!(server.asked("POST", "/auth/refresh").len(), 1);
}

#[tokio::test]
async fn a_session_that_cannot_be_renewed_asks_to_sign_in_and_is_forgotten() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("POST", "/auth/refresh", [Reply::problem(401, "refresh-reused", "This session was ended.")]);
    server.accept_only("nothing");

    let first = plumb.run(&["whoami"]).await;
    let second = plumb.run(&["whoami"]).await;

    assert_eq!((first.code, second.code), (1, 1));
    assert!(first.stderr.contains(&format!("plumb login --server {}", server.url())), "{first:?}");
    assert_eq!(server.asked("POST", "/auth/refresh").len(), 1, "a spent refresh token is not sent again");
}

#[tokio::test]
async fn logout_ends_the_session_here_and_there() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("POST", "/auth/logout", [Reply::empty(204)]);

    let out = plumb.run(&["logout"]).await;
    let after = plumb.run(&["whoami"]).await;

    assert_eq!((out.code, after.code), (0, 1), "{out:?} {after:?}");
    assert_eq!(server.asked("POST", "/auth/logout").len(), 1);
    assert!(after.stderr.contains("not signed in"), "{after:?}");
}

#[tokio::test]
async fn the_last_server_is_the_default_and_a_first_call_without_one_is_wrong_usage() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;

    let known = plumb.command(&["whoami"]).env_remove("PLUMB_SERVER").output().await.expect("plumb ends");
    let fresh = Plumb::new("");
    let unknown = fresh.command(&["whoami"]).env_remove("PLUMB_SERVER").output().await.expect("plumb ends");

    assert_eq!(ran(known).code, 0);
    let unknown = ran(unknown);
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains("plumb login --server URL"), "{unknown:?}");
}
