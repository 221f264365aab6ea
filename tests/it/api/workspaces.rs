//! Workspaces over HTTP.

use http::{HeaderMap, StatusCode, header};
use plumbline_core::access::Role;
use plumbline_core::ids::{RunId, WorkspaceId};
use plumbline_core::workspaces;
use serde_json::{Value, json};

use crate::plane::{TestPlane, slug};

const WORKSPACES: &str = "/api/v1/workspaces";

fn new(name: &str) -> Value {
    json!({
        "name": name,
        "environment": "dev",
        "repo_url": "https://git.example.com/a/infra.git",
        "tf_working_dir": name,
    })
}

fn etag(headers: &HeaderMap) -> String {
    headers[header::ETAG].to_str().expect("the test is set up right").to_owned()
}

fn names(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("a list").iter().filter_map(|item| item["name"].as_str()).collect()
}

impl TestPlane {
    /// Makes a workspace and gives its path.
    async fn made(&self, token: &str, new: Value) -> String {
        let (status, headers, made) = self.call("POST", WORKSPACES, token, new).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        headers[header::LOCATION].to_str().expect("the test is set up right").to_owned()
    }

    async fn list(&self, token: &str, query: &str) -> Value {
        let (status, _, list) = self.call("GET", &format!("{WORKSPACES}?{query}"), token, None).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        list
    }

    async fn actions(&self, token: &str) -> Vec<String> {
        let (_, _, log) = self.call("GET", "/api/v1/audit", token, None).await;
        let entries = log["items"].as_array().expect("a list").iter();
        let actions =
            entries.map(|entry| entry["action"].as_str().expect("the test is set up right").to_owned());
        actions.filter(|action| action.starts_with("workspace.")).collect()
    }
}

fn id_in(path: &str) -> WorkspaceId {
    path.rsplit('/').next().expect("the test is set up right").parse().expect("the test is set up right")
}

#[tokio::test]
async fn a_workspace_is_made_read_edited_and_deleted_and_each_is_recorded() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    let (status, headers, read) = plane.call("GET", &path, &*admin, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        (&read["region"], &read["aws_account_id"], &read["repo_ref"], &read["tool"], &read["version"]),
        (&json!("global"), &json!("global"), &json!("main"), &json!("terraform"), &json!(1))
    );
    assert_eq!((&read["blocked"], &read["active_run_id"]), (&Value::Null, &Value::Null));
    let seen = etag(&headers);
    let (status, ..) =
        plane.call_with("GET", &path, &*admin, None, &[("If-None-Match", seen.as_str())]).await;
    assert_eq!(status, StatusCode::NOT_MODIFIED);

    let change = json!({ "environment": "prod", "tool_version": "1.10.5" });
    let (status, headers, edited) =
        plane.call_with("PUT", &path, &*admin, change, &[("If-Match", seen.as_str())]).await;
    assert_eq!(status, StatusCode::OK, "{edited}");
    assert_eq!((&edited["environment"], &edited["name"]), (&json!("prod"), &json!("network")));
    assert_ne!(etag(&headers), seen);
    let change = json!({ "tool_version": null });
    let (_, _, edited) = plane.call_with("PUT", &path, &*admin, change, &[("If-Match", "*")]).await;
    assert_eq!((&edited["tool_version"], &edited["version"]), (&Value::Null, &json!(3)));

    let (status, ..) = plane.call("DELETE", &path, &*admin, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    let (status, ..) = plane.call("GET", &path, &*admin, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
    let expected = ["workspace.delete", "workspace.update", "workspace.update", "workspace.create"];
    assert_eq!(plane.actions(&admin).await, expected);
}

#[tokio::test]
async fn the_same_place_twice_is_a_conflict_that_names_the_fields() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    plane.made(&admin, new("network")).await;
    let mut again = new("other");
    again["tf_working_dir"] = json!("./network/");
    again["repo_url"] = json!("https://GIT.example.com/a/infra.git/");
    let (status, _, problem) = plane.call("POST", WORKSPACES, &*admin, again).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-exists"));
    let identity = ["aws_account_id", "region", "environment", "repo_url", "tf_working_dir"];
    assert_eq!(problem["fields"], json!(identity));

    let mut elsewhere = new("network");
    elsewhere["environment"] = json!("prod");
    let path = plane.made(&admin, elsewhere).await;
    let change = json!({ "environment": "dev" });
    let (status, _, problem) = plane.call_with("PUT", &path, &*admin, change, &[("If-Match", "*")]).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-exists"));
    let other = plane.unit("other").await;
    let stranger = plane.member(other, Role::Admin).await;
    plane.made(&stranger, new("network")).await;
}

