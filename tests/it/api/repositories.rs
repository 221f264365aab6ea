//! Discovery, import and branches against real repositories.

mod reach;

use std::sync::{Arc, Mutex};

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::tasks::{self, ClaimedTask, FailedAttempt, FinishedOutcome, TaskClass};
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::cloud_accounts;
use super::smart_http::{GitServer, Repository};
use crate::plane::{TestPlane, slug};

const FILES: [&str; 8] = [
    "account-123456789012/eu-west-1/prod/network/main.tf",
    "account-123456789012/eu-west-1/prod/web_app/main.tf",
    "account-12345/eu-west-1/network/main.tf",
    "charts/web/Chart.yaml",
    "charts/web/templates/web.yaml",
    "modules/vpc/main.tf",
    "main.tf.json",
    "README.md",
];
const LOGIN: &str = "reader:s3cr3t-t0ken+/=";
const TOKEN: &str = "s3cr3t-t0ken+/=";

/// A plane that may reach this machine.
pub(super) async fn plane() -> TestPlane {
    let mut plane = TestPlane::start().await;
    plane.deps.allow_private_addresses = true;
    plane
}

impl TestPlane {
    pub(super) async fn claim_short(&self) -> ClaimedTask {
        let mut claimed = tasks::service::claim(
            &self.as_function(Function::Worker).db,
            TaskClass::Short,
            "a worker",
            1,
            &self.deps.limits,
        )
        .await
        .expect("the test is set up right");
        claimed.pop().expect("a task is due")
    }

    /// Does the one task that is due, without settling it.
    pub(super) async fn do_short(&self) -> (ClaimedTask, Result<Value, FailedAttempt>) {
        let task = self.claim_short().await;
        let answer = plumbline_outbound::handle(&self.as_function(Function::Outbound), &task).await;
        (task, answer)
    }

    /// Does the one task that is due, and records how it ended.
    pub(super) async fn do_short_and_settle(&self) -> Result<Value, FailedAttempt> {
        let (task, answer) = self.do_short().await;
        let (deps, outcome) = (&self.deps, answer.clone());
        let settled = deps.db.transaction(async |tx| match &outcome {
            Ok(result) => {
                tasks::service::finish(tx, task.lease, FinishedOutcome::Done, None, Some(result)).await
            }
            // However it failed, it is over: nothing is tried again behind the test's back.
            Err(failure) => {
                let failure = FailedAttempt::Permanent(failure.why().to_owned());
                tasks::service::fail(tx, task.lease, &failure, 0.0, &deps.limits).await.map(drop)
            }
        });
        settled.await.expect("the attempt holds its task");
        answer
    }

    /// Asks for a short task, does it and reads its result as the person who asked.
    pub(super) async fn short(&self, path: &str, token: &str, body: impl Into<Option<Value>>) -> Value {
        let (status, headers, accepted) = self.call("POST", path, token, body).await;
        assert_eq!(status, StatusCode::ACCEPTED, "{accepted}");
        let place = headers["location"].to_str().expect("the test is set up right").to_owned();
        assert_eq!(
            place,
            format!("/api/v1/tasks/{}", accepted["task_id"].as_str().expect("the test is set up right"))
        );
        let (task, answer) = self.do_short().await;
        let result = answer.expect("it works");
        self.db()
            .transaction(async |tx| {
                tasks::service::finish(tx, task.lease, FinishedOutcome::Done, None, Some(&result)).await
            })
            .await
            .expect("the test is set up right");
        let (status, _, task) = self.call("GET", &place, token, None).await;
        assert_eq!((status, &task["status"]), (StatusCode::OK, &json!("done")), "{task}");
        task["result"].clone()
    }

    /// Everything the database holds about tasks, requests and what was recorded, as text.
    pub(super) async fn stored_text(&self) -> String {
        let conn = self.db().conn().await.expect("the test is set up right");
        let mut text = String::new();
        for sql in [
            "SELECT coalesce(string_agg(row::text, ''), '') AS all FROM tasks AS row",
            "SELECT coalesce(string_agg(row::text, ''), '') AS all FROM finished_tasks AS row",
            "SELECT coalesce(string_agg(convert_from(canonical, 'UTF8'), ''), '') AS all FROM audit_entries",
            "SELECT coalesce(string_agg(row::text, ''), '') AS all FROM idempotency_keys AS row",
            "SELECT coalesce(string_agg(row::text, ''), '') AS all FROM workspaces AS row",
            "SELECT coalesce(string_agg(row::text, ''), '') AS all FROM git_credentials AS row",
        ] {
            text.push_str(conn.query_one(sql, &[]).await.expect("the test is set up right").get("all"));
        }
        text
    }
}

