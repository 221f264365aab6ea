//! What all routes share: problem documents, limits, headers. The sweeps walk the OpenAPI document, so a new route is
//! covered when it is documented.

use axum::body::Body;
use http::{HeaderMap, Request, StatusCode, header};
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use crate::plane::{TestPlane, read, slug};

const UNITS: &str = "/api/v1/business-units";

/// One documented route.
pub(super) struct Route {
    pub(super) method: String,
    /// With braces.
    pub(super) pattern: String,
    operation: Value,
}

impl Route {
    pub(super) fn open(&self) -> bool {
        self.operation["security"] == json!([{}])
    }

    pub(super) fn has_body(&self) -> bool {
        self.operation.get("requestBody").is_some()
    }

    pub(super) fn takes_idempotency_key(&self) -> bool {
        let named = |one: &Value| one["name"] == "Idempotency-Key";
        self.operation["parameters"].as_array().is_some_and(|all| all.iter().any(named))
    }

    fn has_query(&self) -> bool {
        self.operation["parameters"].as_array().is_some_and(|all| all.iter().any(|one| one["in"] == "query"))
    }

    /// The path with something in every place.
    pub(super) fn path(&self, id: &str) -> String {
        let mut path = String::new();
        for part in self.pattern.split('/').skip(1) {
            path.push('/');
            path.push_str(if part.starts_with('{') { id } else { part });
        }
        path
    }

    fn documents(&self, status: StatusCode) -> bool {
        self.operation["responses"].get(status.as_str()).is_some()
    }
}

fn document() -> Value {
    let (_, document) = plumbline_api::openapi::documented_router();
    serde_json::to_value(document).expect("plain data")
}

pub(super) fn routes() -> Vec<Route> {
    let document = document();
    let paths = document["paths"].as_object().expect("paths");
    let all: Vec<_> = paths
        .iter()
        .flat_map(|(pattern, item)| {
            let verbs = item.as_object().expect("verbs").iter();
            verbs.filter(|(verb, _)| ["get", "put", "post", "delete", "patch"].contains(&verb.as_str())).map(
                |(verb, operation)| Route {
                    method: verb.to_uppercase(),
                    pattern: pattern.clone(),
                    operation: operation.clone(),
                },
            )
        })
        .collect();
    assert!(all.len() > 10, "the document lists the routes");
    all
}

fn id() -> String {
    "01890000-0000-7000-8000-000000000000".into()
}

async fn send(
    plane: &TestPlane,
    route: &Route,
    path: &str,
    token: Option<&str>,
    body: impl Into<Body>,
) -> (StatusCode, HeaderMap, Value) {
    let mut request = Request::builder()
        .method(route.method.as_str())
        .uri(path)
        .header(header::CONTENT_TYPE, "application/json");
    if let Some(token) = token {
        request = request.header(header::AUTHORIZATION, format!("Bearer {token}"));
    }
    read(plane.send(request.body(body.into()).expect("a request")).await).await
}

/// An answer to bad input is documented, never a 5xx, and a problem document if it is an error.
fn check(route: &Route, what: &str, (status, headers, body): &(StatusCode, HeaderMap, Value)) {
    let name = format!("{} {} with {what}: {status} {body}", route.method, route.pattern);
    assert!(!status.is_server_error(), "{name}");
    assert!(route.documents(*status), "undocumented: {name}");
    if status.is_client_error() {
        assert_eq!(headers[header::CONTENT_TYPE], "application/problem+json", "{name}");
        assert_eq!(body["status"], status.as_u16(), "{name}");
        assert!(body["title"].is_string() && !slug(body).is_empty(), "{name}");
    }
}

#[tokio::test]
async fn every_route_but_the_open_ones_is_401_for_strangers() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    for route in routes().iter().filter(|route| !route.open()) {
        for token in [None, Some("nonsense")] {
            let answer = send(&plane, route, &route.path(&id()), token, "{}").await;
            assert_eq!(answer.0, StatusCode::UNAUTHORIZED, "{} {}", route.method, route.pattern);
            assert!(answer.1.contains_key(header::WWW_AUTHENTICATE));
            check(route, "no token", &answer);
        }
    }
}

