//! Sign-in of CI systems over HTTP, with an identity provider that signs real tokens and can misbehave.

use std::time::Duration;

use chrono::{TimeDelta, Utc};
use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use plumbline_core::tasks::FailedAttempt;
use serde_json::{Value, json};

use crate::idp::{Idp, Mood};
use crate::plane::{Answer, TestPlane, slug};
use crate::store::state_client::{Backend, insert_workspace};

const AUDIENCE: &str = "https://plumbline.test";
const SUBJECT: &str = "repo:acme/infra:ref:refs/heads/main";

/// A plane, its admin, and an issuer that a rule names.
pub(super) struct Ci {
    pub(super) backend: Backend,
    pub(super) idp: Idp,
}

impl Ci {
    /// `None` where the test cannot be run; the reason was printed.
    pub(super) async fn start() -> Option<Self> {
        Self::start_with(1000).await
    }

    /// With so many attempts a minute.
    pub(super) async fn start_with(logins_per_minute: i32) -> Option<Self> {
        let idp = Idp::start().await?;
        let limits = Limits { bcrypt_cost: 4, logins_per_minute, ..Limits::default() };
        let mut plane = TestPlane::start_with(limits, 8).await;
        plane.deps.allow_private_addresses = true;
        Some(Self { backend: Backend::on(plane).await, idp })
    }

    pub(super) fn plane(&self) -> &TestPlane {
        &self.backend.plane
    }

    pub(super) fn rule(&self) -> Value {
        json!({ "name": "main", "issuer": self.idp.issuer, "audience": AUDIENCE, "subject": SUBJECT })
    }

    pub(super) async fn trust(&self, rule: Value) -> Value {
        let (status, _, made) = self.create(rule).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made
    }

    pub(super) async fn create(&self, rule: Value) -> Answer {
        self.plane().call("POST", "/api/v1/ci-trust-rules", &*self.backend.token, rule).await
    }

    /// What a job of GitHub Actions would say.
    pub(super) fn claims(&self) -> Value {
        let now = Utc::now();
        json!({
            "iss": self.idp.issuer, "aud": AUDIENCE, "sub": SUBJECT, "iat": now.timestamp(),
            "nbf": now.timestamp(), "exp": (now + TimeDelta::minutes(5)).timestamp(),
            "repository": "acme/infra", "ref_protected": "true", "run_number": 7, "environment": "prod",
        })
    }

    pub(super) fn claims_with(&self, field: &str, value: impl Into<Value>) -> Value {
        let mut claims = self.claims();
        claims[field] = value.into();
        claims
    }

    pub(super) async fn trade(&self, token: &str) -> Answer {
        self.trade_with(json!({ "token": token, "business_unit": "default" })).await
    }

    pub(super) async fn trade_with(&self, wish: Value) -> Answer {
        self.plane().call("POST", "/api/v1/auth/ci-token", None, wish).await
    }

    /// Fetches the keys that were asked for.
    pub(super) async fn fetch(&self) -> Result<Value, FailedAttempt> {
        self.plane().do_short_and_settle().await
    }

    pub(super) async fn key(&self) -> Value {
        let (status, _, key) = self.trade(&self.idp.sign(&self.claims())).await;
        assert_eq!(status, StatusCode::OK, "{key}");
        key
    }
}

/// A rule, a sign-in by it, and its end.
pub async fn story() -> TestPlane {
    let ci = Ci::start().await.expect("there is an openssl");
    let rule = ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let other = ci.idp.sign(&ci.claims_with("aud", "https://elsewhere.test"));
    assert_eq!(ci.trade(&other).await.0, StatusCode::UNAUTHORIZED);
    let path = format!("/api/v1/ci-trust-rules/{}", rule["id"].as_str().unwrap());
    assert_eq!(ci.plane().call("DELETE", &path, &*ci.backend.token, None).await.0, StatusCode::NO_CONTENT);
    ci.backend.plane
}