fn by_path(list: &Value) -> Vec<(&str, &str, &str, &str)> {
    fn text<'a>(item: &'a Value, field: &str) -> &'a str {
        item[field].as_str().unwrap_or_default()
    }
    let items = list.as_array().expect("a list").iter();
    items
        .map(|item| (text(item, "path"), text(item, "name"), text(item, "environment"), text(item, "kind")))
        .collect()
}

#[tokio::test]
async fn discovery_over_http_finds_candidates_and_reports_what_is_odd() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    let found = plane.short("/api/v1/workspaces/discover", &admin, json!({ "repo_url": server.url })).await;
    assert_eq!(found["ref"], "main", "the default branch");
    assert_eq!(found["commit_sha"].as_str().map(str::len), Some(40));
    assert_eq!(
        by_path(&found["candidates"]),
        [
            (".", "infra", "dev", "terraform"),
            ("account-123456789012/eu-west-1/prod/network", "network", "prod", "terraform"),
            ("account-123456789012/eu-west-1/prod/web_app", "web-app", "prod", "terraform"),
            ("charts/web", "web", "dev", "helm"),
        ]
    );
    assert_eq!(found["errors"][0]["path"], "account-12345/eu-west-1/network");
}

#[tokio::test]
async fn a_login_reaches_the_repository_and_nothing_else() {
    let logs = Arc::new(Mutex::new(Vec::new()));
    let writer = Arc::clone(&logs);
    let subscriber = tracing_subscriber::fmt()
        .with_max_level(tracing::Level::TRACE)
        .with_ansi(false)
        .with_writer(move || Sink(Arc::clone(&writer)))
        .finish();
    let _guard = tracing::subscriber::set_default(subscriber);
    tracing::info!("logs are kept");
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let request = json!({ "repo_url": server.url, "username": "reader", "token": TOKEN });

    let headers = [("Idempotency-Key", "once")];
    let path = "/api/v1/workspaces/discover";
    let (status, _, _) = plane.call_with("POST", path, &*admin, request.clone(), &headers).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let queued = plane.stored_text().await;
    assert!(queued.contains("login_sealed") && !queued.contains("s3cr3t"), "sealed while it waits");
    let answer = plane.do_short_and_settle().await.unwrap();
    assert_eq!(answer["candidates"].as_array().map(Vec::len), Some(4));
    plane.short("/api/v1/workspaces/import", &admin, request).await;

    assert_eq!(*server.logins.lock().unwrap(), [LOGIN.to_owned()].into());
    let stored = plane.stored_text().await;
    assert!(!stored.contains("s3cr3t") && !stored.contains("login_sealed"), "nobody needs it any more");
    let lines = server.command_lines.lock().unwrap().clone();
    assert!(lines.contains("clone") && !lines.contains("s3cr3t"), "no process shows it");
    let logs = String::from_utf8(logs.lock().unwrap().clone()).unwrap();
    assert!(logs.contains("logs are kept"), "the log is looked at");
    let telling: Vec<&str> = logs.lines().filter(|line| line.contains("s3cr3t")).collect();
    assert_eq!(telling, [""; 0], "no log line has it");
}

struct Sink(Arc<Mutex<Vec<u8>>>);

