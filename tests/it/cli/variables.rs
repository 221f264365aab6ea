//! Variables and variable sets.

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply};

const ID: &str = "0190f3c2-0000-7000-8000-0000000000d1";
const SET: &str = "0190f3c2-0000-7000-8000-0000000000d2";
const WORKSPACE: &str = "0190f3c2-0000-7000-8000-0000000000b1";

fn variable(key: &str, value: Value, is_secret: bool) -> Value {
    json!({ "id": ID, "scope": "global", "key": key, "value": value, "masked_tail": is_secret.then_some("…1234"),
            "is_secret": is_secret, "is_hcl": false, "is_readable": true, "description": "what for", "version": 3 })
}

fn page(items: &[Value]) -> Reply {
    Reply::json(&json!({ "items": items }))
}

#[tokio::test]
async fn set_creates_what_is_missing_and_edits_the_version_that_it_read() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/variables", [page(&[]), page(&[variable("region", json!("old"), false)])]);
    server.on("POST", "/variables", [Reply::status(201, &variable("region", json!("eu"), false))]);
    let one = format!("/variables/{ID}");
    let seen = Reply::json(&variable("region", json!("old"), false)).header("etag", "\"v3\"");
    server.on("GET", &one, [seen]);
    server.on("PATCH", &one, [Reply::json(&variable("region", json!("eu"), false))]);
    server.on("DELETE", &one, [Reply::empty(204)]);

    let created = plumb.run(&["var", "set", "region", "=eu ${x}"]).await;
    assert_eq!(created.code, 0, "{created:?}");
    assert!(created.stdout.contains("Created the variable region"), "{created:?}");
    let asked = &server.asked("POST", "/variables")[0];
    assert_eq!(asked.body, json!({ "key": "region", "value": "=eu ${x}" }));
    assert!(asked.header("idempotency-key").is_some());

    let changed = plumb.run(&["var", "set", "region", "eu", "--hcl", "--description", "d"]).await;
    assert_eq!(changed.code, 0, "{changed:?}");
    let asked = &server.asked("PATCH", &one)[0];
    assert_eq!(asked.body, json!({ "value": "eu", "is_hcl": true, "description": "d" }));
    assert_eq!(asked.header("if-match"), Some("\"v3\""));

    assert_eq!(plumb.run(&["var", "set", "region"]).await.code, 2, "nothing to change");
    assert_eq!(plumb.run(&["var", "delete", "region"]).await.code, 2, "nobody to ask");
    assert_eq!(plumb.run(&["var", "delete", "other", "--yes"]).await.code, 1);
    let deleted = plumb.run(&["var", "delete", "region", "--yes"]).await;
    assert_eq!(deleted.code, 0, "{deleted:?}");
    assert_eq!(server.asked("DELETE", &one).len(), 1);
}

#[tokio::test]
async fn a_secret_comes_from_stdin_or_a_file_and_never_from_an_argument() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let own = format!("/workspaces/{WORKSPACE}/variables");
    server.on("GET", &own, [page(&[])]);
    server.on("POST", &own, [Reply::status(201, &variable("key", json!(null), true))]);

    let argument = plumb.run(&["var", "set", "key", "hush-hush", "--secret", "-w", WORKSPACE]).await;
    assert_eq!(argument.code, 2, "{argument:?}");
    assert!(
        argument.stderr.contains("--value-stdin") && !argument.stderr.contains("hush-hush"),
        "{argument:?}"
    );

    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("key.pem");
    std::fs::write(&file, "-----BEGIN-----\r\nhush\n").unwrap();
    let path = file.to_str().unwrap();
    let from_file =
        plumb.run(&["var", "set", "key", "--secret", "--value-file", path, "-w", WORKSPACE]).await;
    assert_eq!(from_file.code, 0, "{from_file:?}");
    assert!(from_file.stderr.contains("ends with a newline"), "{from_file:?}");
    let arguments = ["var", "set", "key", "--secret", "--value-stdin", "-w", WORKSPACE];
    let from_stdin = plumb.run_with(&arguments, "hush from stdin").await;
    assert_eq!(from_stdin.code, 0, "{from_stdin:?}");
    let asked = server.asked("POST", &own);
    assert_eq!(
        asked[0].body,
        json!({ "key": "key", "value": "-----BEGIN-----\r\nhush\n", "is_secret": true })
    );
    assert_eq!(asked[1].body["value"], "hush from stdin");

    std::fs::write(&file, [0xff, 0xfe]).unwrap();
    let binary = plumb.run(&["var", "set", "key", "--value-file", path, "-w", WORKSPACE]).await;
    assert!(binary.code == 2 && binary.stderr.contains("not UTF-8"), "{binary:?}");
    std::fs::write(&file, "x".repeat((64 << 10) + 1)).unwrap();
    let long = plumb.run(&["var", "set", "key", "--value-file", path, "-w", WORKSPACE]).await;
    assert!(long.code == 2 && long.stderr.contains("64 KiB"), "{long:?}");

    // What is a secret already is one, whether the command says so or not.
    server.on("GET", &own, [page(&[variable("key", json!(null), true)])]);
    let again = plumb.run(&["var", "set", "key", "hush-hush", "-w", WORKSPACE]).await;
    assert!(again.code == 2 && again.stderr.contains("--value-stdin"), "{again:?}");
    assert_eq!(server.asked("POST", &own).len(), 2);
}