#[tokio::test]
async fn one_of_many_equal_requests_makes_the_workspace() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let make = || plane.call("POST", WORKSPACES, &*admin, new("network"));
    let answers = futures::future::join_all((0..8).map(|_| make())).await;
    let made = answers.iter().filter(|(status, ..)| *status == StatusCode::CREATED).count();
    let refused = answers.iter().filter(|(status, ..)| *status == StatusCode::CONFLICT).count();
    assert_eq!((made, refused), (1, 7));
    let key = [("Idempotency-Key", "k")];
    let (_, _, first) = plane.call_with("POST", WORKSPACES, &*admin, new("app"), &key).await;
    let (status, _, second) = plane.call_with("POST", WORKSPACES, &*admin, new("app"), &key).await;
    assert_eq!((status, &first["id"]), (StatusCode::CREATED, &second["id"]));
}

#[tokio::test]
async fn another_units_workspace_is_not_there() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    let other = plane.unit("other").await;
    let stranger = plane.member(other, Role::Admin).await;
    let sub = |rest: &str| format!("{path}{rest}");
    let calls = [
        ("GET", path.clone(), None),
        ("PUT", path.clone(), Some(json!({ "environment": "x" }))),
        ("DELETE", path.clone(), None),
        ("POST", sub("/branches"), None),
        ("POST", sub("/unblock"), Some(json!({ "note": "x" }))),
    ];
    for (method, path, body) in calls {
        let (status, _, problem) =
            plane.call_with(method, &path, &*stranger, body, &[("If-Match", "*")]).await;
        assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "{method} {path}");
    }
    assert_eq!(plane.list(&stranger, "").await["items"], json!([]));
    let superadmin = plane.admin_token().await;
    let all = [("X-Business-Unit", "all")];
    let (_, _, list) = plane.call_with("GET", WORKSPACES, &*superadmin, None, &all).await;
    assert_eq!(names(&list), ["network"]);
    let (status, _, problem) = plane.call_with("POST", WORKSPACES, &*superadmin, new("x"), &all).await;
    assert_eq!((status, slug(&problem)), (StatusCode::BAD_REQUEST, "unit-required"));
}

#[tokio::test]
async fn only_admins_change_workspaces() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    for role in [Role::Viewer, Role::Operator] {
        let token = plane.user(role).await;
        assert_eq!(names(&plane.list(&token, "").await), ["network"]);
        let calls = [
            ("POST", WORKSPACES.to_owned(), Some(new("x"))),
            ("PUT", path.clone(), Some(json!({ "environment": "x" }))),
            ("DELETE", path.clone(), None),
            ("POST", format!("{path}/unblock"), Some(json!({ "note": "x" }))),
        ];
        for (method, path, body) in calls {
            let (status, ..) = plane.call_with(method, &path, &*token, body, &[("If-Match", "*")]).await;
            assert_eq!(status, StatusCode::FORBIDDEN, "{role:?} {method} {path}");
        }
    }
}

