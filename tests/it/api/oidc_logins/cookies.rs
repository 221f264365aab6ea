//! The cookie: who does not bring the one that they were given did not begin the sign-in.

use std::time::Duration;

use http::header;
use plumbline_core::oidc_logins::COOKIE_AGE;
use serde_json::json;

use super::{Browser, LOGIN, World, ada};

/// A browser that has been at the provider, and where it was sent back to.
async fn returning(world: &World) -> (Browser, String) {
    let mut browser = Browser::default();
    let address = browser.leave(world, "").await;
    let back = browser.at_provider(&address).await;
    (browser, back)
}

async fn reason(world: &World) -> serde_json::Value {
    world.entries("session.login_failed").await[0]["details"]["reason"].clone()
}

#[tokio::test]
async fn a_return_without_the_cookie_with_a_changed_one_or_with_another_browsers_is_refused() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let before = world.everybody().await;
    let (_, back) = returning(&world).await;
    assert_eq!(Browser::default().get(&world.plane, &back).await.error(), "oidc-start-again");
    assert_eq!(reason(&world).await, "not_begun");

    let (browser, back) = returning(&world).await;
    let cookie = browser.cookie.unwrap();
    for changed in [
        format!("{cookie}A"),
        cookie[..cookie.len() - 1].to_owned(),
        cookie.replace("plumbline_signin=", "plumbline_signin=A"),
        "plumbline_signin=".to_owned(),
        format!("plumbline_signin={}", "A".repeat(9000)),
    ] {
        let mut other = Browser { cookie: Some(changed.clone()) };
        assert_eq!(other.get(&world.plane, &back).await.error(), "oidc-start-again", "{changed}");
        assert_eq!(reason(&world).await, "not_begun");
    }

    // Somebody is made to come back with what belongs to a stranger's sign-in: they must not end up as the stranger.
    let (mut victim, _) = returning(&world).await;
    let (_, strangers) = returning(&world).await;
    assert_eq!(victim.get(&world.plane, &strangers).await.error(), "oidc-start-again");
    assert_eq!(world.everybody().await, before);
}

#[tokio::test]
async fn a_return_is_good_once_and_for_ten_minutes() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let (mut browser, back) = returning(&world).await;
    let cookie = browser.cookie.clone();
    browser.get(&world.plane, &back).await.code();
    assert!(browser.cookie.is_none());
    let before = world.everybody().await;
    // The cookie was copied before it was taken away.
    let mut again = Browser { cookie };
    assert_eq!(again.get(&world.plane, &back).await.error(), "oidc-start-again");
    assert_eq!(reason(&world).await, "replayed");

    let (mut slow, back) = returning(&world).await;
    world.plane.advance(COOKIE_AGE + Duration::from_secs(1)).await;
    assert_eq!(slow.get(&world.plane, &back).await.error(), "oidc-start-again");
    assert_eq!(reason(&world).await, "expired");
    assert_eq!(world.everybody().await, before);
}

#[tokio::test]
async fn of_many_returns_with_one_cookie_at_once_one_comes_through() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let (browser, back) = returning(&world).await;
    let all = (0..8).map(|_| {
        let mut same = Browser { cookie: browser.cookie.clone() };
        let (plane, back) = (&world.plane, &back);
        async move { same.get(plane, back).await }
    });
    let sent = futures::future::join_all(all).await;
    let through = sent.iter().filter(|sent| sent.location().contains("#code=")).count();
    assert_eq!(through, 1, "{sent:?}");
}

#[tokio::test]
async fn a_sign_in_that_was_begun_with_another_provider_is_not_finished_with_this_one() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let (mut browser, back) = returning(&world).await;
    world.set("auth.oidc.issuer", json!("https://new.example.com")).await;
    assert_eq!(browser.get(&world.plane, &back).await.error(), "oidc-start-again");
    assert_eq!(reason(&world).await, "provider_changed");
}

#[tokio::test]
async fn what_the_browser_keeps_is_for_no_script_no_other_site_and_no_other_path() {
    let Some(mut world) = World::start().await else { return };
    let sent = Browser::default().get(&world.plane, LOGIN).await;
    let set = sent.headers[header::SET_COOKIE].to_str().unwrap().to_owned();
    assert!(set.ends_with("; Path=/api/v1/auth/oidc; Max-Age=600; HttpOnly; SameSite=Lax"), "{set}");
    world.plane.deps.public_url = "https://plumbline.example.com".into();
    let sent = Browser::default().get(&world.plane, LOGIN).await;
    let set = sent.headers[header::SET_COOKIE].to_str().unwrap();
    assert!(set.ends_with("; SameSite=Lax; Secure"), "{set}");
    assert!(
        sent.location()
            .contains("redirect_uri=https%3A%2F%2Fplumbline.example.com%2Fapi%2Fv1%2Fauth%2Foidc%2Fcallback")
    );
}

#[tokio::test]
async fn each_departure_is_another_one_and_asks_for_what_is_set() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    world.set("auth.oidc.scopes", json!("openid email custom:groups")).await;
    for _ in 0..2 {
        world.sign_in().await;
    }
    let [first, second] = &world.idp.departures()[..] else { panic!("two departures") };
    for name in ["state", "nonce", "code_challenge"] {
        assert_ne!(first[name], second[name], "{name}");
        assert!(first[name].len() >= 22, "{name}");
    }
    assert_eq!(first["code_challenge_method"], "S256");
    assert_eq!(first["scope"], "openid email custom:groups");
}
