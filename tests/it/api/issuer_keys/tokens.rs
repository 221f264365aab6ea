//! Whom tokens are given, and what they say.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::{Method, StatusCode};
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use super::{AUDIENCE, ask, refused, token_of, trusting_world, verify};
use crate::api::cloud_accounts::ACCOUNT;
use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::world::World;

#[tokio::test]
async fn plan_and_apply_get_tokens_that_a_cloud_verifies_and_that_name_them_by_ids() {
    let world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    let unit = world.plane.unit("default").await;
    let run = world.trigger("apply").await;
    let mut last = None;
    for phase in ["plan", "apply"] {
        let executor = FakeExecutor::start(&world.plane).await;
        let aws = executor.bundle.aws.as_ref().expect("AWS");
        assert!(aws.keys.is_none() && aws.web_identity, "nothing is stored");
        let token = token_of(&executor).await;
        let claims = verify(&issuer, &token, AUDIENCE).await.unwrap();
        let subject = format!("unit:{unit}:workspace:{}:phase:{phase}", world.workspace);
        assert_eq!(claims["sub"], subject, "{claims}");
        assert_eq!((&claims["iss"], &claims["aud"]), (&json!(issuer), &json!(AUDIENCE)));
        for (claim, wanted) in [
            ("run_id", json!(run)),
            ("workspace_id", json!(world.workspace)),
            ("workspace", json!("net")),
            ("business_unit_id", json!(unit)),
            ("business_unit", json!("default")),
            ("environment", json!("dev")),
            ("branch", json!("main")),
            ("phase", json!(phase)),
        ] {
            assert_eq!(claims[claim], wanted, "{claim}");
        }
        let tags = &claims["https://aws.amazon.com/tags"]["principal_tags"];
        assert_eq!(tags["plumbline:phase"], json!([phase]), "{tags}");
        let number = |claim: &str| claims[claim].as_i64().unwrap();
        assert_eq!((number("exp") - number("iat"), number("nbf")), (300, number("iat")));
        assert!((chrono::Utc::now().timestamp() - number("iat")).abs() < 60);

        // Each has its own name, and each is in the audit log.
        let other = verify(&issuer, &token_of(&executor).await, AUDIENCE).await.unwrap();
        assert_ne!(other["jti"], claims["jti"]);
        let (_, log) = world.get("audit?action=identity_token.issue").await;
        let entries = log["items"].as_array().unwrap();
        let entry = entries.iter().find(|entry| entry["details"]["jti"] == claims["jti"]).expect("audited");
        assert_eq!((&entry["resource_id"], &entry["run_id"]), (&json!(ACCOUNT), &json!(run)), "{entry}");
        assert_eq!(
            (&entry["details"]["subject"], &entry["details"]["audience"]),
            (&json!(subject), &json!(AUDIENCE))
        );
        assert!(!log.to_string().contains(&token[..40]), "never the token itself");
        if phase == "plan" {
            assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
            assert_eq!(world.post(&format!("approvals/{run}/approve"), json!({})).await.0, StatusCode::OK);
        }
        last = Some(executor);
    }
    let token = token_of(&last.expect("an apply")).await;
    verify(&issuer, &token, AUDIENCE).await.unwrap();
    assert!(verify(&issuer, &forged(&token), AUDIENCE).await.is_err());
}

/// The token with another subject: of somebody who has everything but the key.
fn forged(token: &str) -> String {
    let parts: Vec<&str> = token.split('.').collect();
    let claims = String::from_utf8(URL_SAFE_NO_PAD.decode(parts[1]).unwrap()).unwrap();
    let claims = URL_SAFE_NO_PAD.encode(claims.replace(":phase:apply", ":phase:plan"));
    assert_ne!(claims, parts[1]);
    [parts[0], &claims, parts[2]].join(".")
}

#[tokio::test]
async fn whom_a_token_is_for_says_the_account_and_never_who_asks() {
    let world = trusting_world().await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let call = async |body: Value| executor.call(Method::POST, "identity-token", body).await;
    for other in ["cluster", "azure", "gcp"] {
        let answer = call(json!({ "for": other })).await;
        assert_eq!(refused(&answer), (StatusCode::NOT_FOUND, "not-found"), "{other}");
    }
    for wrong in [
        json!({ "for": "aws", "audience": "https://vault.example.com" }),
        json!({ "for": "vault" }),
        json!({}),
        json!({ "for": ["aws"] }),
        json!([]),
    ] {
        let answer = call(wrong.clone()).await;
        assert!(answer.0.is_client_error(), "{wrong}: {}", answer.1);
    }
    // An account that trusts nobody gives nobody a token.
    let conn = world.plane.db().conn().await.unwrap();
    conn.execute("UPDATE aws_accounts SET oidc_audience = NULL", &[]).await.unwrap();
    assert_eq!(refused(&ask(&executor).await), (StatusCode::NOT_FOUND, "not-found"));
    assert!(world.get("audit?action=identity_token.issue").await.1["items"].as_array().unwrap().is_empty());
}

