//! How the issuer's keys change, without a verifier that misses one.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use super::{AUDIENCE, fetch, token_of, trusting_world, verify};
use crate::executors::FakeExecutor;
use crate::plane::{ADMIN_EMAIL, Answer, slug};
use crate::world::World;

const KEYS: &str = "/api/v1/auth/issuer-keys";

/// A superadmin, who may rotate. Time moves, so their token is fetched anew.
async fn rotate(world: &World, at_once: bool) -> Answer {
    world.plane.admin_token().await;
    let superadmin = world.plane.login(ADMIN_EMAIL).await;
    world.plane.call("POST", KEYS, &*superadmin, json!({ "at_once": at_once })).await
}

/// Names and statuses of all keys, oldest first.
async fn keys(world: &World) -> Vec<(String, String)> {
    let superadmin = world.plane.login(ADMIN_EMAIL).await;
    let (_, _, listed) = world.plane.call("GET", KEYS, &*superadmin, None).await;
    let text = |key: &Value, field: &str| key[field].as_str().unwrap().to_owned();
    let items = listed["items"].as_array().unwrap();
    items.iter().rev().map(|key| (text(key, "kid"), text(key, "status"))).collect()
}

async fn published(world: &World) -> Vec<String> {
    let keys = fetch(&format!("{}/.well-known/jwks.json", world.plane.deps.public_url)).await;
    keys["keys"].as_array().unwrap().iter().map(|key| key["kid"].as_str().unwrap().to_owned()).collect()
}

fn key_of(token: &str) -> String {
    jsonwebtoken::decode_header(token).unwrap().kid.unwrap()
}

#[tokio::test]
async fn the_next_key_is_published_long_before_it_signs_and_the_last_one_until_its_tokens_are_over() {
    let world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    let (status, _, problem) = rotate(&world, false).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "issuer-key-not-ready"), "there is none yet");
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let old = token_of(&executor).await;
    let made = keys(&world).await;
    let [(first, signing), (next, waiting)] = &made[..] else { panic!("two keys, not {made:?}") };
    assert_eq!((signing.as_str(), waiting.as_str()), ("signing", "next"));
    assert_eq!((key_of(&old), published(&world).await), (first.clone(), vec![first.clone(), next.clone()]));

    let (status, _, problem) = rotate(&world, false).await;
    assert_eq!(
        (status, slug(&problem)),
        (StatusCode::CONFLICT, "issuer-key-not-ready"),
        "published just now"
    );
    let limits = Limits::default();
    world.plane.advance(limits.issuer_key_lead).await;
    let (status, _, rotated) = rotate(&world, false).await;
    assert_eq!(status, StatusCode::CREATED, "{rotated}");
    assert_eq!((&rotated["retired"]["kid"], &rotated["signing"]["kid"]), (&json!(first), &json!(next)));
    // What will never sign again is kept nowhere.
    let rows = world.plane.every_row().await["issuer_keys"].clone();
    let row_of = |id: &str| rows.lines().find(|row| row.contains(id)).expect("a row").to_owned();
    assert!(!row_of(first).contains(":gAAAA") && row_of(next).contains(":gAAAA"), "{rows}");

    executor.heartbeat().await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let new = token_of(&executor).await;
    assert_eq!(key_of(&new), *next);
    for token in [&old, &new] {
        verify(&issuer, token, AUDIENCE).await.unwrap();
    }
    let three = published(&world).await;
    assert_eq!((three.len(), &three[..2]), (3, &[first.clone(), next.clone()][..]), "and another next one");

    world.plane.advance(limits.issuer_key_tail).await;
    assert_eq!(published(&world).await, three[1..]);
    assert!(verify(&issuer, &old, AUDIENCE).await.is_err());
    verify(&issuer, &new, AUDIENCE).await.unwrap();
    assert_eq!(
        keys(&world).await[0],
        (first.clone(), "retired".into()),
        "people still see that there was one"
    );
    world.plane.advance(Duration::from_secs(31 * 24 * 3600)).await;
    plumbline_core::issuer_keys::service::forget(&world.plane.deps).await.unwrap();
    assert!(keys(&world).await.iter().all(|(kid, _)| kid != first));
}

#[tokio::test]
async fn a_key_that_has_leaked_is_published_no_more_at_once_even_without_a_next_one() {
    let world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let mut leaked = vec![token_of(&executor).await];
    // The second time there is no next key: none signs until a run needs one.
    for ready in [true, false] {
        let (status, _, rotated) = rotate(&world, true).await;
        assert_eq!((status, rotated["signing"].is_object()), (StatusCode::CREATED, ready), "{rotated}");
        for token in &leaked {
            assert!(verify(&issuer, token, AUDIENCE).await.is_err());
        }
        if !ready {
            assert!(published(&world).await.is_empty());
        }
        if ready {
            continue;
        }
        leaked.push(token_of(&executor).await);
        verify(&issuer, &leaked[1], AUDIENCE).await.unwrap();
    }
}

#[tokio::test]
async fn of_many_rotations_at_once_one_changes_the_key_and_each_is_in_the_audit_log() {
    let world = trusting_world().await;
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    token_of(&executor).await;
    world.plane.advance(Limits::default().issuer_key_lead).await;
    world.plane.admin_token().await;
    let superadmin = world.plane.login(ADMIN_EMAIL).await;
    let all =
        futures::future::join_all((0..6).map(|_| world.plane.call("POST", KEYS, &*superadmin, json!({}))))
            .await;
    let done: Vec<_> = all.iter().filter(|answer| answer.0 == StatusCode::CREATED).collect();
    assert_eq!(done.len(), 1, "{all:?}");
    assert!(
        all.iter().all(|answer| answer.0 == StatusCode::CREATED || slug(&answer.2) == "issuer-key-not-ready")
    );
    let statuses: Vec<String> = keys(&world).await.into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, ["retired", "signing"]);
    let headers = [("x-business-unit", "all")];
    let path = "/api/v1/audit?action=issuer_key.rotate";
    let (_, _, log) = world.plane.call_with("GET", path, &*superadmin, None, &headers).await;
    let entries = log["items"].as_array().unwrap();
    assert_eq!(
        (entries.len(), &entries[0]["details"]["retired"]),
        (1, &done[0].2["retired"]["kid"]),
        "{log}"
    );
}

#[tokio::test]
async fn of_many_first_tokens_at_once_all_are_signed_by_one_key() {
    let world = trusting_world().await;
    let issuer = world.plane.deps.public_url.to_string();
    world.trigger("plan").await;
    let executor = FakeExecutor::start(&world.plane).await;
    let tokens = futures::future::join_all((0..4).map(|_| token_of(&executor))).await;
    for token in &tokens {
        verify(&issuer, token, AUDIENCE).await.unwrap();
        assert_eq!(key_of(token), key_of(&tokens[0]));
    }
    let operator = world.plane.user(Role::Admin).await;
    assert_eq!(world.plane.call("POST", KEYS, &*operator, json!({})).await.0, StatusCode::FORBIDDEN);
    assert_eq!(world.plane.call("GET", KEYS, &*operator, None).await.0, StatusCode::FORBIDDEN);
    world.plane.admin_token().await;
    let statuses: Vec<String> = keys(&world).await.into_iter().map(|(_, status)| status).collect();
    assert_eq!(statuses, ["signing", "next"]);
}