impl std::io::Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().expect("the test is set up right").extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[tokio::test]
async fn an_import_takes_everything_and_a_second_one_nothing() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    let request = json!({ "repo_url": server.url });
    let first = plane.short("/api/v1/workspaces/import", &admin, request.clone()).await;
    assert_eq!(first["created"].as_array().map(Vec::len), Some(4), "{first}");
    assert_eq!(first["skipped"][0]["path"], "account-12345/eu-west-1/network");
    let (_, _, list) = plane.call("GET", "/api/v1/workspaces?environment=prod", &*admin, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(2));
    assert_eq!(list["items"][0]["repo_ref"], "main");
    assert_eq!(list["items"][0]["state_writes"], "runs_only");
    assert_eq!(list["items"][0]["path_status"], "ok");

    let second = plane.short("/api/v1/workspaces/import", &admin, request.clone()).await;
    assert_eq!(second["created"], json!([]));
    assert_eq!(second["skipped"].as_array().map(Vec::len), Some(5));
    let found = plane.short("/api/v1/workspaces/discover", &admin, request).await;
    let all = found["candidates"].as_array().unwrap();
    assert!(all.iter().all(|candidate| candidate["already_imported"] == true));

    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=workspace.import", &*admin, None).await;
    let kinds = |kind: &str| {
        log["items"].as_array().unwrap().iter().filter(|entry| entry["resource_type"] == kind).count()
    };
    assert_eq!((kinds("workspace"), kinds("task")), (4, 2), "one per workspace, one per request");
}

#[tokio::test]
async fn an_import_links_what_a_path_names_if_the_unit_has_registered_it() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    for kind in cloud_accounts::KINDS.iter().filter(|kind| kind.path != "clusters") {
        let made = plane.call("POST", &format!("/api/v1/{}", kind.path), &*admin, (kind.new)()).await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.2);
    }
    let subscription = cloud_accounts::SUBSCRIPTION;
    let files = [
        format!("azure/subscription-{}/net/main.tf", subscription.to_uppercase()),
        "azure/subscription-00000000-0000-0000-0000-000000000000/net/main.tf".to_owned(),
        format!("gcp/project-{}/net/main.tf", cloud_accounts::PROJECT),
        "gcp/project-of-somebody-else/net/main.tf".to_owned(),
    ];
    let repository = Repository::with(&files.each_ref().map(String::as_str));
    let server = GitServer::serve(&repository, None).await;
    let imported = plane.short("/api/v1/workspaces/import", &admin, json!({ "repo_url": server.url })).await;
    assert_eq!(imported["created"].as_array().map(Vec::len), Some(4), "{imported}");
    let (_, _, list) = plane.call("GET", "/api/v1/workspaces", &*admin, None).await;
    for workspace in list["items"].as_array().unwrap() {
        let path = workspace["tf_working_dir"].as_str().unwrap();
        let (azure, gcp) = (&workspace["azure_subscription_id"], &workspace["gcp_project_id"]);
        let expected =
            if path.starts_with("azure") && path.ends_with(&format!("{}/net", subscription.to_uppercase())) {
                (json!(subscription), Value::Null)
            } else if path.contains(cloud_accounts::PROJECT) {
                (Value::Null, json!(cloud_accounts::PROJECT))
            } else {
                (Value::Null, Value::Null)
            };
        assert_eq!((azure, gcp), (&expected.0, &expected.1), "{path}");
    }
}

#[tokio::test]
async fn an_import_delivered_twice_gives_the_same_result_once() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    plane.call("POST", "/api/v1/workspaces/import", &*admin, json!({ "repo_url": server.url })).await;
    let (task, first) = plane.do_short().await;
    let again = plumbline_outbound::handle(&plane.as_function(Function::Outbound), &task).await;
    assert_eq!(first, again);
    let (_, _, list) = plane.call("GET", "/api/v1/workspaces", &*admin, None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(4));
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=workspace.import", &*admin, None).await;
    assert_eq!(log["items"].as_array().map(Vec::len), Some(5), "nothing is recorded twice");
}

