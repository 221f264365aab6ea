//! Passwords that must be changed, one's own password, invitations.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use super::{People, Person};
use crate::api::shell::routes;
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane, slug};
use crate::store::state_client::{Backend, lock_info};

const FIRST: &str = "only for the first time";
const OWN: &str = "chosen by the person";

async fn sign_in(people: &People, email: &str, password: &str) -> (StatusCode, Value) {
    people.call("", "POST", "auth/token", json!({ "email": email, "password": password })).await
}

/// Somebody whose password was set by an admin, with a session of it.
async fn newcomer(people: &People) -> Person {
    let email = "new@plumbline.test".to_owned();
    let body = json!({ "email": email, "password": FIRST,
                       "memberships": [{ "business_unit_id": people.blue, "role": "admin" }] });
    let (status, made) = people.as_root("POST", "users", body).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let (status, pair) = sign_in(people, &email, FIRST).await;
    assert_eq!(status, StatusCode::OK, "{pair}");
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    Person { id: text(&made["id"]), email, token: text(&pair["access_token"]) }
}

async fn change(people: &People, token: &str, current: &str, new: &str) -> (StatusCode, Value) {
    let body = json!({ "current_password": current, "new_password": new });
    people.call(token, "PUT", "me/password", body).await
}

/// The routes that are open to somebody who must change their password.
const OPEN: [(&str, &str); 4] = [
    ("GET", "/api/v1/me"),
    ("PUT", "/api/v1/me/password"),
    ("POST", "/api/v1/auth/logout"),
    ("POST", "/api/v1/auth/logout-all"),
];

