//! The one-time code, and whose it is.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::limits::Limits;
use serde_json::json;

use super::{Browser, World, ada};
use crate::idp::Idp;
use crate::plane::slug;

const SECRET: &str = "what only this command line knows";

fn nonce() -> String {
    URL_SAFE_NO_PAD.encode(Sha256Digest::of(SECRET.as_bytes()).0)
}

/// The address on the person's own machine that a command line's answer goes to.
async fn to_command_line(world: &World) -> String {
    let mut browser = Browser::default();
    let address = browser.leave(world, &format!("?cli_port=4711&cli_nonce={}", nonce())).await;
    let back = browser.at_provider(&address).await;
    browser.get(&world.plane, &back).await.location().to_owned()
}

async fn refused(world: &World, body: serde_json::Value) {
    let (status, _, answer) = world.trade(body.clone()).await;
    assert_eq!((status, slug(&answer)), (StatusCode::UNAUTHORIZED, "sign-in-code-invalid"), "{body}");
}

#[tokio::test]
async fn a_code_is_kept_as_a_digest_and_is_good_for_a_minute() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let code = Browser::default().sign_in(&world).await.code();
    let rows = world.plane.every_row().await;
    assert!(rows.values().all(|rows| !rows.contains(&code)), "the code is written down");
    assert!(rows["oidc_sign_ins"].contains(&Sha256Digest::of(code.as_bytes()).to_string()));
    world.plane.advance(Duration::from_secs(61)).await;
    refused(&world, json!({ "code": code })).await;
    assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], "code_expired");
    let code = Browser::default().sign_in(&world).await.code();
    world.plane.advance(Duration::from_secs(58)).await;
    assert_eq!(world.trade(json!({ "code": code })).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_code_that_comes_twice_ends_the_session_that_it_opened() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let code = Browser::default().sign_in(&world).await.code();
    let (_, _, tokens) = world.trade(json!({ "code": code })).await;
    let token = tokens["access_token"].as_str().unwrap();
    assert_eq!(world.me(token).await.0, StatusCode::OK);
    refused(&world, json!({ "code": code })).await;
    assert_eq!(world.me(token).await.0, StatusCode::UNAUTHORIZED);
    let reused = world.entries("session.code_reused").await;
    assert_eq!(reused[0]["details"]["session_ended"], true);
    refused(&world, json!({ "code": code })).await;
    assert_eq!(world.entries("session.code_reused").await[0]["details"]["session_ended"], false);
}

#[tokio::test]
async fn of_many_trades_of_one_code_at_once_at_most_one_session_is_opened_and_none_stays() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let code = Browser::default().sign_in(&world).await.code();
    let answers = futures::future::join_all((0..8).map(|_| world.trade(json!({ "code": code })))).await;
    let opened: Vec<_> = answers.iter().filter(|(status, ..)| *status == StatusCode::OK).collect();
    assert_eq!(opened.len(), 1, "{answers:?}");
    // The others came with a used code: somebody copied it.
    assert_eq!(world.me(opened[0].2["access_token"].as_str().unwrap()).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn a_command_lines_code_goes_to_this_machine_and_is_worth_nothing_without_its_secret() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let place = to_command_line(&world).await;
    let rest = place.strip_prefix("http://127.0.0.1:4711/callback?code=").expect(&place);
    let (code, echoed) = rest.split_once("&nonce=").unwrap();
    assert_eq!(echoed, nonce());
    for wrong in [
        json!({ "code": code }),
        json!({ "code": code, "cli_secret": "" }),
        json!({ "code": code, "cli_secret": nonce() }),
        json!({ "code": code, "cli_secret": "another command line's" }),
    ] {
        refused(&world, wrong).await;
        assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], "other_program");
    }
    let right = json!({ "code": code, "cli_secret": SECRET });
    let (status, _, tokens) = world.trade(right.clone()).await;
    assert_eq!(status, StatusCode::OK, "whoever lacks the secret cannot even use the code up");
    let token = tokens["access_token"].as_str().unwrap();
    // Nor can they end the session with it; the program itself can.
    refused(&world, json!({ "code": code })).await;
    assert_eq!(world.me(token).await.0, StatusCode::OK);
    refused(&world, right).await;
    assert_eq!(world.me(token).await.0, StatusCode::UNAUTHORIZED);
    // A browser's code is no command line's.
    let code = Browser::default().sign_in(&world).await.code();
    refused(&world, json!({ "code": code, "cli_secret": SECRET })).await;
}

#[tokio::test]
async fn a_command_line_is_told_why_not() {
    let Some(world) = World::start().await else { return };
    let mut unverified = ada();
    unverified["email_verified"] = json!(false);
    world.idp.person(unverified);
    let expected = format!("http://127.0.0.1:4711/callback?error=oidc-email-unverified&nonce={}", nonce());
    assert_eq!(to_command_line(&world).await, expected);
}

#[tokio::test]
async fn guesses_are_counted_by_address_and_so_are_returns() {
    let Some(idp) = Idp::start().await else { return };
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 3, ..Limits::default() };
    let world = World::start_with(idp, limits).await.unwrap();
    world.idp.person(ada());
    // What is right is not counted.
    for _ in 0..5 {
        world.sign_in().await;
    }
    for _ in 0..3 {
        refused(&world, json!({ "code": "plo_guess" })).await;
    }
    let (status, headers, _) = world.trade(json!({ "code": "plo_guess" })).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert!(headers.contains_key("retry-after"));
    let written = world.entries("session.login_failed").await.len();
    assert_eq!(written, 3, "whoever is turned away does not fill the log");
    for _ in 0..3 {
        let sent = Browser::default().get(&world.plane, "/api/v1/auth/oidc/callback?state=x").await;
        assert_eq!(sent.error(), "oidc-start-again");
    }
    let sent = Browser::default().get(&world.plane, "/api/v1/auth/oidc/callback?state=x").await;
    assert_eq!(sent.error(), "too-many-attempts");
    assert_eq!(world.entries("session.login_failed").await.len(), 6);
}

#[tokio::test]
async fn what_is_over_is_forgotten_but_not_before_its_session_is() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    world.sign_in().await;
    let count = async || -> i64 {
        let conn = world.plane.db().conn().await.unwrap();
        conn.query_one("SELECT count(*) FROM oidc_sign_ins", &[]).await.unwrap().get(0)
    };
    let forget = async || {
        let deps = world.plane.as_function(plumbline_runtime::Function::Reconciler);
        plumbline_core::oidc_logins::service::forget(&deps).await.unwrap()
    };
    world.plane.advance(Duration::from_secs(6 * 24 * 3600)).await;
    assert_eq!((forget().await, count().await), (0, 1));
    world.plane.advance(Duration::from_secs(2 * 24 * 3600)).await;
    assert_eq!((forget().await, count().await), (1, 0));
}
