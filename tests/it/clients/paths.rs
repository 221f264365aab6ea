//! The whole space of paths and methods: no answer may send a client elsewhere with another method, or be a server error.

use axum::body::Body;
use http::{Request, StatusCode};
use plumbline_emulator::{Emulator, GatewayMode, Options};
use rand::rngs::StdRng;
use rand::seq::IndexedRandom as _;
use rand::{Rng as _, SeedableRng as _};
use serde_json::json;

use super::socket::Socket;
use crate::emulator::program::{programs, scratch};
use crate::emulator::session::Session;
use crate::store::state_client::{Backend, basic, lock_info, state};

const METHODS: [&str; 14] = [
    "GET", "HEAD", "POST", "PUT", "DELETE", "LOCK", "UNLOCK", "PATCH", "OPTIONS", "PROPFIND", "TRACE",
    "lock", "Post", "X",
];

/// Redirects that make a GET of a write, which loses it in silence.
fn loses_a_write(status: u16) -> bool {
    matches!(status, 300..=303 | 305 | 306 | 308)
}

/// Spellings of the state's path, most of them wrong. The same seed gives the same ones.
fn spellings(id: &str, seed: u64, count: usize) -> Vec<String> {
    const SEPARATORS: [&str; 8] = ["/", "//", "///", "/./", "/../", "%2F", "%2f", "/%2e%2e/"];
    const ENDS: [&str; 14] = [
        "",
        "/",
        "//",
        "/lock",
        "/lock/",
        "//lock//",
        "/LOCK",
        "/lock/lock",
        "/.",
        "/..",
        "?",
        "?ID=x",
        "?ID=%00&ID",
        ";a=b",
    ];
    let mut random = StdRng::seed_from_u64(seed);
    let mut pick = |from: &[&'static str], usual: f64| {
        if random.random_bool(usual) {
            from[0]
        } else {
            from.choose(&mut random).copied().unwrap_or_default()
        }
    };
    let mut paths = vec![
        "/".to_owned(),
        "//".into(),
        "/api/v1/state".into(),
        "/api/v1/state/".into(),
        format!("/api/v1/state/{id}"),
        format!("/api/v1/state/{id}/"),
        format!("/api/v1/state/{id}/lock"),
        format!("/api/v1/state/{id}/lock/"),
        format!("//api//v1//state//{id}//"),
        format!("/API/V1/STATE/{}", id.to_uppercase()),
        format!("/api/v1/state/{}", id.to_uppercase()),
        format!("/api/v1/state/{}", id.replace('-', "")),
        format!("/api/v1/state/%7B{id}%7D"),
        format!("/api/v1/state/{id}%00"),
        format!("/api/v1/state/{id}%20"),
        format!("/api/v1/state/%ff"),
        format!("/api/v1/state/{}", "a".repeat(5000)),
    ];
    while paths.len() < count {
        let words = [
            pick(&["api", "API", "Api", ""], 0.8),
            pick(&["v1", "V1", "v2"], 0.8),
            pick(&["state", "State"], 0.8),
        ];
        let mut path = String::new();
        for word in words {
            path += pick(&SEPARATORS, 0.7);
            path += word;
        }
        path += pick(&SEPARATORS, 0.7);
        path += id;
        path += pick(&ENDS, 0.2);
        paths.push(path);
    }
    paths
}

fn body_of(method: &str, path: &str) -> String {
    match method {
        "LOCK" | "UNLOCK" => lock_info("of-the-fuzzer"),
        "POST" | "PUT" | "DELETE" if path.contains("lock") => lock_info("of-the-fuzzer"),
        _ => state(1, "l", "a"),
    }
}

#[tokio::test]
async fn no_method_on_any_spelling_of_the_path_is_redirected_or_a_server_error() {
    let backend = Backend::start().await;
    let mut served = 0;
    for path in spellings(&backend.workspace.to_string(), 7, 400) {
        for method in METHODS {
            let Ok(request) = Request::builder()
                .method(method)
                .uri(&path)
                .header("authorization", basic(&backend.token))
                .body(Body::from(body_of(method, &path)))
            else {
                continue;
            };
            let (status, headers, answer) = backend.raw(request).await;
            assert!(
                !status.is_redirection() && !status.is_server_error(),
                "{method} {path}: {status} {answer:?}"
            );
            assert!(!headers.contains_key("location"), "{method} {path}");
            served += usize::from(status == StatusCode::OK);
        }
    }
    assert!(served > 20, "some spellings are served: {served}");
    assert_eq!(backend.versions().await.len(), 1, "and all of them are one state");
}

#[tokio::test]
async fn no_gateway_of_the_emulator_redirects_a_spelling_of_the_path_or_fails_at_it() {
    for gateway in [GatewayMode::Open, GatewayMode::Aws] {
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
        let socket = Socket::at(emulator.url(), &session.token);
        let mut answered = 0;
        for path in spellings(id, 11, 120) {
            for method in METHODS {
                let body = body_of(method, &path);
                let headers = ["content-type: application/json", &format!("content-length: {}", body.len())];
                let status = socket.send(&format!("{method} {path}"), &headers, body.as_bytes()).await;
                let Some(status) = status else { continue };
                assert!(!loses_a_write(status) && status != 307, "{gateway:?} {method} {path}: {status}");
                assert!(status < 500, "{gateway:?} {method} {path}: {status}");
                answered += 1;
            }
        }
        assert!(answered > 1000, "{answered} were answered");
        emulator.stop().await.expect("it stops");
    }
}