#[tokio::test]
async fn a_session_with_a_password_that_must_be_changed_gets_nothing_from_any_other_route() {
    let people = People::new().await;
    let new = newcomer(&people).await;
    let (mut closed, mut open) = (0, 0);
    for route in routes().iter().filter(|route| !route.open()) {
        let id = "01890000-0000-7000-8000-000000000000";
        let headers = [("if-match", "*")];
        let name = (route.method.as_str(), route.pattern.as_str());
        if OPEN.contains(&name) {
            open += 1;
            continue;
        }
        let body = route.has_body().then(|| json!({}));
        let answer = people.plane.call_with(name.0, &route.path(id), &*new.token, body, &headers).await;
        let refusal = (answer.0, slug(&answer.2));
        assert_eq!(refusal, (StatusCode::FORBIDDEN, "password-change-required"), "{name:?}: {}", answer.2);
        closed += 1;
    }
    assert_eq!(open, OPEN.len(), "the open ones are routes");
    assert!(closed > 40, "{closed} routes were asked");

    let (status, me) = people.call(&new.token, "GET", "me", None).await;
    assert_eq!((status, &me["must_change_password"]), (StatusCode::OK, &json!(true)));
    assert_eq!(change(&people, &new.token, FIRST, OWN).await.0, StatusCode::NO_CONTENT);
    // The same session, without signing in anew.
    let (status, me) = people.call(&new.token, "GET", "me", None).await;
    assert_eq!((status, &me["must_change_password"]), (StatusCode::OK, &json!(false)));
    assert_eq!(people.call(&new.token, "GET", "users", None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn terraform_gets_nothing_from_such_a_session_either() {
    let backend = Backend::start().await;
    let me = backend.plane.call("GET", "/api/v1/me", backend.token.as_str(), None).await.2;
    let conn = backend.plane.db().conn().await.unwrap();
    let email = me["email"].as_str().unwrap();
    conn.execute("UPDATE users SET must_change_password = true WHERE email = $1", &[&email]).await.unwrap();
    drop(conn);
    let path = format!("/api/v1/state/{}", backend.workspace);
    for (method, path, body) in [
        ("GET", path.clone(), String::new()),
        ("POST", path.clone(), "{}".to_owned()),
        ("LOCK", path.clone(), lock_info("l-1")),
    ] {
        let answer = backend.send_as(&backend.token, method, &path, body).await;
        assert_eq!(answer.0, StatusCode::FORBIDDEN, "{method}");
    }
}

#[tokio::test]
async fn a_newcomer_can_sign_out_and_needs_no_unit_to_change_the_password() {
    let people = People::new().await;
    let body = json!({ "email": "alone@plumbline.test", "password": FIRST });
    assert_eq!(people.as_root("POST", "users", body).await.0, StatusCode::CREATED);
    let token = |pair: Value| pair["access_token"].as_str().unwrap().to_owned();
    for way_out in ["auth/logout", "auth/logout-all"] {
        let own = token(sign_in(&people, "alone@plumbline.test", FIRST).await.1);
        assert_eq!(people.call(&own, "POST", way_out, None).await.0, StatusCode::NO_CONTENT);
        assert_eq!(change(&people, &own, FIRST, OWN).await.0, StatusCode::UNAUTHORIZED);
    }
    let own = token(sign_in(&people, "alone@plumbline.test", FIRST).await.1);
    assert_eq!(change(&people, &own, FIRST, OWN).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn a_changed_password_ends_the_other_sessions_and_is_the_only_one() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let elsewhere = people.plane.login(&ada.email).await;
    for (current, new, expected, what) in [
        ("not the password", OWN, StatusCode::FORBIDDEN, "wrong-password"),
        (PASSWORD, "short", StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"),
        (PASSWORD, PASSWORD, StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"),
        (PASSWORD, &ada.email.to_uppercase(), StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"),
    ] {
        let (status, problem) = change(&people, &ada.token, current, new).await;
        assert_eq!((status, slug(&problem)), (expected, what), "{problem}");
        if status == StatusCode::UNPROCESSABLE_ENTITY {
            assert_eq!(problem["field"], "new_password");
        }
    }
    assert_eq!(people.entries("user.change_password_failed", &ada.id).await.len(), 1);

    assert_eq!(change(&people, &ada.token, PASSWORD, OWN).await.0, StatusCode::NO_CONTENT);
    assert_eq!(people.stands(&ada.token).await, StatusCode::OK);
    assert_eq!(people.stands(&elsewhere).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&people, &ada.email, PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&people, &ada.email, OWN).await.0, StatusCode::OK);
    let entries = people.entries("user.change_password", &ada.id).await;
    assert_eq!((entries.len(), &entries[0]["details"]["sessions"]), (1, &json!(1)));
}

#[tokio::test]
async fn whoever_has_a_session_does_not_guess_the_password_with_it() {
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 3, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 8).await;
    let root = plane.admin_token().await;
    let guess = |current: &'static str| {
        let body = json!({ "current_password": current, "new_password": OWN });
        plane.call("PUT", "/api/v1/me/password", &*root, body)
    };
    for _ in 0..3 {
        assert_eq!(guess("a wrong password").await.0, StatusCode::FORBIDDEN);
    }
    let (status, headers, problem) = guess(PASSWORD).await;
    assert_eq!((status, slug(&problem)), (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts"));
    assert!(headers.contains_key("retry-after"));
    plane.advance(Duration::from_secs(61)).await;
    assert_eq!(guess(PASSWORD).await.0, StatusCode::NO_CONTENT);
}

#[tokio::test]
async fn of_two_changes_at_once_one_wins() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let (a, b) = futures::join!(
        change(&people, &ada.token, PASSWORD, "the first of the two"),
        change(&people, &ada.token, PASSWORD, "the second of the two"),
    );
    assert!(a.0.is_success() != b.0.is_success(), "{a:?} {b:?}");
    let good = if a.0.is_success() { "the first of the two" } else { "the second of the two" };
    assert_eq!(sign_in(&people, &ada.email, good).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_password_that_an_admin_sets_ends_every_session_and_must_be_changed() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let path = format!("users/{}/password", ada.id);
    for weak in ["short", "passwordpassword", &ada.email] {
        let (status, problem) = people.as_root("PUT", &path, json!({ "password": weak })).await;
        let refusal = (status, problem["field"].as_str());
        assert_eq!(refusal, (StatusCode::UNPROCESSABLE_ENTITY, Some("password")), "{weak}");
    }
    let (status, _) = people.as_root("PUT", &path, json!({ "password": FIRST })).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&people, &ada.email, PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    let (_, pair) = sign_in(&people, &ada.email, FIRST).await;
    let token = pair["access_token"].as_str().unwrap();
    let (status, problem) = people.call(token, "GET", "workspaces", None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::FORBIDDEN, "password-change-required"));
    let entries = people.entries("user.set_password", &ada.id).await;
    assert!(entries.len() == 1 && !entries[0].to_string().contains(FIRST));
}

async fn invite(people: &People, id: &str) -> Value {
    let (status, invite) = people.as_root("POST", &format!("users/{id}/invite"), None).await;
    assert_eq!(status, StatusCode::OK, "{invite}");
    invite
}

async fn accept(people: &People, token: &Value, password: &str) -> (StatusCode, Value) {
    people.call("", "POST", "auth/accept-invite", json!({ "token": token, "password": password })).await
}

async fn invited(people: &People) -> (String, &'static str) {
    let body = json!({ "email": "guest@plumbline.test",
                       "memberships": [{ "business_unit_id": people.blue, "role": "viewer" }] });
    let (status, made) = people.as_root("POST", "users", body).await;
    assert_eq!((status, &made["has_password"]), (StatusCode::CREATED, &json!(false)));
    (made["id"].as_str().unwrap().to_owned(), "guest@plumbline.test")
}

#[tokio::test]
async fn an_invitation_is_good_once_and_lets_the_person_choose() {
    let people = People::new().await;
    let (id, email) = invited(&people).await;
    let invite = invite(&people, &id).await;
    let (_, seen) = people.as_root("GET", &format!("users/{id}"), None).await;
    assert_eq!(seen["invite_expires_at"], invite["expires_at"]);
    assert!(!seen.to_string().contains(invite["token"].as_str().unwrap()));

    let (status, problem) = accept(&people, &invite["token"], "short").await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"));
    assert_eq!(accept(&people, &invite["token"], OWN).await.0, StatusCode::NO_CONTENT, "not used up by that");
    let (status, problem) = accept(&people, &invite["token"], OWN).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "invite-invalid"));

    let (status, pair) = sign_in(&people, email, OWN).await;
    assert_eq!(status, StatusCode::OK);
    let (_, me) = people.call(pair["access_token"].as_str().unwrap(), "GET", "me", None).await;
    assert_eq!((&me["must_change_password"], &me["business_unit"]), (&json!(false), &json!("blue")));
    let (_, seen) = people.as_root("GET", &format!("users/{id}"), None).await;
    assert_eq!((&seen["invite_expires_at"], &seen["has_password"]), (&Value::Null, &json!(true)));
    let accepted = people.entries("user.invite_accept", &id).await;
    assert_eq!((accepted.len(), &accepted[0]["user_id"]), (1, &json!(id)));
    assert_eq!(people.entries("user.invite", &id).await.len(), 1);
}

#[tokio::test]
async fn of_many_who_use_one_invitation_at_once_one_gets_in() {
    let people = People::new().await;
    let (id, email) = invited(&people).await;
    let invite = invite(&people, &id).await;
    let passwords: Vec<String> = (0..6).map(|n| format!("chosen by number {n}")).collect();
    let used = passwords.iter().map(|password| accept(&people, &invite["token"], password));
    let answers = futures::future::join_all(used).await;
    let winners: Vec<_> =
        passwords.iter().zip(&answers).filter(|(_, answer)| answer.0.is_success()).collect();
    assert_eq!(winners.len(), 1, "{answers:?}");
    assert_eq!(sign_in(&people, email, winners[0].0).await.0, StatusCode::OK);
}

#[tokio::test]
async fn an_invitation_ends_with_its_time_its_successor_its_revocation_and_its_account() {
    let people = People::new().await;
    let (id, _) = invited(&people).await;
    let path = format!("users/{id}/invite");
    let refused = async |token: &Value, what: &str| {
        let (status, problem) = accept(&people, token, OWN).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "invite-invalid"), "{what}");
    };
    let replaced = invite(&people, &id).await;
    let newer = invite(&people, &id).await;
    refused(&replaced["token"], "replaced").await;
    for _ in 0..2 {
        assert_eq!(people.as_root("DELETE", &path, None).await.0, StatusCode::NO_CONTENT);
    }
    refused(&newer["token"], "revoked").await;
    assert_eq!(people.entries("user.invite_revoke", &id).await.len(), 1);
    let old = invite(&people, &id).await;
    people.plane.advance(people.plane.deps.limits.invite_age + Duration::from_secs(1)).await;
    refused(&old["token"], "expired").await;

    // The superadmin's token has expired meanwhile.
    let root = people.plane.login(ADMIN_EMAIL).await;
    let (_, last) = people.call(&root, "POST", &path, None).await;
    assert_eq!(people.call(&root, "POST", &format!("users/{id}/disable"), None).await.0, StatusCode::OK);
    refused(&last["token"], "disabled").await;
    let (status, problem) = people.call(&root, "POST", &path, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "user-disabled"));
    people.call(&root, "POST", &format!("users/{id}/enable"), None).await;
    refused(&last["token"], "enabled again").await;
    for garbage in ["", "pli_", "pli_AAAA", "nonsense"] {
        refused(&json!(garbage), garbage).await;
    }
}

