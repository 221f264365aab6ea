//! People and passwords on the command line.

use serde_json::json;

use super::server::{EMAIL, FakeServer, Plumb, Reply};

const ID: &str = "0190f3c2-0000-7000-8000-0000000000a1";

fn user() -> serde_json::Value {
    json!({ "id": ID, "email": "bob@example.com", "memberships": [] })
}

#[tokio::test]
async fn no_password_is_ever_an_argument() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    for arguments in [
        &["password", "--password", "secret"][..],
        &["password", "--current", "secret"],
        &["user", "set-password", ID, "--password", "secret"],
        &["user", "set-password", ID, "secret"],
        &["user", "create", "bob@example.com", "--password", "secret"],
        &["accept-invite", "--token", "secret"],
        &["accept-invite", "secret"],
    ] {
        assert_eq!(plumb.run(arguments).await.code, 2, "{arguments:?}");
    }
}

#[tokio::test]
async fn passwords_come_from_stdin_one_a_line() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("PUT", "/me/password", [Reply::empty(204)]);
    server.on("POST", "/auth/accept-invite", [Reply::empty(204)]);
    server.on("PUT", &format!("/users/{ID}/password"), [Reply::empty(204)]);

    let changed = plumb.run_with(&["password", "--password-stdin"], "the old one\nthe new one\n").await;
    let accepted = plumb.run_with(&["accept-invite", "--stdin"], "pli_1\nmy own one\n").await;
    let set = plumb.run_with(&["user", "set-password", ID, "--password-stdin"], "for once\n").await;

    assert_eq!((changed.code, accepted.code, set.code), (0, 0, 0), "{changed:?} {accepted:?} {set:?}");
    let body = json!({ "current_password": "the old one", "new_password": "the new one" });
    assert_eq!(server.asked("PUT", "/me/password")[0].body, body);
    let body = json!({ "token": "pli_1", "password": "my own one" });
    assert_eq!(server.asked("POST", "/auth/accept-invite")[0].body, body);
    let body = json!({ "password": "for once" });
    assert_eq!(server.asked("PUT", &format!("/users/{ID}/password"))[0].body, body);
}

#[tokio::test]
async fn without_terminal_stdin_or_environment_a_password_is_wrong_usage() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;

    let set = plumb.run(&["user", "set-password", ID]).await;
    let empty = plumb.run_with(&["user", "set-password", ID, "--password-stdin"], "\n").await;

    assert_eq!((set.code, empty.code), (2, 2), "{set:?} {empty:?}");
    assert!(set.stderr.contains("PLUMB_NEW_PASSWORD"), "{set:?}");
}

#[tokio::test]
async fn an_invitation_makes_who_is_not_there_and_says_how_to_accept_it() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/users", [Reply::json(&json!({ "items": [] }))]);
    server.on("POST", "/users", [Reply::status(201, &user())]);
    let invite = json!({ "user_id": ID, "token": "pli_1", "expires_at": "2099-01-01T00:00:00Z" });
    server.on("POST", &format!("/users/{ID}/invite"), [Reply::json(&invite)]);

    let invited = plumb.run(&["user", "invite", "bob@example.com", "--name", "Bob", "--superadmin"]).await;

    assert_eq!(invited.code, 0, "{invited:?}");
    assert_eq!(invited.stdout.lines().last(), Some("pli_1"));
    let next = format!("plumb accept-invite --server {}", server.url());
    assert!(invited.stderr.contains(&next), "{invited:?}");
    let made = &server.asked("POST", "/users")[0];
    let body = json!({ "email": "bob@example.com", "display_name": "Bob", "is_superadmin": true, "memberships": [] });
    assert_eq!(made.body, body);
    assert!(made.header("idempotency-key").is_some());
}

#[tokio::test]
async fn inviting_who_is_there_changes_nothing_of_them() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/users", [Reply::json(&json!({ "items": [user()] }))]);

    let refused = plumb.run(&["user", "invite", "bob@example.com", "--superadmin"]).await;

    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(server.asked("POST", "/users").is_empty());
}

#[tokio::test]
async fn whoever_must_change_the_password_is_told_at_sign_in() {
    let server = FakeServer::start().await;
    let me = json!({ "email": EMAIL, "must_change_password": true, "memberships": [] });
    server.on("GET", "/me", [Reply::json(&me)]);
    let plumb = Plumb::new(&server.url());

    let ran = plumb.run_with(&["login", "--email", EMAIL, "--password-stdin"], "first\n").await;

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stderr.contains("plumb password"), "{ran:?}");
}

#[tokio::test]
async fn removing_somebody_and_archiving_a_unit_ask_first() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let unit = json!({ "id": ID, "slug": "blue", "name": "Blue" });
    server.on("GET", "/business-units", [Reply::json(&json!({ "items": [unit] }))]);

    let removed = plumb.run(&["user", "delete", ID]).await;
    let archived = plumb.run(&["unit", "archive", "blue"]).await;

    assert_eq!((removed.code, archived.code), (2, 2), "no terminal, no --yes");
    assert!(server.asked("DELETE", &format!("/users/{ID}")).is_empty());
    assert!(server.asked("POST", &format!("/business-units/{ID}/archive")).is_empty());
}