#[tokio::test]
async fn a_job_trades_its_token_for_a_short_key_of_the_rules_reach() {
    let Some(ci) = Ci::start().await else { return };
    let beyond = insert_workspace(ci.plane(), ci.backend.unit, "runs_only").await;
    let mut rule = ci.rule();
    rule["workspace_ids"] = json!([ci.backend.workspace]);
    let rule = ci.trust(rule).await;
    ci.fetch().await.unwrap();
    let key = ci.key().await;
    assert_eq!((&key["capability"], &key["trust_rule_id"]), (&json!("plan"), &rule["id"]));
    let token = key["token"].as_str().unwrap();
    for (workspace, expected) in [(ci.backend.workspace, 201), (beyond, 404)] {
        let body = json!({ "workspace_id": workspace, "command": "plan" });
        let (status, _, answer) = ci.plane().call("POST", "/api/v1/runs", token, body).await;
        assert_eq!(status.as_u16(), expected, "{answer}");
    }
    let body = json!({ "workspace_id": ci.backend.workspace, "command": "apply" });
    let (status, ..) = ci.plane().call("POST", "/api/v1/runs", token, body).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
    // It is no key of people's: they do not see it among theirs, and it is over soon.
    let (_, _, keys) = ci.plane().call("GET", "/api/v1/api-keys", &*ci.backend.token, None).await;
    assert_eq!(keys["items"], json!([]));
    ci.plane().advance(Duration::from_secs(16 * 60)).await;
    let (status, _, problem) = ci.plane().call("GET", "/api/v1/workspaces", token, None).await;
    assert!(status == StatusCode::UNAUTHORIZED && problem.to_string().contains("expired"), "{problem}");
}

#[tokio::test]
async fn a_sign_in_is_recorded_with_issuer_subject_and_rule_and_what_the_key_does_with_the_key() {
    let Some(ci) = Ci::start().await else { return };
    let rule = ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let key = ci.key().await;
    let body = json!({ "workspace_id": ci.backend.workspace, "command": "plan" });
    let (status, ..) = ci.plane().call("POST", "/api/v1/runs", key["token"].as_str().unwrap(), body).await;
    assert_eq!(status, StatusCode::CREATED);
    let last = async |action: &str| {
        let path = format!("/api/v1/audit?action={action}");
        let (_, _, log) = ci.plane().call("GET", &path, &*ci.backend.token, None).await;
        log["items"][0].clone()
    };
    let login = last("ci.login").await;
    assert_eq!(login["details"]["issuer"], ci.idp.issuer);
    assert_eq!(login["details"]["subject"], SUBJECT);
    assert_eq!(login["details"]["trust_rule_id"], rule["id"]);
    let trigger = last("run.trigger").await;
    assert_eq!(
        (&trigger["user_id"], &trigger["details"]["api_key_id"]),
        (&Value::Null, &login["resource_id"])
    );
    let rows = format!("{:?}", ci.plane().every_row().await);
    assert!(!rows.contains(key["token"].as_str().unwrap()));
}

#[tokio::test]
async fn tokens_of_strangers_and_tokens_that_are_not_right_are_refused() {
    let Some(ci) = Ci::start().await else { return };
    let mut rule = ci.rule();
    rule["claims"] = json!({ "environment": "prod", "ref_protected": "true", "run_number": "7" });
    ci.trust(rule).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let keys = async || ci.plane().every_row().await.remove("api_keys");
    let before = keys().await;
    let (idp, now) = (&ci.idp, Utc::now());
    let sign = |field: &str, value: Value| idp.sign(&ci.claims_with(field, value));
    let long_ago = (now - TimeDelta::minutes(2)).timestamp();
    let later = (now + TimeDelta::minutes(5)).timestamp();
    let mut cases = vec![
        ("no JWT", "x.y.z".to_owned()),
        ("empty", String::new()),
        ("too long", format!("{}.x.y", "A".repeat(20_000))),
        ("no signature", idp.unsigned(&ci.claims())),
        ("the public key as a secret", idp.sign_with_public_key(&ci.claims())),
        ("a stranger's key", idp.forge(&ci.claims())),
        ("no key id", idp.sign_as(&ci.claims(), None)),
        ("expired", sign("exp", long_ago.into())),
        ("not yet good", sign("nbf", later.into())),
        ("made in the future", sign("iat", later.into())),
        ("another issuer", sign("iss", "https://token.example.com".into())),
        ("another audience", sign("aud", "https://elsewhere.test".into())),
        ("no audience", sign("aud", json!([]))),
        ("another branch", sign("sub", "repo:acme/infra:ref:refs/heads/x".into())),
        ("another owner", sign("sub", "repo:acme-evil/infra:ref:refs/heads/main".into())),
        ("a longer subject", sign("sub", format!("{SUBJECT}2").into())),
        ("another environment", sign("environment", "dev".into())),
        ("a claim of another type", sign("environment", json!(["prod"]))),
    ];
    for field in ["exp", "sub", "aud", "iss"] {
        let mut claims = ci.claims();
        claims.as_object_mut().unwrap().remove(field);
        cases.push((field, idp.sign(&claims)));
    }
    for (what, token) in cases {
        let (status, _, problem) = ci.trade(&token).await;
        let refusal = (status, slug(&problem));
        assert_eq!(refusal, (StatusCode::UNAUTHORIZED, "ci-token-refused"), "{what}: {problem}");
    }
    assert_eq!(keys().await, before);
    // Several audiences, of which one is ours, are fine; so is a clock that is half a minute off.
    for claims in [
        ci.claims_with("aud", json!(["https://other.test", AUDIENCE])),
        ci.claims_with("exp", (now - TimeDelta::seconds(30)).timestamp()),
        ci.claims_with("nbf", (now + TimeDelta::seconds(30)).timestamp()),
    ] {
        assert_eq!(ci.trade(&idp.sign(&claims)).await.0, StatusCode::OK, "{claims}");
    }
}