#[tokio::test]
async fn the_token_of_an_invitation_is_kept_nowhere() {
    let people = People::new().await;
    let (id, _) = invited(&people).await;
    let invite = invite(&people, &id).await;
    let token = invite["token"].as_str().unwrap();
    let secret = token.trim_start_matches("pli_");
    assert!(secret.len() >= 43, "32 bytes");
    let hex: String = token.bytes().map(|byte| format!("{byte:02x}")).collect();
    let stored: String = people.plane.every_row().await.into_values().collect();
    assert!(stored.contains(&id) && !stored.contains(secret) && !stored.contains(&hex));
}

#[tokio::test]
async fn an_invitation_for_somebody_who_is_there_gives_them_a_new_password() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let invite = invite(&people, &ada.id).await;
    assert_eq!(people.stands(&ada.token).await, StatusCode::OK, "until it is accepted nothing changes");
    assert_eq!(accept(&people, &invite["token"], OWN).await.0, StatusCode::NO_CONTENT);
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&people, &ada.email, PASSWORD).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(sign_in(&people, &ada.email, OWN).await.0, StatusCode::OK);
}

#[tokio::test]
async fn attempts_to_use_invitations_are_throttled() {
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 3, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 8).await;
    let body = json!({ "token": "pli_nonsense", "password": OWN });
    let attempt = || plane.call("POST", "/api/v1/auth/accept-invite", None, body.clone());
    for _ in 0..3 {
        assert_eq!(attempt().await.0, StatusCode::UNAUTHORIZED);
    }
    let (status, headers, problem) = attempt().await;
    assert_eq!((status, slug(&problem)), (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts"));
    assert!(headers.contains_key("retry-after"));
}