#[tokio::test]
async fn filters_combine_and_pages_neither_repeat_nor_miss() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    for n in 0..7 {
        let mut one = new(&format!("stack-{n}"));
        one["environment"] = json!(if n % 2 == 0 { "prod" } else { "dev" });
        one["region"] = json!(if n < 4 { "eu-west-1" } else { "us-gov-east-1" });
        one["tags"] = json!({ "Team": if n < 2 { "core" } else { "apps" }, "n": n.to_string() });
        plane.made(&admin, one).await;
    }
    let cases = [
        ("environment=prod", vec!["stack-6", "stack-4", "stack-2", "stack-0"]),
        ("environment=prod&region=eu-west-1", vec!["stack-2", "stack-0"]),
        ("q=STACK-3", vec!["stack-3"]),
        ("q=%25", vec![]),
        ("tag=TEAM:core", vec!["stack-1", "stack-0"]),
        ("tag=team:core&environment=dev", vec!["stack-1"]),
        ("aws_account_id=123456789012", vec![]),
    ];
    for (query, expected) in cases {
        assert_eq!(names(&plane.list(&admin, query).await), expected, "{query}");
    }
    let mut seen = Vec::new();
    let mut query = "limit=3".to_owned();
    loop {
        let page = plane.list(&admin, &query).await;
        seen.extend(names(&page).iter().map(|name| (*name).to_owned()));
        let Some(cursor) = page["next_cursor"].as_str() else { break };
        query = format!("limit=3&cursor={cursor}");
        // What is made meanwhile is newer and does not shift the pages.
        plane.made(&admin, new(&format!("late-{}", seen.len()))).await;
    }
    assert_eq!(seen, (0..7).rev().map(|n| format!("stack-{n}")).collect::<Vec<_>>());
    for bad in ["tag=team", "nonsense=1", "cursor=x", "limit=x"] {
        let (status, ..) = plane.call("GET", &format!("{WORKSPACES}?{bad}"), &*admin, None).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{bad}");
    }
}

#[tokio::test]
async fn an_edit_of_an_old_version_is_refused() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    let (_, headers, _) = plane.call("GET", &path, &*admin, None).await;
    let seen = etag(&headers);
    let (status, _, problem) = plane.call("PUT", &path, &*admin, json!({ "environment": "a" })).await;
    assert_eq!((status, slug(&problem)), (StatusCode::PRECONDITION_REQUIRED, "precondition-required"));
    let if_match = [("If-Match", seen.as_str())];
    let edit = |environment: &str| {
        plane.call_with("PUT", &path, &*admin, json!({ "environment": environment }), &if_match)
    };
    let answers = futures::future::join_all(["a", "b", "c", "d"].map(edit)).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, ..)| *status == StatusCode::OK);
    assert_eq!((won.len(), lost.len()), (1, 3));
    for (status, _, problem) in lost {
        assert_eq!((status, slug(&problem)), (StatusCode::PRECONDITION_FAILED, "changed-meanwhile"));
        assert_eq!(problem["current_etag"], "\"v2\"");
    }
}

#[tokio::test]
async fn values_that_cannot_be_are_refused_by_name() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let long = "x".repeat(300);
    let cases = [
        ("name", json!("")),
        ("name", json!("-x")),
        ("name", json!("a b")),
        ("name", json!(long)),
        ("name", json!("a\u{0}b")),
        ("name", json!(7)),
        ("environment", json!("a/b")),
        ("aws_account_id", json!("12345")),
        ("region", json!("EU-WEST-1")),
        ("repo_url", json!("ext::sh -c id")),
        ("repo_url", json!("file:///etc/passwd")),
        ("repo_url", json!("https://user:password@host/a")),
        ("repo_url", json!("--upload-pack=x")),
        ("repo_url", json!("/srv/git/a.git")),
        ("repo_ref", json!("-x")),
        ("repo_ref", json!("a..b")),
        ("tf_working_dir", json!("../x")),
        ("tf_working_dir", json!("/etc")),
        ("tf_working_dir", json!("a\\b")),
        ("tf_working_dir", json!("a\u{0}b")),
        ("tool", json!("pulumi")),
        ("tool_version", json!("latest")),
        ("state_writes", json!("anyone")),
        ("kind", json!("ansible")),
        ("nonsense", json!(1)),
    ];
    let path = plane.made(&admin, new("good")).await;
    for (field, value) in cases {
        let mut body = new("bad");
        body[field] = value.clone();
        let (status, _, problem) = plane.call("POST", WORKSPACES, &*admin, body).await;
        let answer = (status, problem["field"].as_str());
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some(field)), "{value} {problem}");
        // An edit is as strict; the kind cannot be edited at all.
        let change = json!({ field: value });
        let (status, _, problem) = plane.call_with("PUT", &path, &*admin, change, &[("If-Match", "*")]).await;
        let answer = (status, problem["field"].as_str());
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some(field)), "{value} {problem}");
    }
    let tags = [json!({ "A": "1", "a": "2" }), json!({ "": "x" }), json!({ "a b": "x" }), json!({ "a": 1 })];
    for tags in tags {
        let mut body = new("bad");
        body["tags"] = tags;
        let (status, _, problem) = plane.call("POST", WORKSPACES, &*admin, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
        assert!(problem["field"].as_str().unwrap().starts_with("tags"), "{problem}");
    }
    for missing in ["name", "environment", "repo_url"] {
        let mut body = new("bad");
        body.as_object_mut().unwrap().remove(missing);
        let (status, ..) = plane.call("POST", WORKSPACES, &*admin, body).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{missing}");
    }
}

