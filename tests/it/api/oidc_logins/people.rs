//! Who somebody is: found again, linked, made, or not let in.

use http::StatusCode;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::{Browser, World, ada};
use crate::plane::{PASSWORD, slug};

#[tokio::test]
async fn somebody_new_is_made_with_what_their_groups_give_and_found_again_by_their_subject() {
    let Some(world) = World::start().await else { return };
    world.plane.unit("default").await;
    world.map(json!({ "engineers": { "default": "operator" } })).await;
    world.idp.person(ada());
    let me = world.who_signs_in().await;
    assert_eq!(me["email"], "ada@plumbline.test");
    assert_eq!(me["display_name"], "Ada L");
    assert_eq!(
        (&me["memberships"][0]["slug"], &me["memberships"][0]["role"]),
        (&json!("default"), &json!("operator"))
    );
    assert_eq!(me["memberships"][0]["source"], "oidc");
    assert_eq!(world.who_signs_in().await["id"], me["id"]);

    let made = world.entries("user.create").await;
    assert_eq!(made[0]["resource_id"], me["id"], "{made:?}");
    assert_eq!(made[0]["details"]["source"], "oidc");
    let logins = world.entries("session.login").await;
    let theirs: Vec<_> = logins.iter().filter(|entry| entry["user_id"] == me["id"]).collect();
    assert_eq!(theirs.len(), 2);
    assert!(theirs.iter().all(|entry| entry["details"]["method"] == "oidc"), "{theirs:?}");
}

#[tokio::test]
async fn a_local_account_is_linked_by_a_verified_address_and_by_no_other() {
    let Some(world) = World::start().await else { return };
    let (id, email) = world.plane.insert_user().await;
    let person =
        |verified: Value| json!({ "sub": "x-1", "email": email.to_uppercase(), "email_verified": verified });
    let before = world.everybody().await;
    for neither in [json!(1), json!("yes")] {
        world.idp.person(person(neither.clone()));
        assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-refused", "{neither}");
    }
    for unverified in [json!(false), json!("false"), Value::Null] {
        world.idp.person(person(unverified.clone()));
        let refused = Browser::default().sign_in(&world).await.error();
        assert_eq!(refused, "oidc-email-unverified", "{unverified}");
    }
    assert_eq!(world.everybody().await, before, "the account is untouched, and nobody was made");
    let failed = world.entries("session.login_failed").await;
    assert_eq!(failed.len(), 5);
    assert_eq!(failed[0]["details"]["reason"], "email_unverified");
    assert_eq!(failed[0]["details"]["email"], email);

    for verified in [json!(true), json!("true")] {
        world.idp.person(person(verified));
        assert_eq!(world.who_signs_in().await["id"], json!(id));
    }
    let linked = world.entries("user.link").await;
    assert_eq!(linked.len(), 1, "once");
    assert_eq!(linked[0]["details"]["subject"], "x-1");
    // The password is theirs as before.
    world.plane.login(&email).await;
}

#[tokio::test]
async fn an_existing_link_wins_over_the_address_which_then_belongs_to_somebody_else() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let ada_id = world.who_signs_in().await["id"].clone();
    let (_, taken) = world.plane.insert_user().await;
    // Their address at the provider becomes one that somebody else has here.
    let mut changed = ada();
    changed["email"] = json!(taken);
    world.idp.person(changed);
    let me = world.who_signs_in().await;
    assert_eq!((&me["id"], &me["email"]), (&ada_id, &json!("ada@plumbline.test")));
    assert_eq!(world.entries("user.update").await[0]["details"]["email_kept"], "taken");
    // An unverified one is not written down either; a verified one is.
    let mut changed = ada();
    changed["email"] = json!("lovelace@plumbline.test");
    changed["email_verified"] = json!(false);
    world.idp.person(changed.clone());
    assert_eq!(world.who_signs_in().await["email"], "ada@plumbline.test");
    changed["email_verified"] = json!(true);
    world.idp.person(changed);
    let me = world.who_signs_in().await;
    assert_eq!((&me["id"], &me["email"]), (&ada_id, &json!("lovelace@plumbline.test")));
    assert_eq!(world.entries("user.update").await[0]["details"]["email_before"], "ada@plumbline.test");
}

#[tokio::test]
async fn an_address_that_the_provider_gives_to_somebody_else_opens_no_account() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let first = world.who_signs_in().await["id"].clone();
    let mut successor = ada();
    successor["sub"] = json!("ada-2");
    world.idp.person(successor);
    let before = world.everybody().await;
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-account-linked");
    assert_eq!(world.everybody().await, before);
    assert_eq!(world.entries("session.login_failed").await[0]["details"]["reason"], "account_linked");
    world.idp.person(ada());
    assert_eq!(world.who_signs_in().await["id"], first);
}

