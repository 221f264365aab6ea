//! What strangers, other units and broken issuers can do to the sign-in of CI systems: nothing.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::tasks::FailedAttempt;
use serde_json::{Value, json};

use super::ci_logins::Ci;
use crate::idp::Mood;
use crate::plane::slug;

const REFUSED: (StatusCode, &str) = (StatusCode::UNAUTHORIZED, "ci-token-refused");

#[tokio::test]
async fn a_token_is_traded_in_the_unit_that_is_named_and_nowhere_else() {
    let Some(ci) = Ci::start().await else { return };
    let rule = ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let token = ci.idp.sign(&ci.claims());
    let (status, _, problem) = ci.trade_with(json!({ "token": token })).await;
    let refusal = (status, slug(&problem), &problem["field"]);
    assert_eq!(refusal, (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field", &json!("business_unit")));
    // Another unit trusts the same job, as often as it may.
    let other = ci.plane().unit("other-unit").await;
    let theirs = ci.plane().member(other, Role::Admin).await;
    for n in 0..200 {
        let mut copy = ci.rule();
        copy["name"] = json!(format!("copy {n}"));
        let made = ci.plane().call("POST", "/api/v1/ci-trust-rules", theirs.as_str(), copy).await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.2);
    }
    let (status, _, problem) =
        ci.plane().call("POST", "/api/v1/ci-trust-rules", theirs.as_str(), ci.rule()).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "too-many-trust-rules"));
    assert_eq!(ci.key().await["trust_rule_id"], rule["id"], "and nothing changes here");
    let path = format!("/api/v1/ci-trust-rules/{}", rule["id"].as_str().unwrap());
    assert_eq!(ci.plane().call("DELETE", &path, &*ci.backend.token, None).await.0, StatusCode::NO_CONTENT);
    let (status, _, problem) = ci.trade(&token).await;
    assert_eq!((status, slug(&problem)), REFUSED, "no key of another unit in its place");
}

#[tokio::test]
async fn a_stranger_hears_the_same_whether_a_unit_trusts_an_issuer_or_is_there_at_all() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let forged = [ci.idp.forge(&ci.claims()), ci.idp.sign_as(&ci.claims(), Some("unknown"))];
    let mut heard = Vec::new();
    for unit in ["default", "other-unit", "no-such-unit"] {
        ci.plane().unit("other-unit").await;
        for token in &forged {
            let (status, _, problem) = ci.trade_with(json!({ "token": token, "business_unit": unit })).await;
            heard.push((status, problem.to_string()));
        }
    }
    assert!(heard.iter().all(|one| *one == heard[0]), "{heard:?}");
    assert_eq!(heard[0].0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_good_signature_that_no_rule_takes_is_told_to_the_unit_and_an_invention_is_not() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let failures = async || {
        let path = "/api/v1/audit?action=ci.login_failed";
        ci.plane().call("GET", path, &*ci.backend.token, None).await.2["items"].as_array().unwrap().clone()
    };
    ci.trade(&ci.idp.forge(&ci.claims())).await;
    assert_eq!(failures().await, Vec::<Value>::new(), "anybody can invent a token");
    let other = ci.claims_with("sub", "repo:acme/infra:ref:refs/heads/evil");
    let old = ci.claims_with("exp", 1_000_000_000);
    for (claims, reason) in [(other, "no trust rule takes"), (old, "expired")] {
        assert_eq!(ci.trade(&ci.idp.sign(&claims)).await.0, StatusCode::UNAUTHORIZED);
        let newest = failures().await[0]["details"].clone();
        assert_eq!((&newest["issuer"], &newest["subject"]), (&json!(ci.idp.issuer), &claims["sub"]));
        assert!(newest["reason"].as_str().unwrap().contains(reason), "{newest}");
    }
    assert_eq!(failures().await.len(), 2);
}