#[tokio::test]
async fn an_attempt_that_lost_its_lease_imports_nothing() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    plane.call("POST", "/api/v1/workspaces/import", &*admin, json!({ "repo_url": server.url })).await;
    let mut task = plane.claim_short().await;
    task.lease.token -= 1;
    assert!(plumbline_outbound::handle(&plane.as_function(Function::Outbound), &task).await.is_err());
    let (_, _, list) = plane.call("GET", "/api/v1/workspaces", &*admin, None).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn chosen_entries_override_what_discovery_suggests() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    let entries = json!([
        { "path": "./modules/vpc/", "name": "vpc", "environment": "qa" },
        { "path": "account-123456789012/eu-west-1/prod/network" },
        { "path": "account-123456789012/eu-west-1/prod/network" },
        { "path": "docs" },
    ]);
    let result = plane
        .short("/api/v1/workspaces/import", &admin, json!({ "repo_url": server.url, "entries": entries }))
        .await;
    let names: Vec<_> = result["created"].as_array().unwrap().iter().map(|made| &made["path"]).collect();
    assert_eq!(names, ["modules/vpc", "account-123456789012/eu-west-1/prod/network"]);
    let reasons: Vec<_> = result["skipped"].as_array().unwrap().iter().map(|odd| &odd["reason"]).collect();
    assert_eq!(reasons[0], "there is no Terraform code and no Helm chart in this directory");
    assert_eq!(reasons[1], "named twice");
    let (_, _, list) = plane.call("GET", "/api/v1/workspaces?q=VPC&environment=qa", &*admin, None).await;
    assert_eq!(list["items"][0]["tf_working_dir"], "modules/vpc");
}

#[tokio::test]
async fn requests_that_cannot_work_are_refused_before_a_task_is_made() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let url = "https://git.example.com/a/b";
    let cases = [
        (json!({ "repo_url": "ext::sh -c x" }), "repo_url"),
        (json!({ "repo_url": "/srv/git/a" }), "repo_url"),
        (json!({ "repo_url": "https://u:p@host/a" }), "repo_url"),
        (json!({ "repo_url": url, "ref": "--upload-pack=x" }), "ref"),
        (json!({ "repo_url": url, "username": "u" }), "username"),
        (json!({ "repo_url": url, "username": "u\nhost=evil", "token": "t" }), "username"),
        (json!({ "repo_url": url, "token": "t\nx" }), "token"),
        (json!({ "repo_url": url, "token": "" }), "token"),
        (json!({ "repo_url": "http://git.example.com/a", "token": "t" }), "token"),
        (json!({ "repo_url": "git@host:a/b", "token": "t" }), "token"),
        (json!({ "repo_url": url, "nonsense": 1 }), "nonsense"),
    ];
    for path in ["/api/v1/workspaces/discover", "/api/v1/workspaces/import"] {
        for (body, field) in &cases {
            let (status, _, problem) = plane.call("POST", path, &*admin, body.clone()).await;
            assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body} {problem}");
            assert_eq!(&problem["field"], field, "{body} {problem}");
        }
    }
    for entries in [
        json!([]),
        json!([{ "path": "../a" }]),
        json!([{ "path": "a", "aws_account_id": "1" }]),
        json!([{ "path": "a", "name": "-" }]),
        json!([{ "path": "a", "region": "EU" }]),
        json!([{ "path": "a", "environment": "a/b" }]),
    ] {
        let body = json!({ "repo_url": url, "entries": entries });
        let (status, _, problem) = plane.call("POST", "/api/v1/workspaces/import", &*admin, body).await;
        let answer = (status, problem["field"].as_str());
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some("entries")), "{problem}");
    }
    let operator = plane.user(Role::Operator).await;
    let body = json!({ "repo_url": url });
    let (status, _, problem) = plane.call("POST", "/api/v1/workspaces/import", &*operator, body).await;
    assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "forbidden"));
    let count = "SELECT count(*) AS n FROM tasks";
    let tasks: i64 = plane.db().conn().await.unwrap().query_one(count, &[]).await.unwrap().get("n");
    assert_eq!(tasks, 0);
}

#[tokio::test]
async fn branches_with_slashes_are_listed_and_only_for_who_asked() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let viewer = plane.user(Role::Viewer).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    let new = json!({ "name": "w", "environment": "dev", "repo_url": server.url });
    let (_, _, made) = plane.call("POST", "/api/v1/workspaces", &*admin, new).await;
    let path = format!("/api/v1/workspaces/{}/branches", made["id"].as_str().unwrap());
    let found = plane.short(&path, &viewer, None).await;
    assert_eq!(
        found,
        json!({ "default_branch": "main", "branches": ["feature/a", "main"], "truncated": false })
    );
    let (_, headers, _) = plane.call("POST", &path, &*viewer, None).await;
    let place = headers["location"].to_str().unwrap().to_owned();
    let other = plane.user(Role::Viewer).await;
    let (status, ..) = plane.call("GET", &place, &*other, None).await;
    assert!(status.is_client_error(), "{status}");
}
