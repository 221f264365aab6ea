//! Who may call, and what a body may be.

use super::*;

#[tokio::test]
async fn every_route_but_the_trade_is_401_for_strangers() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let strangers = [None, Some("nonsense"), Some(&*world.token), Some(&*executor.launch.ticket), Some("")];
    for route in ROUTES.iter().filter(|route| route.pattern != "/trade") {
        for token in strangers {
            let answer = send(&world, route.method, &route.path(), token, "{}").await;
            let what = format!("{} {} as {token:?}", route.method, route.pattern);
            refused(&what, &answer, StatusCode::UNAUTHORIZED, "token-invalid");
            assert!(answer.1.contains_key(header::WWW_AUTHENTICATE), "{what}");
        }
    }
    untouched(&world, &executor, &run).await;
}

#[tokio::test]
async fn no_body_that_is_not_what_a_route_takes_is_let_in() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let large = " ".repeat(world.plane.deps.limits.body_bytes_max + 1);
    let deep = "[".repeat(100_000);
    let bodies: [(&str, &str, u16, &str); 11] = [
        ("no body", "", 400, "body-missing"),
        ("half a body", "{\"status\":", 400, "malformed-body"),
        ("no JSON", "nonsense", 400, "malformed-body"),
        ("a raw NUL", "{\"a\":\"\0\"}", 400, "malformed-body"),
        ("deep nesting", &deep, 400, "malformed-body"),
        ("null", "null", 422, "invalid-field"),
        ("a number", "7", 422, "invalid-field"),
        ("an array", "[]", 422, "invalid-field"),
        ("an escaped NUL", "{\"a\":\"\\u0000\"}", 422, "invalid-field"),
        ("nothing that is needed", "{\"nonsense\":1}", 422, "invalid-field"),
        ("a body that is too large", &large, 413, "body-too-large"),
    ];
    for route in with_json() {
        for (what, body, status, slug) in bodies {
            let answer =
                send(&world, route.method, &route.path(), Some(&executor.bundle.token), body.to_owned())
                    .await;
            let what = format!("{} with {what}", route.pattern);
            refused(&what, &answer, StatusCode::from_u16(status).unwrap(), slug);
        }
        let text = Request::builder()
            .method(route.method)
            .uri(route.path())
            .header(header::CONTENT_TYPE, "text/plain")
            .header(header::AUTHORIZATION, format!("Bearer {}", executor.bundle.token))
            .body(Body::from(route.body().to_string()))
            .unwrap();
        let answer = read(world.plane.send(text).await).await;
        refused(route.pattern, &answer, StatusCode::UNSUPPORTED_MEDIA_TYPE, "unsupported-media-type");
    }
    untouched(&world, &executor, &run).await;
}

#[tokio::test]
async fn a_field_of_a_wrong_type_or_an_unknown_one_is_refused_by_name() {
    let world = World::new().await;
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let wrong =
        [json!(null), json!(true), json!(-1.5), json!("\u{202e}\u{1f4a5}"), json!([[]]), json!({ "a": {} })];
    let mut tried = 0;
    for route in with_json() {
        let Takes::Json { optional, anything } = route.takes else { unreachable!() };
        let body = route.body();
        for (field, right) in body.as_object().unwrap() {
            if anything.contains(&field.as_str()) {
                continue;
            }
            for value in &wrong {
                let fits = match (value, right) {
                    (Value::String(_), Value::String(_)) => is_free_text(field),
                    (Value::Bool(_), Value::Bool(_)) => true,
                    (Value::Null, _) => optional.contains(&field.as_str()),
                    _ => false,
                };
                if fits {
                    continue;
                }
                let mut changed = body.clone();
                changed[field] = value.clone();
                let answer = as_executor(&world, &executor, &route, &changed).await;
                let what = format!("{} with {field} {value}", route.pattern);
                refused(&what, &answer, StatusCode::UNPROCESSABLE_ENTITY, "invalid-field");
                let named = answer.2["field"].as_str().unwrap();
                assert!(named.split(['.', '[']).next() == Some(field), "{what}: {named}");
                tried += 1;
            }
        }
        if route.pattern != "/trade" {
            let mut more = body.clone();
            more["nonsense"] = json!(1);
            let answer = as_executor(&world, &executor, &route, &more).await;
            refused(route.pattern, &answer, StatusCode::UNPROCESSABLE_ENTITY, "invalid-field");
            assert_eq!(answer.2["field"], "nonsense");
        }
    }
    assert!(tried > 120, "{tried} wrong values");
    untouched(&world, &executor, &run).await;
}

/// Whether any text is let in by decoding: words and digests are texts with a form of their own.
fn is_free_text(field: &str) -> bool {
    let formed = ["for", "status", "kind", "sha256", "plan_sha256", "plan_json_sha256", "lock_file_sha256"];
    !formed.contains(&field)
}

async fn as_executor(world: &World, executor: &FakeExecutor<'_>, route: &Route, body: &Value) -> Answer {
    send(world, route.method, &route.path(), Some(&executor.bundle.token), body.to_string()).await
}

#[tokio::test]
async fn an_executor_of_a_later_protocol_hears_that_it_is_one() {
    let world = World::new().await;
    let request = json!({ "protocol": 2, "ticket": "t", "nonce": "n".repeat(64), "platform": "arm" });
    let answer = send(&world, "POST", "/executor/v1/trade", None, request.to_string()).await;
    refused("a later protocol", &answer, StatusCode::BAD_REQUEST, "protocol-unsupported");
}

#[tokio::test]
async fn unknown_paths_and_methods_are_problem_documents() {
    let world = World::new().await;
    for path in
        ["/executor/", "/executor/v1", "/executor/v1/nonsense", "/executor/v1/steps", "/executor/v2/trade"]
    {
        let answer = send(&world, "POST", path, None, "{}").await;
        refused(path, &answer, StatusCode::NOT_FOUND, "not-found");
    }
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let token = Some(&*executor.bundle.token);
    for path in ["heartbeat", "trade", "steps/1", "artifacts", "fail", "state", "state/lock", "state/uploads"]
    {
        let answer = send(&world, "PATCH", &format!("/executor/v1/{path}"), token, "{}").await;
        refused(path, &answer, StatusCode::METHOD_NOT_ALLOWED, "method-not-allowed");
    }
}