#[tokio::test]
async fn tag_keys_become_lower_case() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let mut body = new("network");
    body["tags"] = json!({ "Cost-Centre": "Ops", "TEAM": "Core" });
    let path = plane.made(&admin, body).await;
    let (_, _, read) = plane.call("GET", &path, &*admin, None).await;
    assert_eq!(read["tags"], json!({ "cost-centre": "Ops", "team": "Core" }));
}

#[tokio::test]
async fn a_workspace_with_a_run_under_way_is_neither_deleted_nor_moved() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    let run = json!({ "workspace_id": id_in(&path), "command": "apply" });
    let (status, _, run) = plane.call("POST", "/api/v1/runs", &*admin, run).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    let force = format!("{path}?force=true");
    for path in [&path, &force] {
        let (status, _, problem) = plane.call("DELETE", path, &*admin, None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "run-active"));
        assert_eq!(problem["run_id"], run["id"]);
    }
    let any = [("If-Match", "*")];
    let change = json!({ "tf_working_dir": "elsewhere" });
    let (status, _, problem) = plane.call_with("PUT", &path, &*admin, change, &any).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "run-active"));
    let (status, ..) = plane.call_with("PUT", &path, &*admin, json!({ "name": "better" }), &any).await;
    assert_eq!(status, StatusCode::OK, "what a run does not depend on may change");

    let cancel = format!("/api/v1/runs/{}/cancel", run["id"].as_str().unwrap());
    plane.call("POST", &cancel, &*admin, json!({})).await;
    let (status, _, problem) = plane.call("DELETE", &path, &*admin, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{problem}");
}

#[tokio::test]
async fn unblocking_needs_a_block_a_note_and_an_admin_and_is_recorded() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let path = plane.made(&admin, new("network")).await;
    let unblock = format!("{path}/unblock");
    let note = json!({ "note": "the instance was imported" });
    let (status, _, problem) = plane.call("POST", &unblock, &*admin, note.clone()).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "workspace-not-blocked"));
    let run: RunId = plane.deps.ids.mint();
    let block = async |reason: &'static str| {
        plane
            .db()
            .transaction(async |tx| workspaces::service::block(tx, id_in(&path), run, reason).await)
            .await
            .unwrap();
    };
    block("the apply was lost").await;
    block("a later reason").await;
    let (_, _, read) = plane.call("GET", &path, &*admin, None).await;
    assert_eq!(read["blocked"]["reason"], "the apply was lost", "the first reason stays");
    assert_eq!(read["blocked"]["run_id"], json!(run));
    for bad in [json!({}), json!({ "note": " " }), json!({ "note": "x".repeat(1001) })] {
        let (status, ..) = plane.call("POST", &unblock, &*admin, bad).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    }
    let (status, _, now) = plane.call("POST", &unblock, &*admin, note).await;
    assert_eq!((status, &now["blocked"]), (StatusCode::OK, &Value::Null));
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=workspace.unblock", &*admin, None).await;
    assert_eq!(log["items"][0]["details"]["note"], "the instance was imported");
    assert_eq!(log["items"][0]["run_id"], json!(run));
}