#[tokio::test]
async fn refusals_are_throttled_and_keys_are_not() {
    let Some(ci) = Ci::start_with(3).await else { return };
    ci.trust(ci.rule()).await;
    let forged = ci.idp.forge(&ci.claims());
    for _ in 0..6 {
        assert_eq!(ci.trade(&forged).await.0, StatusCode::SERVICE_UNAVAILABLE, "to wait is no guess");
    }
    ci.fetch().await.unwrap();
    for _ in 0..6 {
        ci.key().await;
    }
    for _ in 0..3 {
        assert_eq!(ci.trade(&forged).await.0, StatusCode::UNAUTHORIZED);
    }
    let (status, headers, problem) = ci.trade(&ci.idp.sign(&ci.claims())).await;
    assert_eq!((status, slug(&problem)), (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts"));
    assert!(headers.contains_key("retry-after"));
    ci.plane().advance(Duration::from_secs(61)).await;
    ci.key().await;
}

#[tokio::test]
async fn what_the_database_cannot_read_is_refused_before_it_gets_there() {
    let Some(ci) = Ci::start().await else { return };
    let mut any_branch = ci.rule();
    any_branch["subject"] = json!("repo:acme/infra:ref:*");
    ci.trust(any_branch).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let part = |value: Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let unsigned = |issuer: &str| {
        let header = part(json!({ "alg": "RS256", "kid": "x" }));
        format!("{header}.{}.AA", part(json!({ "iss": issuer })))
    };
    let mut cases = vec![unsigned("\0"), unsigned("https://\u{1}"), unsigned(&"x".repeat(10_000))];
    for text in ["repo:acme/infra:ref:refs/heads/a\0b", "repo:acme/infra:ref:refs/heads/\u{7}"] {
        cases.push(ci.idp.sign(&ci.claims_with("sub", text)));
    }
    for token in cases {
        let (status, _, problem) = ci.trade(&token).await;
        assert_eq!((status, slug(&problem)), REFUSED, "{problem}");
    }
    let names = json!({ "token": ci.idp.sign(&ci.claims()), "business_unit": "default\0" });
    assert!(ci.trade_with(names).await.0.is_client_error());
    // Claims of any other kind are nobody's business.
    let odd = ci.claims_with("environment", "a\0b");
    assert_eq!(ci.trade(&ci.idp.sign(&odd)).await.0, StatusCode::OK);
}

#[tokio::test]
async fn keys_that_cannot_be_kept_or_are_not_for_signatures_are_not_taken() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.idp.set_mood(Mood::Publishes(json!({ "x": "\0" })));
    assert!(matches!(ci.fetch().await, Err(FailedAttempt::Permanent(_))));
    for (publishes, status) in [
        (json!({ "use": "enc" }), 401),
        (json!({ "key_ops": ["encrypt"] }), 401),
        (json!({ "alg": "RS512" }), 401),
        (json!({ "alg": "RSA-OAEP" }), 401),
        (json!({ "use": "sig", "alg": "RS256", "key_ops": ["verify"] }), 200),
    ] {
        ci.idp.set_mood(Mood::Publishes(publishes.clone()));
        ci.plane().advance(Duration::from_secs(13 * 3600)).await;
        let lasting = ci.claims_with("exp", 4_000_000_000_i64);
        let token = ci.idp.sign(&lasting);
        assert_eq!(ci.trade(&token).await.0, StatusCode::SERVICE_UNAVAILABLE);
        ci.fetch().await.unwrap();
        assert_eq!(ci.trade(&token).await.0.as_u16(), status, "{publishes}");
    }
}

#[tokio::test]
async fn a_unit_that_asks_for_keys_again_and_again_does_not_keep_another_from_them() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    ci.plane().advance(Duration::from_secs(13 * 3600)).await;
    let other = ci.plane().unit("other-unit").await;
    let theirs = ci.plane().member(other, Role::Admin).await;
    let made = ci.plane().call("POST", "/api/v1/ci-trust-rules", theirs.as_str(), ci.rule()).await;
    assert_eq!(made.0, StatusCode::CREATED, "{}", made.2);
    // Theirs waits in their own queue; ours is asked for all the same.
    let token = ci.idp.sign(&ci.claims_with("exp", 4_000_000_000_i64));
    assert_eq!(ci.trade(&token).await.0, StatusCode::SERVICE_UNAVAILABLE);
    const WAITING: &str = "SELECT count(*) FROM tasks WHERE kind = 'issuer_keys' AND business_unit_id = $1";
    let conn = ci.plane().db().conn().await.unwrap();
    for unit in [ci.backend.unit, other] {
        assert_eq!(conn.query_one(WAITING, &[&unit]).await.unwrap().get::<_, i64>(0), 1);
    }
}

#[tokio::test]
async fn a_rule_that_cannot_be_read_takes_nobody() {
    let Some(ci) = Ci::start().await else { return };
    let mut rule = ci.rule();
    rule["claims"] = json!({ "environment": "prod" });
    ci.trust(rule).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let conn = ci.plane().db().conn().await.unwrap();
    conn.batch(r#"UPDATE ci_trust_rules SET claims = '{"environment": 1}'"#).await.unwrap();
    drop(conn);
    let (status, _, answer) = ci.trade(&ci.idp.sign(&ci.claims())).await;
    assert_eq!(status, StatusCode::INTERNAL_SERVER_ERROR, "a defect, not a key: {answer}");
}

#[tokio::test]
async fn a_rule_that_is_removed_while_a_token_is_traded_gives_no_key() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let mut conn = ci.plane().db().conn().await.unwrap();
    let removing = conn.begin().await.unwrap();
    removing.execute("DELETE FROM ci_trust_rules", &[]).await.unwrap();
    let token = ci.idp.sign(&ci.claims());
    let remove = async {
        ci.plane().until_a_lock_is_waited_for().await;
        removing.commit().await.unwrap();
    };
    let ((status, _, problem), ()) = tokio::join!(ci.trade(&token), remove);
    assert_eq!((status, slug(&problem)), REFUSED, "{problem}");
}

#[tokio::test]
async fn a_key_of_a_trust_rule_gets_no_other_token() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let conn = ci.plane().db().conn().await.unwrap();
    let id: uuid::Uuid = conn.query_one("SELECT id FROM api_keys", &[]).await.unwrap().get(0);
    drop(conn);
    for verb in ["regenerate", "rotate"] {
        let path = format!("/api/v1/api-keys/{id}/{verb}");
        let answer = ci.plane().call("POST", &path, &*ci.backend.token, json!({})).await;
        assert_eq!(answer.0, StatusCode::NOT_FOUND, "{verb}: {}", answer.2);
    }
}