#[tokio::test]
async fn no_body_makes_a_route_fail_or_answer_what_it_does_not_document() {
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 1000, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 8).await;
    let admin = plane.admin_token().await;
    plane.unit("blue").await;
    let large = " ".repeat(plane.deps.limits.body_bytes_max + 1);
    let deep = "[".repeat(100_000);
    let bodies: [(&str, &str, &[u16]); 12] = [
        ("no body", "", &[400]),
        ("half a body", "{\"name\":", &[400]),
        ("no JSON", "nonsense", &[400]),
        ("a raw NUL", "{\"a\":\"\0\"}", &[400]),
        ("deep nesting", &deep, &[400]),
        ("null", "null", &[422]),
        ("a number", "7", &[422]),
        ("an array", "[]", &[422]),
        ("unknown fields only", "{\"nonsense\":1}", &[422]),
        ("an escaped NUL", "{\"nonsense\":\"\\u0000\"}", &[422]),
        ("a body that is too large", &large, &[413]),
        ("a surrogate", "{\"nonsense\":\"\\ud800\"}", &[400, 422]),
    ];
    for route in routes().iter().filter(|route| route.has_body()) {
        for (what, body, expected) in bodies {
            let request = Request::builder()
                .method(route.method.as_str())
                .uri(route.path(&id()))
                .header(header::CONTENT_TYPE, "application/json")
                .header(header::AUTHORIZATION, format!("Bearer {admin}"))
                .header("x-business-unit", "blue")
                // Where an edit needs one, so that the body is looked at.
                .header(header::IF_MATCH, "*")
                .body(Body::from(body.to_owned()))
                .expect("a request");
            let answer = read(plane.send(request).await).await;
            check(route, what, &answer);
            let name = format!("{} {} with {what}: {}", route.method, route.pattern, answer.0);
            assert!(expected.contains(&answer.0.as_u16()), "{name}");
        }
    }
}

#[tokio::test]
async fn wrong_types_in_every_field_are_answered_and_documented() {
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 1000, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 8).await;
    let admin = plane.admin_token().await;
    let document = document();
    for route in routes().iter().filter(|route| route.has_body()) {
        let schema = &route.operation["requestBody"]["content"]["application/json"]["schema"];
        let name = schema["$ref"].as_str().unwrap_or_default().rsplit('/').next().unwrap_or_default();
        let fields = document["components"]["schemas"][name]["properties"].as_object().cloned();
        let fields = fields.unwrap_or_default();
        for field in fields.keys() {
            for wrong in [
                json!(null),
                json!(-1),
                json!("\u{202e}\u{1f4a5}"),
                json!([[]]),
                json!({ "a": {} }),
                json!(1e300),
            ] {
                let body = json!({ field.as_str(): wrong }).to_string();
                let answer = send(&plane, route, &route.path(&id()), Some(&admin), body).await;
                check(route, field, &answer);
            }
        }
    }
}

#[tokio::test]
async fn ids_and_parameters_that_cannot_be_are_answered_and_documented() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for route in routes().iter().filter(|route| !route.open()) {
        if route.pattern.contains('{') {
            for bad in ["nonsense", "..", "%00", "%2e%2e%2f", "%ff", "'%20OR%201=1--", "-1", &id()] {
                let answer = send(&plane, route, &route.path(bad), Some(&admin), "{}").await;
                check(route, bad, &answer);
            }
        }
        if route.method == "GET" && route.has_query() {
            for bad in [
                "nonsense=1",
                "limit=x",
                "limit=-1",
                "cursor=%00",
                "cursor=x",
                "limit=999999999999999999999",
                "%ff=%ff",
                "limit=1&limit=2",
            ] {
                let path = format!("{}?{bad}", route.path(&id()));
                let answer = send(&plane, route, &path, Some(&admin), "").await;
                check(route, bad, &answer);
            }
        }
    }
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problem_documents() {
    let plane = TestPlane::start().await;
    for path in ["/", "/api", "/api/v1", "/api/v1/nonsense", "/api/v1/business-units/x/y", "/nonsense"] {
        let (status, headers, body) = plane.call("GET", path, None, None).await;
        assert_eq!((status, slug(&body)), (StatusCode::NOT_FOUND, "not-found"), "{path}");
        assert!(headers.contains_key("x-request-id"));
    }
    let (status, headers, body) = plane.call("DELETE", UNITS, None, None).await;
    assert_eq!((status, slug(&body)), (StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed"));
    let allowed = headers[header::ALLOW].to_str().expect("text");
    assert!(allowed.contains("GET") && allowed.contains("POST"), "{allowed}");
}

#[tokio::test]
async fn a_wrong_content_type_is_415_and_a_wrong_field_is_named() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for (kind, expected) in [
        ("text/plain", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/x-www-form-urlencoded", StatusCode::UNSUPPORTED_MEDIA_TYPE),
        ("application/json; charset=utf-8", StatusCode::UNPROCESSABLE_ENTITY),
        ("APPLICATION/JSON", StatusCode::UNPROCESSABLE_ENTITY),
    ] {
        let request = Request::builder()
            .method("POST")
            .uri(UNITS)
            .header(header::CONTENT_TYPE, kind)
            .header(header::AUTHORIZATION, format!("Bearer {admin}"))
            .body(Body::from("{\"slug\":7}"))
            .expect("a request");
        let (status, _, problem) = read(plane.send(request).await).await;
        assert_eq!(status, expected, "{kind}");
        if status == StatusCode::UNPROCESSABLE_ENTITY {
            assert_eq!(problem["field"], "slug");
        }
    }
}

#[tokio::test]
async fn a_large_body_without_a_declared_length_is_413() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let chunks = (0..40).map(|_| Ok::<_, std::io::Error>(bytes::Bytes::from(vec![b' '; 64 << 10])));
    let request = Request::builder()
        .method("POST")
        .uri(UNITS)
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::AUTHORIZATION, format!("Bearer {admin}"))
        .body(Body::from_stream(futures::stream::iter(chunks)))
        .expect("a request");
    let (status, _, problem) = read(plane.send(request).await).await;
    assert_eq!((status, slug(&problem)), (StatusCode::PAYLOAD_TOO_LARGE, "body-too-large"));
}