#[tokio::test]
async fn a_workspace_without_such_an_account_gets_no_token_and_neither_do_strangers() {
    let world = World::on(super::served_plane().await).await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(refused(&ask(&executor).await), (StatusCode::NOT_FOUND, "not-found"));
    for token in [None, Some("invented"), Some(world.token.as_str())] {
        let answer =
            world.plane.call("POST", "/executor/v1/identity-token", token, json!({ "for": "aws" })).await;
        assert_eq!(answer.0, StatusCode::UNAUTHORIZED);
    }
}

#[tokio::test]
async fn only_an_attempt_whose_lease_is_live_gets_a_token() {
    let world = trusting_world().await;
    let limits = Limits::default();
    let not_live = (StatusCode::CONFLICT, "lease-not-live");

    // Not renewed in time; and again once it is.
    let run = world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    world.plane.advance(limits.lease + Duration::from_secs(1)).await;
    assert_eq!(refused(&ask(&executor).await), not_live);
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
    token_of(&executor).await;

    // Superseded: another attempt has the task.
    let conn = world.plane.db().conn().await.unwrap();
    const TAKE: &str = "UPDATE tasks SET lease_token = lease_token + 1 WHERE status = 'running'";
    assert_eq!(conn.execute(TAKE, &[]).await.unwrap(), 1);
    assert_eq!(refused(&ask(&executor).await), not_live);
    conn.execute("UPDATE tasks SET lease_token = lease_token - 1 WHERE status = 'running'", &[])
        .await
        .unwrap();
    token_of(&executor).await;

    // Asked to stop.
    assert_eq!(world.post(&format!("runs/{run}/cancel"), json!({})).await.0, StatusCode::OK);
    assert_eq!(refused(&ask(&executor).await), not_live);
}

#[tokio::test]
async fn an_apply_that_is_asked_to_stop_gets_no_token_and_neither_does_one_that_is_over() {
    let world = trusting_world().await;
    let not_live = (StatusCode::CONFLICT, "lease-not-live");
    let (run, executor) = world.applying().await;
    token_of(&executor).await;
    assert_eq!(world.post(&format!("runs/{run}/cancel"), json!({})).await.0, StatusCode::OK);
    assert_eq!(executor.heartbeat().await.1["cancel"], "interrupt", "it still holds its lease");
    assert_eq!(refused(&ask(&executor).await), not_live);
    assert_eq!(executor.fail("cancelled", "interrupted").await.0, StatusCode::NO_CONTENT);
    assert_eq!(refused(&ask(&executor).await), not_live);
}

#[tokio::test]
async fn a_token_ends_with_its_attempt_at_the_latest_and_lives_ten_minutes_at_most() {
    let mut world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    let mut limits = (*world.plane.deps.limits).clone();
    limits.issuer_token_age = Duration::from_secs(24 * 3600);
    world.plane.deps.limits = limits.clone().into();
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let life = async || {
        let claims = verify(&issuer, &token_of(&executor).await, AUDIENCE).await.unwrap();
        claims["exp"].as_i64().unwrap() - claims["iat"].as_i64().unwrap()
    };
    assert_eq!(life().await, 600);
    world.plane.advance(limits.plan_wall_clock - Duration::from_secs(100)).await;
    assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
    assert!((90..=100).contains(&life().await));
    world.plane.advance(Duration::from_secs(100)).await;
    executor.heartbeat().await;
    assert_eq!(refused(&ask(&executor).await), (StatusCode::CONFLICT, "lease-not-live"), "its time is over");
}

/// The chain of the unit has one order: every token stands before the cancel in it, or was never made.
#[tokio::test]
async fn of_a_cancel_and_many_requests_at_once_no_token_is_made_after_the_cancel() {
    let world = trusting_world().await;
    for round in 0..3 {
        let run = world.trigger("plan").await;
        let executor = FakeExecutor::start(&world.plane).await;
        let cancel = async {
            for _ in 0..round {
                tokio::task::yield_now().await;
            }
            world.post(&format!("runs/{run}/cancel"), json!({})).await
        };
        let asked = futures::future::join_all((0..12).map(|_| ask(&executor)));
        let (cancelled, asked) = tokio::join!(cancel, asked);
        assert_eq!(cancelled.0, StatusCode::OK, "{}", cancelled.1);
        let given = asked.iter().filter(|answer| answer.0 == StatusCode::OK).count();
        for answer in asked.iter().filter(|answer| answer.0 != StatusCode::OK) {
            assert_eq!(refused(answer), (StatusCode::CONFLICT, "lease-not-live"));
        }
        let actions = world.audit_actions(&run).await;
        let cancel_at = actions.iter().position(|action| action == "run.cancel").expect("it was cancelled");
        let issued = |actions: &[String]| actions.iter().filter(|it| *it == "identity_token.issue").count();
        assert_eq!((issued(&actions[..cancel_at]), issued(&actions[cancel_at..])), (given, 0), "{actions:?}");
    }
}
