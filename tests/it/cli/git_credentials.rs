//! `plumb git-credential`: secrets come from stdin or a file and are never printed.

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply};

const ID: &str = "01890000-0000-7000-8000-000000000001";
const TASK: &str = "01890000-0000-7000-8000-000000000002";

fn credential(more: Value) -> Value {
    let mut one = json!({ "id": ID, "name": "forge", "kind": "token", "host": "git.example.com", "path_prefix": "org",
        "username": "x-access-token", "secret": { "configured": true, "masked_tail": "ABCD" }, "public_key": null,
        "host_keys": [], "app_id": null, "installation_id": null, "api_url": null, "test_repo_url": null,
        "last_used_at": null, "version": 1 });
    one.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    one
}

#[tokio::test]
async fn a_secret_comes_from_stdin_or_a_file_and_is_sent_and_not_shown() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let key = "-----BEGIN OPENSSH PRIVATE KEY-----\nhush\n-----END OPENSSH PRIVATE KEY-----";
    let public = credential(json!({ "kind": "ssh_key", "public_key": "ssh-ed25519 AAAA" }));
    server.on(
        "POST",
        "/git-credentials",
        [Reply::status(201, &credential(json!({}))), Reply::status(201, &public)],
    );
    let create = ["git-credential", "create", "forge", "--host", "git.example.com", "--kind"];
    let ended =
        plumb.run_with(&[&create[..], &["token", "--path-prefix", "org"]].concat(), "hush-token\n").await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stdout.contains(ID) && !ended.stdout.contains("hush"), "{ended:?}");

    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).display().to_string();
    std::fs::write(path("key"), format!("{key}\n")).unwrap();
    std::fs::write(path("hosts"), "# checked\n\ngit.example.com ssh-ed25519 BBBB\n").unwrap();
    let (file, hosts) = (path("key"), path("hosts"));
    let more = ["ssh-key", "--secret-file", &file, "--known-hosts", &hosts, "--host-key", "SHA256:x"];
    let ended = plumb.run(&[&create[..], &more[..]].concat()).await;
    assert_eq!(ended.code, 0, "{ended:?}");
    assert!(ended.stderr.contains("ssh-ed25519 AAAA"), "the forge must know it: {ended:?}");
    let asked = server.asked("POST", "/git-credentials");
    let token = json!({ "name": "forge", "kind": "token", "host": "git.example.com", "path_prefix": "org",
                        "token": "hush-token" });
    assert_eq!(asked[0].body, token);
    let ssh = json!({ "name": "forge", "kind": "ssh_key", "host": "git.example.com", "private_key": key,
                      "host_keys": ["SHA256:x", "git.example.com ssh-ed25519 BBBB"] });
    assert_eq!(asked[1].body, ssh);
    assert!(asked.iter().all(|one| one.header("idempotency-key").is_some()));
    let empty = plumb.run_with(&[&create[..], &["token"]].concat(), "\n").await;
    assert_eq!(empty.code, 2, "{empty:?}");
}

#[tokio::test]
async fn one_is_shown_listed_edited_and_deleted() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/git-credentials/{ID}");
    server.on("GET", "/git-credentials", [Reply::json(&json!({ "items": [credential(json!({}))] }))]);
    server.on("GET", &path, [Reply::json(&credential(json!({}))).header("etag", "\"v1\"")]);
    server.on("PATCH", &path, [Reply::json(&credential(json!({ "path_prefix": "other" })))]);
    server.on("DELETE", &path, [Reply::empty(204)]);
    let usage = json!({ "workspaces_total": 2, "last_used_at": null,
        "workspaces": [{ "id": TASK, "name": "net", "repo_url": "https://git.example.com/org/a" }] });
    server.on("GET", &format!("{path}/usage"), [Reply::json(&usage)]);
    let listed = plumb.run(&["git-credential", "list"]).await;
    assert!(listed.stdout.contains("forge") && listed.stdout.contains("never"), "{listed:?}");
    let shown = plumb.run(&["git-credential", "show", "forge"]).await;
    assert!(shown.stdout.contains("…ABCD") && shown.stdout.contains("x-access-token"), "{shown:?}");
    let used = plumb.run(&["git-credential", "usage", ID]).await;
    assert!(used.stdout.contains("net") && used.stderr.contains("1 more"), "{used:?}");
    let edit = ["git-credential", "update", "forge", "--path-prefix", "other", "--secret-file", "-"];
    let edited = plumb.run_with(&edit, "hush").await;
    assert_eq!(edited.code, 0, "{edited:?}");
    let asked = &server.asked("PATCH", &path)[0];
    assert_eq!(asked.body, json!({ "path_prefix": "other", "token": "hush" }));
    assert_eq!(asked.header("if-match"), Some("\"v1\""));
    assert_eq!(plumb.run(&["git-credential", "update", "forge"]).await.code, 2, "nothing to change");
    let gone = plumb.run(&["git-credential", "delete", "forge", "--yes", "--force"]).await;
    assert_eq!(gone.code, 0, "{gone:?}");
    assert_eq!(server.asked("DELETE", &path)[0].query, "force=true");
    let missing = plumb.run(&["git-credential", "show", "other"]).await;
    assert!(missing.code == 1 && missing.stderr.contains("no Git credential called"), "{missing:?}");
}

#[tokio::test]
async fn a_test_waits_and_fails_unless_the_repository_let_it_in() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/git-credentials/{ID}");
    server.on("GET", &path, [Reply::json(&credential(json!({})))]);
    server.on("POST", &format!("{path}/test"), [Reply::status(202, &json!({ "task_id": TASK }))]);
    let task = |outcome: &str| {
        let result =
            json!({ "outcome": outcome, "detail": "so it is", "repo_url": "https://git.example.com/org/a" });
        Reply::json(&json!({ "id": TASK, "kind": "git_credential_test", "status": "done", "result": result }))
    };
    let outcomes = [("ok", 0), ("refused", 1), ("host_key_mismatch", 1), ("unreachable", 1)];
    server.on("GET", &format!("/tasks/{TASK}"), outcomes.map(|(outcome, _)| task(outcome)));
    for (outcome, code) in outcomes {
        let ended = plumb.run(&["git-credential", "test", ID, "https://git.example.com/org/a"]).await;
        assert_eq!(ended.code, code, "{ended:?}");
        assert!(ended.stdout.contains(&format!("{outcome}: so it is")), "{ended:?}");
    }
    let asked = &server.asked("POST", &format!("{path}/test"))[0];
    assert_eq!(asked.body, json!({ "repo_url": "https://git.example.com/org/a" }));
}
