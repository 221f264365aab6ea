//! AWS's limits, on one machine.

use plumbline_emulator::{Emulator, GatewayMode, Options};
use serde_json::{Value, json};

use super::program::{programs, scratch};
use super::session::{Session, client};

async fn problem(request: reqwest::RequestBuilder) -> (u16, String) {
    let answer = request.send().await.expect("an answer");
    let status = answer.status().as_u16();
    let body: Value = answer.json().await.unwrap_or(Value::Null);
    (status, body["type"].as_str().unwrap_or_default().rsplit(':').next().unwrap_or_default().to_owned())
}

#[tokio::test]
async fn the_gateway_refuses_what_aws_refuses() {
    let scratch = scratch();
    let emulator = Emulator::start(Options::scratch(scratch.path(), programs())).await.expect("it starts");
    let (http, url) = (client(), format!("{}/api/v1/nowhere", emulator.url()));
    let post = |body: Vec<u8>, kind: &str| http.post(&url).header("content-type", kind).body(body);

    let lock = http.request(reqwest::Method::from_bytes(b"LOCK").expect("a method"), &url);
    assert_eq!(problem(lock).await, (405, "method-not-routed".to_owned()));

    let too_large = (413, "body-too-large".to_owned());
    assert_eq!(problem(post(vec![b'a'; 10_000_001], "text/plain")).await, too_large, "a large body");
    // Each quotation mark becomes two bytes, each control character six, and base64 makes four of three.
    assert_eq!(problem(post(vec![b'"'; 4 << 20], "text/plain")).await, too_large, "a body that JSON doubles");
    assert_eq!(problem(post(vec![1; 2 << 20], "text/plain")).await, too_large, "a body that JSON multiplies");
    assert_eq!(problem(post(vec![b'a'; 5 << 20], "application/zip")).await, too_large, "a body in base64");
    let (status, _) = problem(post(vec![b'a'; 5 << 20], "text/plain")).await;
    assert_ne!(status, 413, "the same size as text reaches the function");

    let header = http.get(&url).header("x-long", "a".repeat(11_000));
    assert_eq!(problem(header).await, (431, "headers-too-large".to_owned()));
    let query = http.get(format!("{url}?q={}", "a".repeat(11_000)));
    assert_eq!(problem(query).await, (431, "headers-too-large".to_owned()), "the request line counts too");
    emulator.stop().await.expect("it stops");
}

/// A terraform that sends LOCK and UNLOCK gets its lock and gives it back; the gateway of AWS knows neither.
#[tokio::test]
async fn lock_and_unlock_pass_an_open_gateway_to_the_state_and_not_that_of_aws() {
    for (gateway, wanted) in
        [(GatewayMode::Open, [(200, true), (200, false)]), (GatewayMode::Aws, [(405, false), (405, false)])]
    {
        let scratch = scratch();
        let options = Options { gateway, ..Options::scratch(scratch.path(), programs()) };
        let emulator = Emulator::start(options).await.expect("it starts");
        let session = Session::sign_in(&emulator.facts).await;
        let workspace = session
            .post(
                "workspaces",
                json!({ "name": "web", "environment": "dev", "repo_url": "https://git.example.com/x.git",
                        "state_writes": "runs_and_people" }),
            )
            .await;
        let id = workspace["id"].as_str().expect("an id");
        let info = json!({ "ID": "11111111-2222-3333-4444-555555555555", "Operation": "OperationTypeApply",
                           "Info": "", "Who": "ada@laptop", "Version": "1.11.4",
                           "Created": "2026-01-31T12:00:00Z", "Path": "" });
        for (method, (status, is_held)) in ["LOCK", "UNLOCK"].into_iter().zip(wanted) {
            let method = reqwest::Method::from_bytes(method.as_bytes()).expect("a method");
            let request = client()
                .request(method.clone(), format!("{}/api/v1/state/{id}", emulator.url()))
                .basic_auth("unit/default", Some(&session.token))
                .json(&info);
            let answer = request.send().await.expect("an answer").status().as_u16();
            assert_eq!(answer, status, "{gateway:?} {method}");
            let lock = session.get(&format!("workspaces/{id}/state-lock")).await;
            assert_eq!(lock["held"], json!(is_held), "{gateway:?} {method}");
        }
        emulator.stop().await.expect("it stops");
    }
}
