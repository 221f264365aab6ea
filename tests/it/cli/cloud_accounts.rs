//! Cloud accounts: where secrets come from, and how one is found.

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply};

const ID: &str = "0190f3c2-0000-7000-8000-0000000000a1";
const TASK: &str = "0190f3c2-0000-7000-8000-0000000000c1";
const SECRET: &str = "hunter2+hunter2/hunter2";

fn account(number: &str) -> Value {
    json!({ "id": ID, "name": "payments", "account_id": number, "version": 7 })
}

#[tokio::test]
async fn secrets_come_from_stdin_or_files_and_stand_in_no_argument() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    for path in ["/aws-accounts", "/azure-subscriptions", "/gcp-projects", "/clusters"] {
        server.on("POST", path, [Reply::status(201, &account("123456789012"))]);
    }
    let file = plumb.home.path().join("secret");
    std::fs::write(&file, format!("{SECRET}\n")).unwrap();
    let file = file.to_str().unwrap();

    let aws = [
        "account",
        "aws",
        "create",
        "123456789012",
        "--name",
        "payments",
        "--access-key-id",
        "AKIA0123456789ABCDEF",
    ];
    let from_file = plumb.run(&[&aws[..], &["--secret-file", file]].concat()).await;
    let from_stdin = plumb.run_with(&[&aws[..], &["--secret-stdin"]].concat(), &format!("{SECRET}\n")).await;
    for ran in [&from_file, &from_stdin] {
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!ran.stdout.contains("hunter2") && !ran.stderr.contains("hunter2"), "{ran:?}");
    }
    for asked in server.asked("POST", "/aws-accounts") {
        assert_eq!(asked.body["secret_access_key"], SECRET);
        assert!(asked.header("idempotency-key").is_some());
    }
    let azure = plumb.run(&["account", "azure", "create", "s", "--name", "a", "--secret-file", file]).await;
    assert_eq!(azure.code, 0, "{azure:?}");
    assert_eq!(server.asked("POST", "/azure-subscriptions")[0].body["client_secret"], SECRET);
    let gcp = plumb
        .run_with(&["account", "gcp", "create", "p", "--name", "a", "--key-file", "-"], "{\"a\":\n1}")
        .await;
    assert_eq!(gcp.code, 0, "{gcp:?}");
    assert_eq!(server.asked("POST", "/gcp-projects")[0].body["service_account_json"], "{\"a\":\n1}");
    let cluster = plumb.run(&["cluster", "create", "--name", "prod", "--kubeconfig", file]).await;
    assert_eq!(cluster.code, 0, "{cluster:?}");
    assert_eq!(server.asked("POST", "/clusters")[0].body["kubeconfig"], format!("{SECRET}\n"));

    // Half of a pair of keys is wrong usage, and nothing is sent.
    let half = plumb.run(&aws).await;
    assert_eq!((half.code, server.asked("POST", "/aws-accounts").len()), (2, 2), "{half:?}");
    let missing = plumb.run(&["cluster", "create", "--name", "x", "--kubeconfig", "/nowhere/at/all"]).await;
    assert_eq!((missing.code, server.asked("POST", "/clusters").len()), (1, 1), "{missing:?}");
}

#[tokio::test]
async fn an_account_is_found_by_its_number_and_edited_as_it_was_seen() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let other = json!({ "id": TASK, "name": "other", "account_id": "210987654321" });
    server.on("GET", "/aws-accounts", [Reply::json(&json!({ "items": [other, account("123456789012")] }))]);
    let path = format!("/aws-accounts/{ID}");
    server.on("GET", &path, [Reply::json(&account("123456789012")).header("etag", "\"v7\"")]);
    server.on("PUT", &path, [Reply::json(&account("123456789012"))]);

    let ran =
        plumb.run(&["account", "aws", "update", "123456789012", "--no-keys", "--profile", "none"]).await;

    assert_eq!(ran.code, 0, "{ran:?}");
    let asked = &server.asked("PUT", &path)[0];
    assert_eq!(asked.header("if-match"), Some("\"v7\""));
    let cleared = json!({ "access_key_id": null, "secret_access_key": null, "aws_profile_name": null });
    assert_eq!(asked.body, cleared);
    let unknown = plumb.run(&["account", "aws", "show", "000000000000"]).await;
    assert!(unknown.code == 1 && unknown.stderr.contains("there is no AWS account"), "{unknown:?}");
    let nothing = plumb.run(&["account", "aws", "update", "123456789012"]).await;
    assert_eq!(nothing.code, 2, "{nothing:?}");
}

#[tokio::test]
async fn a_test_that_finds_something_wrong_fails() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", &format!("/aws-accounts/{ID}"), [Reply::json(&account("123456789012"))]);
    server.on("POST", &format!("/aws-accounts/{ID}/test"), [Reply::status(202, &json!({ "task_id": TASK }))]);
    let result = json!({ "ok": false, "detail": "AWS refused: AccessDenied" });
    let task = json!({ "id": TASK, "kind": "aws_account_test", "status": "done", "result": result });
    server.on("GET", &format!("/tasks/{TASK}"), [Reply::json(&task)]);

    let ran = plumb.run(&["account", "aws", "test", ID]).await;

    assert_eq!(ran.code, 1, "{ran:?}");
    assert!(ran.stdout.contains("It does not work: AWS refused: AccessDenied"), "{ran:?}");
}
