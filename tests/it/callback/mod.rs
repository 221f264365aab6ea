//! What executors may send, swept over every route: strangers, bodies, types, paths, limits. No route of `callback` is in
//! the API's document, so the table here stands for it, and a test compares it with the routers.

mod input;
mod values;

use std::collections::BTreeSet;

use axum::body::Body;
use http::{Request, StatusCode, header};
use serde_json::{Value, json};

use crate::executors::FakeExecutor;
use crate::plane::{Answer, read, slug};
use crate::world::World;

/// What a route takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Takes {
    /// One JSON object; optional fields, and those that may be any JSON, by name.
    Json { optional: &'static [&'static str], anything: &'static [&'static str] },
    /// Bytes.
    Bytes,
    /// A state, or a lock's holder.
    State,
    /// Nothing.
    Nothing,
}

/// One route, relative to `/executor/v1`.
#[derive(Clone, Copy, Debug)]
struct Route {
    method: &'static str,
    /// With braces.
    pattern: &'static str,
    takes: Takes,
}

const fn route(method: &'static str, pattern: &'static str, takes: Takes) -> Route {
    Route { method, pattern, takes }
}

const fn json_with(optional: &'static [&'static str], anything: &'static [&'static str]) -> Takes {
    Takes::Json { optional, anything }
}

const ROUTES: [Route; 20] = [
    route("POST", "/trade", json_with(&["identity"], &[])),
    route("POST", "/heartbeat", Takes::Nothing),
    route("POST", "/identity-token", json_with(&[], &[])),
    route(
        "PUT",
        "/steps/{position}",
        json_with(&["summary", "commit", "tool", "tool_version"], &["summary"]),
    ),
    route("PUT", "/steps/{position}/log", Takes::Bytes),
    route("POST", "/artifacts", json_with(&[], &[])),
    route("GET", "/artifacts/{kind}", Takes::Nothing),
    route("POST", "/artifacts/{kind}/commit", Takes::Nothing),
    route(
        "POST",
        "/plan/complete",
        json_with(&["lock_file_sha256", "base_lineage", "base_serial", "summary"], &[]),
    ),
    route("POST", "/apply/begin", json_with(&[], &[])),
    route("POST", "/apply/touched", json_with(&[], &[])),
    route("POST", "/apply/complete", json_with(&["summary"], &["summary"])),
    route("POST", "/fail", json_with(&[], &[])),
    route("GET", "/state", Takes::State),
    route("POST", "/state", Takes::State),
    route("DELETE", "/state", Takes::State),
    route("POST", "/state/lock", Takes::State),
    route("DELETE", "/state/lock", Takes::State),
    route("POST", "/state/uploads", json_with(&["lock_id", "terraform_version"], &[])),
    route("POST", "/state/uploads/{id}/commit", Takes::Nothing),
];

impl Route {
    /// The path with something that exists in every place.
    fn path(&self) -> String {
        let path = self
            .pattern
            .replace("{position}", "1")
            .replace("{kind}", "plan_file")
            .replace("{id}", "01890000-0000-7000-8000-000000000000");
        let query = if self.pattern.ends_with("/log") { "?offset=0" } else { "" };
        format!("/executor/v1{path}{query}")
    }

    /// A body with every field in its right type.
    fn body(&self) -> Value {
        let digest = "ab".repeat(32);
        match self.pattern {
            "/trade" => json!({ "protocol": 1, "ticket": "t", "nonce": "n".repeat(64),
                                "identity": { "authorization": "a", "date": "d", "security_token": "s" } }),
            "/identity-token" => json!({ "for": "aws" }),
            "/steps/{position}" => json!({ "status": "running", "summary": {}, "commit": "c0".repeat(20),
                                           "tool": "terraform", "tool_version": "1.11.4" }),
            "/artifacts" => json!({ "kind": "plan_file", "size_bytes": 1, "sha256": digest }),
            "/plan/complete" => json!({ "plan_sha256": digest, "plan_json_sha256": digest,
                                        "lock_file_sha256": digest, "base_lineage": "l", "base_serial": 1,
                                        "summary": plumbline_core::runs::PlanSummary::default() }),
            "/apply/begin" => json!({ "plan_sha256": digest }),
            "/apply/complete" => json!({ "summary": {} }),
            "/apply/touched" => json!({ "resources": [{ "address": "a", "action": "create", "id": "i" }] }),
            "/fail" => json!({ "kind": "permanent", "error": "e", "is_state_whole": true }),
            "/state/uploads" => json!({ "lock_id": "l", "serial": 1, "lineage": "l", "size_bytes": 1,
                                        "md5": "ab".repeat(16), "sha256": digest, "terraform_version": "1.11.4" }),
            other => panic!("{other} takes no JSON"),
        }
    }
}

fn with_json() -> impl Iterator<Item = Route> {
    ROUTES.into_iter().filter(|route| matches!(route.takes, Takes::Json { .. }))
}

async fn send(world: &World, method: &str, path: &str, token: Option<&str>, body: impl Into<Body>) -> Answer {
    let mut request =
        Request::builder().method(method).uri(path).header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    read(world.plane.send(request.body(body.into()).unwrap()).await).await
}

/// A refusal: the status, and a problem document with this slug.
fn refused(what: &str, (status, headers, body): &Answer, expected: StatusCode, expected_slug: &str) {
    assert_eq!((*status, slug(body)), (expected, expected_slug), "{what}: {body}");
    assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json", "{what}");
    assert_eq!(body["status"], expected.as_u16(), "{what}");
    assert!(headers.contains_key("x-request-id"), "{what}");
}

/// Nothing that was sent has moved the run or its attempt.
async fn untouched(world: &World, executor: &FakeExecutor<'_>, run: &str) {
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK, "the attempt goes on");
    assert_eq!(world.status(run).await, "running");
    let (_, steps) = world.get(&format!("runs/{run}/steps")).await;
    for step in steps["items"].as_array().unwrap() {
        assert_eq!((&step["status"], &step["log_bytes"]), (&json!("pending"), &json!(0)), "{step}");
    }
    assert_eq!(world.get(&format!("runs/{run}/artifacts")).await.1["items"], json!([]));
}

#[test]
fn every_route_of_the_callback_is_swept() {
    let path = |route: &(&str, String)| route.1.trim_start_matches("/executor/v1").to_owned();
    let there: BTreeSet<String> = plumbline_callback::routes().iter().map(path).collect();
    let swept: BTreeSet<String> = ROUTES.iter().map(|route| route.pattern.to_owned()).collect();
    assert_eq!(there, swept);
}
