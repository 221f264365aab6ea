//! Idempotency keys.

use std::time::Duration;

use http::{HeaderMap, StatusCode};
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use crate::plane::{TestPlane, slug};

const UNITS: &str = "/api/v1/business-units";

async fn post(plane: &TestPlane, key: &str, slug: &str) -> (StatusCode, HeaderMap, Value) {
    let admin = plane.admin_token().await;
    let body = json!({ "slug": slug, "name": "Unit" });
    plane.call_with("POST", UNITS, &*admin, body, &[("idempotency-key", key)]).await
}

#[tokio::test]
async fn a_repeated_post_answers_what_the_first_did() {
    let plane = TestPlane::start().await;
    let (status, headers, made) = post(&plane, "k1", "once").await;
    assert_eq!(status, StatusCode::CREATED);
    let (again, replayed, same) = post(&plane, "k1", "once").await;
    assert_eq!((again, &same), (status, &made));
    assert_eq!(replayed["location"], headers["location"]);
    assert_eq!(replayed["idempotency-replayed"], "true");
}

#[tokio::test]
async fn a_key_with_another_request_is_refused() {
    let plane = TestPlane::start().await;
    post(&plane, "k1", "once").await;
    let (status, _, problem) = post(&plane, "k1", "other").await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "idempotency-key-reused"));
}

#[tokio::test]
async fn of_many_at_once_one_executes_and_the_others_get_its_answer() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let answers = futures::future::join_all((0..8).map(|_| post(&plane, "k1", "once"))).await;
    for (status, _, body) in &answers {
        assert_eq!(*status, StatusCode::CREATED, "{body}");
        assert_eq!(body["id"], answers[0].2["id"]);
    }
    let replayed = answers.iter().filter(|(_, headers, _)| headers.contains_key("idempotency-replayed"));
    assert_eq!(replayed.count(), 7);
}

#[tokio::test]
async fn while_the_first_is_under_way_for_long_the_second_is_told_to_come_back() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let mut conn = plane.db().conn().await.expect("a connection");
    let tx = conn.begin().await.expect("a transaction");
    let key = plumbline_core::idempotency::Key {
        principal: principal(&plane).await,
        key: "slow".into(),
        request: plumbline_core::digest::Sha256Digest::of(b"whatever"),
    };
    let begun = plumbline_core::idempotency::service::begin(&tx, &key, Duration::from_secs(60)).await;
    assert!(matches!(begun, Ok(plumbline_core::idempotency::Begun::First)));
    // Deployed roles have a lock timeout; here the database gets one for new connections.
    let other = plane.with_setting("lock_timeout", "200ms").await;
    let body = json!({ "slug": "slow", "name": "Slow" });
    let (status, headers, problem) =
        other.call_with("POST", UNITS, &*admin, body, &[("idempotency-key", "slow")]).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "idempotency-in-progress"));
    assert_eq!(headers["retry-after"], "1");
}

async fn principal(plane: &TestPlane) -> String {
    let conn = plane.db().conn().await.expect("a connection");
    let row = conn.query_one("SELECT id FROM users", &[]).await.expect("the admin");
    format!("{}/all", row.get::<_, plumbline_core::ids::UserId>("id"))
}

#[tokio::test]
async fn a_refused_request_leaves_no_trace_and_can_be_repeated() {
    let plane = TestPlane::start().await;
    plane.unit("taken").await;
    assert_eq!(post(&plane, "k1", "taken").await.0, StatusCode::CONFLICT);
    assert_eq!(post(&plane, "k1", "free").await.0, StatusCode::CREATED);
}

#[tokio::test]
async fn a_key_is_forgotten_after_its_time() {
    let plane = TestPlane::start().await;
    post(&plane, "k1", "once").await;
    let conn = plane.db().conn().await.expect("a connection");
    conn.batch("UPDATE idempotency_keys SET expires_at = plumbline_now()").await.expect("expired");
    drop(conn);
    assert_eq!(post(&plane, "k1", "other").await.0, StatusCode::CREATED, "an expired key is taken over");
    plane.advance(plane.deps.limits.idempotency_age + Duration::from_secs(1)).await;
    assert_eq!(plumbline_core::idempotency::service::forget(&plane.deps).await.expect("swept"), 1);
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused() {
    let plane = TestPlane::start().await;
    for key in ["", &"x".repeat(256)] {
        let (status, _, problem) = post(&plane, key, "once").await;
        assert_eq!(
            (status, &problem["field"]),
            (StatusCode::UNPROCESSABLE_ENTITY, &json!("Idempotency-Key"))
        );
    }
}