#[tokio::test]
async fn lists_show_tails_of_secrets_and_what_cannot_be_opened() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let mut lost = variable("lost", json!(null), false);
    lost["is_readable"] = json!(false);
    let items = [variable("region", json!("eu\nwest"), false), variable("password", json!(null), true), lost];
    server.on("GET", "/variables", [page(&items)]);

    let listed = plumb.run(&["var", "list"]).await;

    assert_eq!(listed.code, 0, "{listed:?}");
    for shown in ["region    eu west", "(secret…1234)", "(cannot be opened: set it anew)"] {
        assert!(listed.stdout.contains(shown), "{shown}: {listed:?}");
    }
}

#[tokio::test]
async fn the_merged_view_says_where_each_value_comes_from() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let merged = json!({ "key": "region", "value": "eu", "masked_tail": null, "is_secret": false, "is_hcl": true,
        "is_readable": true, "source": { "scope": "workspace" },
        "overrides": [{ "scope": "variable_set", "name": "shared", "priority": 1, "id": SET }, { "scope": "global" }] });
    let view = |pinned: Option<bool>| {
        Reply::json(
            &json!({ "items": [merged], "total_bytes": 8, "fits": pinned.is_some(), "pinned": pinned }),
        )
    };
    server.on("GET", &format!("/workspaces/{WORKSPACE}/variables/effective"), [view(None)]);
    server.on("GET", &format!("/runs/{ID}/variables"), [view(Some(false))]);

    let effective = plumb.run(&["var", "effective", WORKSPACE]).await;
    assert!(effective.stdout.contains("workspace"), "{effective:?}");
    assert!(effective.stdout.contains("variable_set shared, global"), "{effective:?}");
    assert!(effective.stderr.contains("more than a run may have"), "{effective:?}");
    let of_run = plumb.run(&["run", "variables", ID]).await;
    assert!(of_run.stdout.contains("variable_set shared, global"), "{of_run:?}");
    assert!(of_run.stderr.contains("has not begun"), "{of_run:?}");
}

#[tokio::test]
async fn a_variable_set_is_found_by_name_and_attached() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let set = json!({ "id": SET, "name": "shared", "description": null, "priority": 7, "all_workspaces": false,
                      "version": 2 });
    let one = format!("/variable-sets/{SET}");
    server.on("GET", "/variable-sets", [page(std::slice::from_ref(&set))]);
    server.on("POST", "/variable-sets", [Reply::status(201, &set)]);
    server.on("GET", &one, [Reply::json(&set).header("etag", "\"v2\"")]);
    server.on("PATCH", &one, [Reply::json(&set)]);
    server.on("DELETE", &one, [Reply::empty(204)]);
    let attached =
        json!({ "workspace_id": WORKSPACE, "workspace_name": "web", "created_at": "2020-01-01T00:00:00Z" });
    server.on("GET", &format!("{one}/workspaces"), [page(&[attached])]);
    for method in ["PUT", "DELETE"] {
        server.on(method, &format!("{one}/workspaces/{WORKSPACE}"), [Reply::empty(204)]);
    }
    server.on("GET", &format!("{one}/variables"), [page(&[])]);
    server.on("POST", &format!("{one}/variables"), [Reply::status(201, &variable("k", json!("v"), false))]);

    for arguments in [
        &["variable-set", "create", "shared", "--priority", "7"][..],
        &["variable-set", "update", "shared", "--all-workspaces", "true"],
        &["variable-set", "attach", "shared", WORKSPACE],
        &["variable-set", "detach", "shared", WORKSPACE],
        &["var", "set", "k", "v", "--variable-set", "shared"],
        &["variable-set", "list"],
        &["variable-set", "delete", "shared", "--yes"],
    ] {
        let done = plumb.run(arguments).await;
        assert_eq!(done.code, 0, "{arguments:?}: {done:?}");
    }
    assert_eq!(server.asked("POST", "/variable-sets")[0].body, json!({ "name": "shared", "priority": 7 }));
    let edit = &server.asked("PATCH", &one)[0];
    assert_eq!((&edit.body, edit.header("if-match")), (&json!({ "all_workspaces": true }), Some("\"v2\"")));
    assert_eq!(server.asked("PUT", &format!("{one}/workspaces/{WORKSPACE}")).len(), 1);
    assert_eq!(server.asked("POST", &format!("{one}/variables")).len(), 1);
    let shown = plumb.run(&["variable-set", "show", "shared"]).await;
    assert!(shown.stdout.contains("attached to     web"), "{shown:?}");
    let unknown = plumb.run(&["variable-set", "show", "other"]).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("no variable set `other`"), "{unknown:?}");
}
