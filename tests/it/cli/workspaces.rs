//! Workspaces: names, tables, documents, short tasks.

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply};

const ID: &str = "0190f3c2-0000-7000-8000-0000000000b1";
const OTHER: &str = "0190f3c2-0000-7000-8000-0000000000b2";
const TASK: &str = "0190f3c2-0000-7000-8000-0000000000c1";

fn workspace(id: &str, name: &str, environment: &str) -> Value {
    json!({ "id": id, "name": name, "environment": environment, "region": "eu-west-1", "aws_account_id": "global",
            "repo_url": "https://git.example.com/infra.git", "repo_ref": "main", "tf_working_dir": "stacks/web",
            "kind": "terraform", "tags": { "team": "web" }, "state_writes": "runs_only", "version": 7,
            "tool": null, "blocked": null, "updated_at": "2020-01-01T00:00:00Z" })
}

#[tokio::test]
async fn a_list_is_an_aligned_table_for_people_and_the_servers_document_for_scripts() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let page = json!({ "items": [workspace(ID, "web", "prod"), workspace(OTHER, "search-index", "dev")],
                       "next_cursor": OTHER });
    server.on("GET", "/workspaces", [Reply::json(&page)]);

    let table = plumb.run(&["workspace", "list", "--environment", "prod", "--tag", "team=web"]).await;
    let document = plumb.run(&["workspace", "list", "--json"]).await;

    let lines: Vec<&str> = table.stdout.lines().collect();
    assert_eq!(lines.len(), 3, "{table:?}");
    let column = lines[0].find("ENVIRONMENT").expect("a header");
    assert_eq!((&lines[1][column..column + 4], &lines[2][column..column + 3]), ("prod", "dev"));
    assert!(!table.stdout.contains('\u{1b}'), "no colours into a pipe");
    assert!(table.stderr.contains(&format!("--cursor {OTHER}")), "{table:?}");
    assert_eq!(server.asked("GET", "/workspaces")[0].query, "environment=prod&tag=team%3Aweb");
    assert_eq!(document.stdout, format!("{page}\n"), "byte for byte");
}

#[tokio::test]
async fn an_ambiguous_name_lists_the_candidates_and_starts_nothing() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let near = workspace("0190f3c2-0000-7000-8000-0000000000b3", "web-cache", "dev");
    let items = [workspace(ID, "web", "prod"), workspace(OTHER, "web", "dev"), near];
    server.on("GET", "/workspaces", [Reply::json(&json!({ "items": items }))]);

    let ran = plumb.run(&["run", "apply", "web"]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("2 workspaces are called `web`"), "{ran:?}");
    assert!(ran.stderr.contains(ID) && ran.stderr.contains(OTHER), "{ran:?}");
    assert!(!ran.stderr.contains("web-cache"), "{ran:?}");
    assert!(server.asked("POST", "/runs").is_empty());
}

#[tokio::test]
async fn an_unknown_name_suggests_similar_ones() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/workspaces", [Reply::json(&json!({ "items": [workspace(ID, "web-prod", "prod")] }))]);

    let ran = plumb.run(&["workspace", "show", "web"]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("did you mean") && ran.stderr.contains("web-prod"), "{ran:?}");
}

#[tokio::test]
async fn import_waits_for_its_task_and_prints_what_came_of_it() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("POST", "/workspaces/import", [Reply::status(202, &json!({ "task_id": TASK }))]);
    let task = |status: &str, result: Value| {
        Reply::json(&json!({ "id": TASK, "kind": "workspace_import", "status": status, "result": result }))
    };
    let result = json!({ "created": [{ "id": ID, "path": "stacks/web", "name": "web" }],
                         "skipped": [{ "path": "stacks/old", "reason": "exists already" }] });
    let path = format!("/tasks/{TASK}");
    server.on(
        "GET",
        &path,
        [task("queued", json!(null)), task("running", json!(null)), task("done", result)],
    );

    let mut command =
        plumb.command(&["workspace", "import", "https://git.example.com/infra.git", "--ref", "main"]);
    let ran = super::server::ran(command.env("PLUMB_GIT_TOKEN", "hush").output().await.expect("plumb ends"));

    assert_eq!(ran.code, 0, "{ran:?}");
    assert!(ran.stdout.contains(ID) && ran.stdout.contains("stacks/web"), "{ran:?}");
    assert!(ran.stderr.contains("skipped stacks/old: exists already"), "{ran:?}");
    let asked = &server.asked("POST", "/workspaces/import")[0];
    let body = json!({ "repo_url": "https://git.example.com/infra.git", "ref": "main", "token": "hush" });
    assert_eq!(asked.body, body);
    assert!(!ran.stdout.contains("hush") && !ran.stderr.contains("hush"));
}

#[tokio::test]
async fn a_short_task_that_did_not_work_is_a_failure_with_its_reason() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("POST", "/workspaces/discover", [Reply::status(202, &json!({ "task_id": TASK }))]);
    let dead =
        json!({ "id": TASK, "kind": "repository_discover", "status": "dead", "last_error": "no such host" });
    server.on("GET", &format!("/tasks/{TASK}"), [Reply::json(&dead)]);

    let ran = plumb.run(&["workspace", "discover", "https://nowhere.example.com/x.git"]).await;

    assert_eq!(ran.code, 1);
    assert!(ran.stderr.contains("no such host"), "{ran:?}");
}

#[tokio::test]
async fn an_update_sends_what_was_named_for_the_version_that_it_read() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/workspaces/{ID}");
    server.on("GET", &path, [Reply::json(&workspace(ID, "web", "prod")).header("etag", "\"v7\"")]);
    server.on("PUT", &path, [Reply::json(&workspace(ID, "web", "prod"))]);

    let ran = plumb.run(&["workspace", "update", ID, "--repo-ref", "v2"]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = &server.asked("PUT", &path)[0];
    assert_eq!(asked.header("if-match"), Some("\"v7\""));
    assert_eq!(asked.body, json!({ "repo_ref": "v2" }));
}

#[tokio::test]
async fn nothing_is_deleted_without_a_yes() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/workspaces/{ID}");
    server.on("GET", &path, [Reply::json(&workspace(ID, "web", "prod"))]);
    server.on("DELETE", &path, [Reply::empty(204)]);

    let asked = plumb.run(&["workspace", "delete", ID]).await;
    assert_eq!(asked.code, 2, "{asked:?}");
    assert!(server.asked("DELETE", &path).is_empty());

    let meant = plumb.run(&["workspace", "delete", ID, "--yes", "--force"]).await;
    assert_eq!(meant.code, 0, "{meant:?}");
    assert_eq!(server.asked("DELETE", &path)[0].query, "force=true");
}