#[tokio::test]
async fn a_key_that_was_rotated_at_the_issuer_is_fetched_and_the_old_one_no_longer_taken() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let old = ci.idp.sign(&ci.claims());
    assert_eq!(ci.trade(&old).await.0, StatusCode::OK);
    ci.idp.rotate();
    let new = ci.idp.sign(&ci.claims());
    // An unknown key may be an invention: the issuer is not asked at every one.
    assert_eq!(ci.trade(&new).await.0, StatusCode::UNAUTHORIZED);
    ci.plane().advance(Duration::from_secs(40)).await;
    for _ in 0..3 {
        let (status, headers, problem) = ci.trade(&new).await;
        assert_eq!(status, StatusCode::SERVICE_UNAVAILABLE, "{problem}");
        assert_eq!(headers["retry-after"], "2");
    }
    ci.fetch().await.unwrap();
    assert_eq!(ci.idp.asked(), 2);
    assert_eq!(ci.trade(&new).await.0, StatusCode::OK);
    assert_eq!(ci.trade(&old).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn keys_are_fetched_again_when_they_are_old() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    ci.plane().advance(Duration::from_secs(13 * 3600)).await;
    let lasting = ci.claims_with("exp", (Utc::now() + TimeDelta::days(1)).timestamp());
    let token = ci.idp.sign(&lasting);
    assert_eq!(ci.trade(&token).await.0, StatusCode::SERVICE_UNAVAILABLE);
    ci.fetch().await.unwrap();
    assert_eq!(ci.trade(&token).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_issuer_that_misbehaves_gives_no_keys_and_is_not_followed() {
    let Some(ci) = Ci::start().await else { return };
    let other = Idp::start().await.unwrap();
    ci.trust(ci.rule()).await;
    let metadata = "http://169.254.169.254/latest/meta-data".to_owned();
    for (mood, is_final) in [
        (Mood::Fails(500), false),
        (Mood::Fails(404), true),
        (Mood::Redirects(format!("{}/.well-known/openid-configuration", other.issuer)), true),
        (Mood::Pretends(other.issuer.clone()), true),
        (Mood::KeysAt(metadata), true),
        (Mood::KeysAt("file:///etc/passwd".into()), true),
        (Mood::Floods, true),
        (Mood::Babbles, true),
    ] {
        ci.idp.set_mood(mood.clone());
        ci.plane().advance(Duration::from_secs(60)).await;
        let token = ci.idp.sign(&ci.claims_with("exp", (Utc::now() + TimeDelta::days(1)).timestamp()));
        assert_eq!(ci.trade(&token).await.0, StatusCode::SERVICE_UNAVAILABLE, "{mood:?}");
        let failure = ci.fetch().await.unwrap_err();
        assert_eq!(matches!(failure, FailedAttempt::Permanent(_)), is_final, "{mood:?}: {failure:?}");
    }
    assert_eq!(other.asked(), 0);
}

#[tokio::test]
async fn an_inner_address_is_not_asked_where_private_ones_are_not_allowed() {
    let Some(mut ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.backend.plane.deps.allow_private_addresses = false;
    let failure = ci.fetch().await.unwrap_err();
    assert!(matches!(failure, FailedAttempt::Permanent(_)), "{failure:?}");
    assert_eq!(ci.idp.asked(), 0);
    let mut rule = ci.rule();
    rule["name"] = json!("plain");
    assert_eq!(ci.create(rule).await.0, StatusCode::UNPROCESSABLE_ENTITY);
}

#[tokio::test]
async fn where_several_rules_take_a_token_one_must_be_named() {
    let Some(ci) = Ci::start().await else { return };
    let first = ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let mut rule = ci.rule();
    rule["name"] = json!("as good");
    let second = ci.trust(rule).await;
    let token = ci.idp.sign(&ci.claims());
    let (status, _, problem) = ci.trade(&token).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "ci-token-ambiguous"));
    for rule in [&first, &second] {
        let (status, _, key) = ci.trade_with(json!({ "token": token, "trust_rule_id": rule["id"] })).await;
        assert_eq!((status, &key["trust_rule_id"]), (StatusCode::OK, &rule["id"]), "{key}");
    }
    let mixed = json!({ "token": token, "trust_rule_id": first["id"], "business_unit": "other-unit" });
    assert_eq!(ci.trade_with(mixed).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_rule_that_goes_takes_its_keys_along_and_so_does_an_archived_unit() {
    let Some(ci) = Ci::start().await else { return };
    let rule = ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    let (first, second) = (ci.key().await, ci.key().await);
    let believed = async |key: &Value| {
        let token = key["token"].as_str().unwrap().to_owned();
        ci.plane().call("GET", "/api/v1/workspaces", &*token, None).await.0.as_u16()
    };
    assert_eq!(believed(&first).await, 200);
    let conn = ci.plane().db().conn().await.unwrap();
    conn.batch("UPDATE business_units SET archived_at = plumbline_now()").await.unwrap();
    assert_eq!(believed(&second).await, 403);
    assert_eq!(ci.trade(&ci.idp.sign(&ci.claims())).await.0, StatusCode::UNAUTHORIZED);
    conn.batch("UPDATE business_units SET archived_at = NULL").await.unwrap();
    drop(conn);
    let path = format!("/api/v1/ci-trust-rules/{}", rule["id"].as_str().unwrap());
    assert_eq!(ci.plane().call("DELETE", &path, &*ci.backend.token, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(believed(&first).await, 401);
    assert_eq!(ci.plane().call("GET", &path, &*ci.backend.token, None).await.0, StatusCode::NOT_FOUND);
    assert_eq!(ci.trade(&ci.idp.sign(&ci.claims())).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn rules_that_would_trust_strangers_are_refused() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    let other = ci.plane().unit("other-unit").await;
    let foreign = insert_workspace(ci.plane(), other, "runs_only").await;
    let before = ci.plane().every_row().await;
    for (field, value) in [
        ("subject", json!("*")),
        ("subject", json!("repo:*")),
        ("subject", json!("repo:acme*/infra:ref:refs/heads/main")),
        ("subject", json!("")),
        ("audience", json!("*")),
        ("issuer", json!("token.example.com")),
        ("issuer", json!("https://user:pass@token.example.com")),
        ("issuer", json!("https://token.example.com/?x=1")),
        ("issuer", json!("file:///etc")),
        ("issuer", json!("HTTPS://token.example.com")),
        ("issuer", json!(" https://token.example.com")),
        ("issuer", json!("https:token.example.com")),
        ("issuer", json!("https://token.EXAMPLE.com")),
        ("issuer", json!("https://token.example.com:443")),
        ("issuer", json!("https://token\t.example.com")),
        ("capability", json!("root")),
        ("key_minutes", json!(4)),
        ("key_minutes", json!(121)),
        ("workspace_ids", json!([])),
        ("workspace_ids", json!([foreign])),
        ("claims", json!({ "environment": ["prod"] })),
        ("claims", json!({ "": "x" })),
        ("name", json!(" ")),
        ("owner", json!("me")),
    ] {
        let mut rule = ci.rule();
        rule["name"] = json!("another");
        rule[field] = value.clone();
        let (status, _, problem) = ci.create(rule).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{field} {value}: {problem}");
    }
    let (status, _, problem) = ci.create(ci.rule()).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "ci-trust-rule-exists"));
    assert_eq!(ci.plane().every_row().await, before);
}

#[tokio::test]
async fn keys_of_jobs_long_over_are_forgotten() {
    let Some(ci) = Ci::start().await else { return };
    ci.trust(ci.rule()).await;
    ci.fetch().await.unwrap();
    ci.key().await;
    let count = async || {
        let conn = ci.plane().db().conn().await.unwrap();
        conn.query_one("SELECT count(*) FROM api_keys", &[]).await.unwrap().get::<_, i64>(0)
    };
    ci.plane().advance(Duration::from_secs(3600)).await;
    plumbline_core::api_keys::service::forget(&ci.plane().deps).await.unwrap();
    assert_eq!(count().await, 1);
    ci.plane().advance(Duration::from_secs(25 * 3600)).await;
    plumbline_core::api_keys::service::forget(&ci.plane().deps).await.unwrap();
    assert_eq!(count().await, 0);
}
