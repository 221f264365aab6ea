//! A provider that misbehaves, or somebody who pretends to be it: nobody comes in, nothing is made, and the log says why.

use serde_json::{Value, json};

use super::{Browser, LOGIN, World, ada};
use crate::idp::Fault;

/// What each fault is called in the audit log.
fn faults(issuer: &str) -> Vec<(Fault, &'static str, &'static str)> {
    let other = json!("https://somebody.else.test");
    let several = json!([crate::idp::CLIENT_ID, "somebody else"]);
    let past = json!(chrono::Utc::now().timestamp() - 3600);
    let soon = json!(chrono::Utc::now().timestamp() + 3600);
    let sent_to = format!("{issuer}/elsewhere");
    let of = |fault, reason| (fault, "oidc-refused", reason);
    vec![
        of(Fault::Nonce, "wrong_nonce"),
        of(Fault::NoNonce, "wrong_nonce"),
        of(Fault::Claim("aud", json!("somebody else")), "wrong_audience"),
        of(Fault::Claim("aud", several), "wrong_audience"),
        of(Fault::Claim("azp", json!("somebody else")), "wrong_audience"),
        of(Fault::Claim("iss", other), "wrong_issuer"),
        of(Fault::Claim("iss", Value::Null), "token_answer_malformed"),
        of(Fault::Claim("exp", past.clone()), "expired_token"),
        of(Fault::Claim("exp", Value::Null), "token_answer_malformed"),
        of(Fault::Claim("iat", soon), "expired_token"),
        of(Fault::Unsigned, "algorithm_not_allowed"),
        of(Fault::PublicKeyAsSecret, "algorithm_not_allowed"),
        of(Fault::Forged, "wrong_signature"),
        of(Fault::Babble, "token_answer_malformed"),
        of(Fault::NoToken, "no_id_token"),
        of(Fault::RefusesCode, "code_refused"),
        of(Fault::TokenStatus(404), "token_answer_malformed"),
        of(Fault::TokenStatus(204), "token_answer_malformed"),
        of(Fault::TokenRedirects(sent_to), "token_answer_malformed"),
        of(Fault::TokenFloods, "token_answer_too_long"),
        of(Fault::TokenBabbles, "token_answer_malformed"),
        of(Fault::Claim("sub", Value::Null), "token_answer_malformed"),
        of(Fault::Claim("sub", json!("")), "no_subject"),
        of(Fault::Claim("sub", json!("x".repeat(256))), "no_subject"),
        (Fault::Denied, "oidc-denied", "denied"),
        (Fault::Claim("email_verified", json!(false)), "oidc-email-unverified", "email_unverified"),
        (Fault::Claim("email", json!("no address")), "oidc-email-unverified", "email_missing"),
    ]
}

#[tokio::test]
async fn every_answer_that_is_not_genuine_or_not_for_us_is_refused_with_nothing_made() {
    let Some(world) = World::start().await else { return };
    let unit = world.plane.unit("default").await;
    world.map(json!({ "engineers": "superadmin" })).await;
    world.idp.person(ada());
    let before = world.everybody().await;
    let mut seen = 0;
    for (fault, slug, reason) in faults(&world.idp.issuer) {
        world.idp.set_fault(fault.clone());
        let mut browser = Browser::default();
        assert_eq!(browser.sign_in(&world).await.error(), slug, "{fault:?}");
        assert!(browser.cookie.is_none(), "{fault:?}: the cookie is gone");
        let failed = world.entries("session.login_failed").await;
        seen += 1;
        assert_eq!(failed.len(), seen, "{fault:?}: one entry each");
        assert_eq!(failed[0]["details"]["reason"], reason, "{fault:?}");
        assert_eq!(failed[0]["details"]["method"], "oidc");
        assert!(failed[0]["user_id"].is_null());
    }
    // Neither the token nor `userinfo` has an address.
    world.idp.set_fault(Fault::Nothing);
    world.idp.person(json!({ "sub": "ada-1", "email_verified": true }));
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-email-unverified");
    assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], "email_missing");
    assert_eq!(world.everybody().await, before);
    world.idp.person(ada());
    // Nothing of it stands in the way of the real one.
    assert_eq!(world.who_signs_in().await["is_superadmin"], true, "{unit}");
}

#[tokio::test]
async fn a_provider_in_trouble_is_waited_for_and_counts_as_nobodys_failure() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let before = world.everybody().await;
    for fault in
        [Fault::TokenStatus(500), Fault::TokenStatus(503), Fault::TokenStatus(429), Fault::TokenHangs]
    {
        world.idp.set_fault(fault.clone());
        assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-provider-away", "{fault:?}");
    }
    let mut without_groups = ada();
    without_groups.as_object_mut().unwrap().remove("groups");
    world.idp.person(without_groups);
    world.idp.set_fault(Fault::UserinfoStatus(503));
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-provider-away");
    assert_eq!(world.everybody().await, before);
    assert!(world.entries("session.login_failed").await.is_empty());
}

#[tokio::test]
async fn nobody_is_sent_anywhere_but_to_the_provider_and_to_ourselves() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    for (name, value) in [
        ("redirect_uri", "https://evil.test/"),
        ("next", "https://evil.test/"),
        ("return_to", "//evil.test"),
        ("state", "https://evil.test"),
        ("client_id", "evil"),
    ] {
        let mut browser = Browser::default();
        let query = url::form_urlencoded::Serializer::new(String::new()).append_pair(name, value).finish();
        let address = browser.leave(&world, &format!("?{query}")).await;
        assert!(address.starts_with(&format!("{}/authorize?", world.idp.issuer)), "{address}");
        assert!(!address.contains("evil"), "{address}");
        let back = browser.at_provider(&address).await;
        let sent = browser.get(&world.plane, &format!("{back}&{query}")).await;
        let place = sent.location();
        assert!(
            place.starts_with("http://127.0.0.1:9/auth/oidc-finish#") && !place.contains("evil"),
            "{place}"
        );
    }
    for query in ["?cli_port=4711", "?cli_port=80&cli_nonce=x", "?cli_port=4711%40evil.test&cli_nonce=x"] {
        let sent = Browser::default().get(&world.plane, &format!("{LOGIN}{query}")).await;
        assert_eq!(sent.error(), "oidc-cli-parameters", "{query}");
    }
}

#[tokio::test]
async fn an_answer_of_another_provider_and_one_without_a_code_are_refused() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    for (change, reason) in
        [("&iss=https%3A%2F%2Fother.example.com", "answer_of_another_provider"), ("&code=twice", "no_code")]
    {
        let mut browser = Browser::default();
        let address = browser.leave(&world, "").await;
        let back = browser.at_provider(&address).await;
        assert_eq!(browser.get(&world.plane, &format!("{back}{change}")).await.error(), "oidc-refused");
        assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], reason);
    }
    // The right name is no reason to refuse.
    let mut browser = Browser::default();
    let address = browser.leave(&world, "").await;
    let back = browser.at_provider(&address).await;
    let issuer: String = url::form_urlencoded::byte_serialize(world.idp.issuer.as_bytes()).collect();
    browser.get(&world.plane, &format!("{back}&iss={issuer}")).await.code();
}
