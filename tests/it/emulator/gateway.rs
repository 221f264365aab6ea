//! AWS's limits, on one machine.

use plumbline_emulator::{Emulator, GatewayMode, Options};
use serde_json::Value;

use super::program::{programs, scratch};
use super::session::client;

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

#[tokio::test]
async fn an_open_gateway_lets_every_method_through() {
    let scratch = scratch();
    let options = Options { gateway: GatewayMode::Open, ..Options::scratch(scratch.path(), programs()) };
    let emulator = Emulator::start(options).await.expect("it starts");
    let lock = reqwest::Method::from_bytes(b"LOCK").expect("a method");
    let (_, slug) = problem(client().request(lock, format!("{}/api/v1/nowhere", emulator.url()))).await;
    assert_ne!(slug, "method-not-routed");
    emulator.stop().await.expect("it stops");
}