#[tokio::test]
async fn a_panic_is_a_problem_document_and_the_next_request_works() {
    async fn panics() {
        panic!("a defect");
    }
    let router = plumbline_api::layers::wrap(axum::Router::new().route("/", axum::routing::get(panics)));
    for _ in 0..2 {
        let request = Request::get("/").body(Body::empty()).expect("a request");
        let response = tower::ServiceExt::oneshot(router.clone(), request).await.expect("answered");
        let (status, headers, problem) = read(response).await;
        assert_eq!((status, slug(&problem)), (StatusCode::INTERNAL_SERVER_ERROR, "internal"));
        assert!(headers.contains_key("x-request-id") && !problem.to_string().contains("a defect"));
    }
}

#[tokio::test]
async fn health_says_whether_the_database_answers_and_has_the_schema() {
    let plane = TestPlane::start().await;
    let (status, _, body) = plane.call("GET", "/api/v1/health/ready", None, None).await;
    assert_eq!((status, &body["status"]), (StatusCode::OK, &json!("ok")));
    let conn = plane.db().conn().await.expect("a connection");
    conn.batch("DELETE FROM schema_migrations WHERE version = 1001").await.expect("deleted");
    drop(conn);
    let (status, headers, _) = plane.call("GET", "/api/v1/health/ready", None, None).await;
    assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE);
    assert!(headers.contains_key(header::RETRY_AFTER));
    plane.db().close();
    assert_eq!(
        plane.call("GET", "/api/v1/health/ready", None, None).await.0,
        StatusCode::SERVICE_UNAVAILABLE
    );
    assert_eq!(plane.call("GET", "/api/v1/health/live", None, None).await.0, StatusCode::OK);
    let (_, _, info) = plane.call("GET", "/api/v1/server-info", None, None).await;
    assert_eq!(info["api"], "v1");
}

#[tokio::test]
async fn the_document_is_served_and_every_reference_in_it_resolves() {
    let plane = TestPlane::start().await;
    let (status, _, served) = plane.call("GET", "/api/v1/openapi.json", None, None).await;
    assert_eq!((status, &served), (StatusCode::OK, &document()));
    assert!(served["openapi"].as_str().is_some_and(|version| version.starts_with("3.1")));
    let text = served.to_string();
    for reference in text.split("\"#/components/schemas/").skip(1) {
        let name = reference.split('"').next().expect("a name");
        assert!(served["components"]["schemas"].get(name).is_some(), "{name}");
    }
}

#[test]
fn the_checked_in_document_is_what_the_handlers_say() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../docs/openapi.json");
    let (_, document) = plumbline_api::openapi::documented_router();
    let fresh = plumbline_api::openapi::document_text(&document);
    let stored = std::fs::read_to_string(path).unwrap_or_default();
    assert!(
        stored == fresh,
        "docs/openapi.json is out of date: cargo run -p plumbline-api --bin openapi > docs/openapi.json"
    );
}

#[test]
fn whatever_creates_something_takes_an_idempotency_key() {
    let without_key = [
        // A repeated rollback finds that the newest version is its own.
        "/api/v1/state-versions/{id}/rollback",
        // Their answers hold a secret, and what a key answers is stored.
        "/api/v1/api-keys",
        "/api/v1/api-keys/{id}/rotate",
    ];
    let (_, document) = plumbline_api::openapi::documented_router();
    let document = serde_json::to_value(document).unwrap();
    let mut creating = 0;
    for (path, operations) in document["paths"].as_object().unwrap() {
        let post = &operations["post"];
        if post["responses"].get("201").or_else(|| post["responses"].get("202")).is_none() {
            continue;
        }
        creating += 1;
        let parameters = post["parameters"].as_array().cloned().unwrap_or_default();
        let keyed = parameters.iter().any(|parameter| parameter["name"] == "Idempotency-Key");
        assert!(keyed || without_key.contains(&path.as_str()), "POST {path} creates and takes no key");
    }
    assert!(creating >= 8, "the document says what creates: {creating}");
}

#[test]
fn the_words_in_the_document_are_the_words_on_the_wire() {
    let (_, document) = plumbline_api::openapi::documented_router();
    let document = serde_json::to_value(document).unwrap();
    let mut words = 0;
    for (name, schema) in document["components"]["schemas"].as_object().unwrap() {
        for word in schema["enum"].as_array().into_iter().flatten().filter_map(Value::as_str) {
            words += 1;
            assert!(
                word.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'),
                "{name} has the word {word}"
            );
        }
    }
    assert!(words > 30, "the document has words: {words}");
}