#[tokio::test]
async fn who_is_disabled_is_neither_let_in_nor_linked_and_their_sessions_end() {
    let Some(world) = World::start().await else { return };
    let admin = world.plane.admin_token().await;
    world.idp.person(ada());
    let tokens = world.sign_in().await;
    let token = tokens["access_token"].as_str().unwrap();
    let id = world.me(token).await.2["id"].as_str().unwrap().to_owned();
    let (local, email) = world.plane.insert_user().await;
    // A code that was not traded yet ends with the sessions.
    let code = Browser::default().sign_in(&world).await.code();
    for id in [&id, &local.to_string()] {
        let path = format!("/api/v1/users/{id}/disable");
        let (status, _, body) = world.plane.call("POST", &path, admin.as_str(), None).await;
        assert_eq!(status, StatusCode::OK, "{body}");
    }
    assert_eq!(world.me(token).await.0, StatusCode::UNAUTHORIZED);
    let refresh = json!({ "refresh_token": tokens["refresh_token"] });
    let (status, ..) = world.plane.call("POST", "/api/v1/auth/refresh", None, refresh).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED);
    let (status, _, body) = world.trade(json!({ "code": code })).await;
    assert_eq!((status, slug(&body)), (StatusCode::UNAUTHORIZED, "sign-in-code-invalid"));

    let before = world.everybody().await;
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-account-disabled");
    world.idp.person(json!({ "sub": "y", "email": email, "email_verified": true }));
    assert_eq!(Browser::default().sign_in(&world).await.error(), "oidc-account-disabled");
    assert_eq!(world.everybody().await, before);
}

#[tokio::test]
async fn who_came_through_the_provider_has_no_password_and_is_told_so_as_everybody_is() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let me = world.who_signs_in().await;
    for password in [PASSWORD, "", "!", "oidc"] {
        let body = json!({ "email": "ada@plumbline.test", "password": password });
        let (status, _, body) = world.plane.call("POST", "/api/v1/auth/token", None, body).await;
        assert_eq!((status, slug(&body)), (StatusCode::UNAUTHORIZED, "wrong-credentials"), "{password}");
    }
    let admin = world.plane.admin_token().await;
    let path = format!("/api/v1/users/{}", me["id"].as_str().unwrap());
    let (_, _, user) = world.plane.call("GET", &path, admin.as_str(), None).await;
    assert_eq!((&user["auth_provider"], &user["external_id"]), (&json!("oidc"), &json!("ada-1")));
    assert_eq!(user["has_password"], false);
}

#[tokio::test]
async fn names_are_taken_from_what_there_is_and_kept_when_there_is_nothing() {
    let Some(world) = World::start().await else { return };
    let base = json!({ "sub": "n", "email": "n@plumbline.test", "email_verified": true, "groups": [] });
    let named = |more: Value| {
        let mut claims = base.clone();
        more.as_object().unwrap().iter().for_each(|(name, value)| claims[name] = value.clone());
        claims
    };
    for (claims, expected) in [
        (json!({}), Value::Null),
        (json!({ "preferred_username": "ada" }), json!("ada")),
        (json!({ "given_name": "Ada" }), json!("Ada")),
        (
            json!({ "given_name": "Ada", "family_name": "Lovelace", "preferred_username": "x" }),
            json!("Ada Lovelace"),
        ),
        (json!({ "name": "Countess", "given_name": "Ada" }), json!("Countess")),
        (json!({ "name": "  " }), json!("Countess")),
        (json!({}), json!("Countess")),
        (json!({ "name": "A\u{7}da\n" }), json!("Ada")),
    ] {
        world.idp.person(named(claims.clone()));
        assert_eq!(world.who_signs_in().await["display_name"], expected, "{claims}");
    }
}

#[tokio::test]
async fn two_browsers_that_bring_somebody_new_at_once_make_one_person() {
    let Some(world) = World::start().await else { return };
    world.plane.unit("default").await;
    world.map(json!({ "engineers": { "default": "viewer" } })).await;
    world.idp.person(ada());
    const MANY: usize = 8;
    let mut returns = Vec::new();
    for _ in 0..MANY {
        let mut browser = Browser::default();
        let address = browser.leave(&world, "").await;
        let back = browser.at_provider(&address).await;
        returns.push((browser, back));
    }
    // Held by somebody else, the table lets nobody in: all of them are under way when it is free.
    let mut blocker = world.plane.db().conn().await.unwrap();
    let held = blocker.begin().await.unwrap();
    held.execute("LOCK TABLE users IN SHARE ROW EXCLUSIVE MODE", &[]).await.unwrap();
    let all = futures::future::join_all(
        returns.iter_mut().map(|(browser, back)| browser.get(&world.plane, back.as_str())),
    );
    let free = async {
        world.plane.until_a_lock_is_waited_for().await;
        held.commit().await.unwrap();
    };
    let (sent, ()) = futures::join!(all, free);
    let mut ids = Vec::new();
    for sent in sent {
        let (status, _, tokens) = world.trade(json!({ "code": sent.code() })).await;
        assert_eq!(status, StatusCode::OK, "{tokens}");
        ids.push(world.me(tokens["access_token"].as_str().unwrap()).await.2["id"].clone());
    }
    ids.dedup();
    assert_eq!(ids.len(), 1, "{ids:?}");
    assert_eq!(world.entries("user.create").await.len(), 1);
    assert_eq!(world.entries("membership.grant").await.len(), 1);
}

#[tokio::test]
async fn who_was_of_another_provider_is_linked_anew_by_their_verified_address() {
    let Some(world) = World::start().await else { return };
    world.idp.person(ada());
    let id = world.who_signs_in().await["id"].clone();
    let other = crate::idp::Idp::start().await.unwrap();
    world.set("auth.oidc.issuer", json!(other.issuer)).await;
    let mut same = ada();
    same["sub"] = json!("a-lovelace");
    other.person(same);
    assert_eq!(world.who_signs_in().await["id"], id);
    let linked = world.entries("user.link").await;
    assert_eq!(linked[0]["details"]["issuer_before"], json!(world.idp.issuer));
}
