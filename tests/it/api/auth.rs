//! Sign-in, refresh, logout, and where a caller acts.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::limits::Limits;
use serde_json::{Value, json};

use super::users::People;
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane, slug};

const TOKEN: &str = "/api/v1/auth/token";
const REFRESH: &str = "/api/v1/auth/refresh";

async fn sign_in(plane: &TestPlane, email: &str, password: &str) -> (StatusCode, Value) {
    let body = json!({ "email": email, "password": password });
    let (status, _, body) = plane.call("POST", TOKEN, None, body).await;
    (status, body)
}

async fn refresh(plane: &TestPlane, token: &Value) -> (StatusCode, Value) {
    let (status, _, body) = plane.call("POST", REFRESH, None, json!({ "refresh_token": token })).await;
    (status, body)
}

async fn me(plane: &TestPlane, token: &str, unit: Option<&str>) -> (StatusCode, Value) {
    let headers: Vec<_> = unit.map(|unit| ("x-business-unit", unit)).into_iter().collect();
    let (status, _, body) = plane.call_with("GET", "/api/v1/me", token, None, &headers).await;
    (status, body)
}

#[tokio::test]
async fn the_first_admin_signs_in_in_any_case_and_sees_themselves() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let (status, pair) = sign_in(&plane, "Admin@Plumbline.TEST", PASSWORD).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(pair["token_type"], "bearer");
    let (status, me) = me(&plane, pair["access_token"].as_str().expect("a token"), None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(me["email"], ADMIN_EMAIL);
    assert_eq!(me["is_superadmin"], true);
    assert_eq!(me["role"], "admin");
    assert_eq!(me["business_unit"], Value::Null);
    assert_eq!(me["memberships"][0]["slug"], "default");
}

#[tokio::test]
async fn a_wrong_password_an_unknown_email_and_a_missing_hash_get_the_same_answer() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let (_, email) = plane.insert_user().await;
    let conn = plane.db().conn().await.expect("a connection");
    conn.execute("UPDATE users SET password_hash = NULL WHERE email = $1", &[&email]).await.expect("updated");
    drop(conn);
    let wrong = sign_in(&plane, ADMIN_EMAIL, "wrong password").await;
    assert_eq!(wrong.0, StatusCode::UNAUTHORIZED);
    assert_eq!(slug(&wrong.1), "wrong-credentials");
    assert_eq!(sign_in(&plane, "nobody@plumbline.test", PASSWORD).await, wrong);
    assert_eq!(sign_in(&plane, &email, PASSWORD).await, wrong);
    assert_eq!(sign_in(&plane, "no e-mail", PASSWORD).await, wrong);
    let long = format!("{PASSWORD}{}", "x".repeat(100));
    assert_eq!(sign_in(&plane, ADMIN_EMAIL, &long).await, wrong);
}

#[tokio::test]
async fn too_many_attempts_on_one_account_are_throttled_for_a_minute() {
    let limits = Limits { bcrypt_cost: 4, logins_per_minute: 3, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 4).await;
    plane.admin_token().await;
    for _ in 0..3 {
        assert_eq!(sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.0, StatusCode::OK, "not counted");
        assert_eq!(sign_in(&plane, ADMIN_EMAIL, "wrong password").await.0, StatusCode::UNAUTHORIZED);
    }
    let body = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let (status, headers, problem) = plane.call("POST", TOKEN, None, body).await;
    assert_eq!(status, StatusCode::TOO_MANY_REQUESTS);
    assert_eq!(slug(&problem), "too-many-attempts");
    let wait: u64 = headers["retry-after"].to_str().expect("text").parse().expect("seconds");
    assert!((1..=60).contains(&wait), "{wait}");
    plane.advance(Duration::from_secs(61)).await;
    assert_eq!(sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.0, StatusCode::OK);
}

#[tokio::test]
async fn a_refresh_token_is_good_once_and_using_an_old_one_ends_the_session() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let first = sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.1;
    let (status, second) = refresh(&plane, &first["refresh_token"]).await;
    assert_eq!(status, StatusCode::OK);
    assert_ne!(first["refresh_token"], second["refresh_token"]);
    plane.advance(Duration::from_secs(30)).await;

    let (status, problem) = refresh(&plane, &first["refresh_token"]).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "refresh-reused"));
    let (status, _) = refresh(&plane, &second["refresh_token"]).await;
    assert_eq!(status, StatusCode::UNAUTHORIZED, "the newest token of an ended session");
    let access = second["access_token"].as_str().expect("a token");
    assert_eq!(me(&plane, access, None).await.0, StatusCode::UNAUTHORIZED);

    let path = "/api/v1/audit?action=session.refresh_reused";
    let (_, _, log) = plane.call("GET", path, &*plane.admin_token().await, None).await;
    assert_eq!(log["items"].as_array().map(Vec::len), Some(1), "{log}");
}

#[tokio::test]
async fn of_two_refreshes_at_once_one_wins_and_the_session_goes_on() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let pair = sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.1;
    let answers = futures::future::join_all((0..6).map(|_| refresh(&plane, &pair["refresh_token"]))).await;
    let (won, lost): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, _)| *status == StatusCode::OK);
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|(_, problem)| slug(problem) == "refresh-raced"), "{lost:?}");
    let (status, _) = refresh(&plane, &won[0].1["refresh_token"]).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn logout_ends_every_token_of_the_session() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let pair = sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.1;
    let access = pair["access_token"].as_str().expect("a token");
    let (status, _, _) = plane.call("POST", "/api/v1/auth/logout", access, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT);
    assert_eq!(me(&plane, access, None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(refresh(&plane, &pair["refresh_token"]).await.0, StatusCode::UNAUTHORIZED);
    let (status, _, _) = plane.call("POST", "/api/v1/auth/logout", access, None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "again");
}

#[tokio::test]
async fn tokens_end_with_their_time_their_generation_their_epoch_and_their_user() {
    let plane = TestPlane::start().await;
    plane.admin_token().await;
    let conn = plane.db().conn().await.expect("a connection");
    for (change, undo) in [
        ("UPDATE users SET token_generation = 2", "UPDATE users SET token_generation = 1"),
        ("UPDATE users SET disabled_at = plumbline_now()", "UPDATE users SET disabled_at = NULL"),
        ("UPDATE installation SET epoch = 2", "UPDATE installation SET epoch = 1"),
    ] {
        let pair = sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.1;
        let access = pair["access_token"].as_str().expect("a token");
        conn.batch(change).await.expect("changed");
        assert_eq!(me(&plane, access, None).await.0, StatusCode::UNAUTHORIZED, "{change}");
        assert_eq!(refresh(&plane, &pair["refresh_token"]).await.0, StatusCode::UNAUTHORIZED, "{change}");
        conn.batch(undo).await.expect("undone");
    }
    let token = plane.admin_token().await;
    plane.advance(plane.deps.limits.access_token_age + Duration::from_secs(1)).await;
    assert_eq!(me(&plane, &token, None).await.0, StatusCode::UNAUTHORIZED);
}

#[tokio::test]
async fn forged_tokens_are_refused() {
    let plane = TestPlane::start().await;
    let token = plane.admin_token().await;
    let (head, signature) = token.rsplit_once('.').expect("three parts");
    let (_, claims) = head.split_once('.').expect("three parts");
    // {"alg":"none","typ":"JWT"} and a flipped signature.
    let unsigned = format!("eyJhbGciOiJub25lIiwidHlwIjoiSldUIn0.{claims}.");
    let flipped = format!("{head}.{}", signature.chars().rev().collect::<String>());
    for forged in [unsigned.as_str(), flipped.as_str(), "x", "a.b.c", &"x".repeat(5000)] {
        assert_eq!(me(&plane, forged, None).await.0, StatusCode::UNAUTHORIZED);
    }
    for forged in ["", "plr_", "plr_AAAA", &format!("plr_{}", "A".repeat(123))] {
        assert_eq!(refresh(&plane, &json!(forged)).await.0, StatusCode::UNAUTHORIZED);
    }
    // One kind of token is not taken for the other.
    let pair = sign_in(&plane, ADMIN_EMAIL, PASSWORD).await.1;
    let refresh_token = pair["refresh_token"].as_str().expect("a token");
    assert_eq!(me(&plane, refresh_token, None).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(refresh(&plane, &pair["access_token"]).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(me(&plane, &token, None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn the_business_unit_header_is_resolved_as_specified() {
    let plane = TestPlane::start().await;
    let root = plane.admin_token().await;
    let (blue, _red, gone) =
        (plane.unit("blue").await, plane.unit("red").await, plane.unit("archived").await);
    let member = plane.member(blue, Role::Operator).await;
    let left = plane.member(gone, Role::Admin).await;
    let (_, email) = plane.insert_user().await;
    let stranger = plane.login(&email).await;
    let archive = format!("/api/v1/business-units/{gone}/archive");
    assert_eq!(plane.call("POST", &archive, &*root, None).await.0, StatusCode::OK);

    let (ok, forbidden, missing) = (StatusCode::OK, StatusCode::FORBIDDEN, StatusCode::NOT_FOUND);
    let all = Value::Null;
    // Who, the header, the status, and the unit with the role in it or the problem.
    for (who, header, status, unit, word) in [
        (&root, None, ok, all.clone(), "admin"),
        (&root, Some(""), ok, all.clone(), "admin"),
        (&root, Some("all"), ok, all.clone(), "admin"),
        (&root, Some(" all "), ok, all.clone(), "admin"),
        (&root, Some("red"), ok, json!("red"), "admin"),
        (&root, Some("archived"), ok, json!("archived"), "admin"),
        (&root, Some("no-such-unit"), missing, all.clone(), "not-found"),
        (&root, Some("ALL"), missing, all.clone(), "not-found"),
        (&root, Some("\u{fffd}"), missing, all.clone(), "not-found"),
        (&member, None, ok, json!("blue"), "operator"),
        (&member, Some(""), ok, json!("blue"), "operator"),
        (&member, Some("blue"), ok, json!("blue"), "operator"),
        (&member, Some(" blue "), ok, json!("blue"), "operator"),
        (&member, Some("all"), forbidden, all.clone(), "forbidden"),
        (&member, Some("red"), forbidden, all.clone(), "forbidden"),
        (&member, Some("no-such-unit"), forbidden, all.clone(), "forbidden"),
        (&member, Some("BLUE"), forbidden, all.clone(), "forbidden"),
        // That there is an archived unit is told to its members alone.
        (&member, Some("archived"), forbidden, all.clone(), "forbidden"),
        (&left, Some("archived"), forbidden, all.clone(), "unit-archived"),
        (&left, None, forbidden, all.clone(), "unit-archived"),
        (&left, Some("all"), forbidden, all.clone(), "forbidden"),
        (&stranger, None, forbidden, all.clone(), "forbidden"),
        (&stranger, Some("all"), forbidden, all.clone(), "forbidden"),
        (&stranger, Some("blue"), forbidden, all.clone(), "forbidden"),
    ] {
        let (actual, answer) = me(&plane, who, header).await;
        assert_eq!(actual, status, "{header:?}: {answer}");
        if status == ok {
            assert_eq!((&answer["business_unit"], &answer["role"]), (&unit, &json!(word)), "{header:?}");
        } else {
            assert_eq!(slug(&answer), word, "{header:?}: {answer}");
        }
    }
    // No answer tells a unit that is not theirs from one that is not there.
    let foreign = me(&plane, &member, Some("red")).await;
    assert_eq!(me(&plane, &member, Some("no-such-unit")).await, foreign);
    assert_eq!(me(&plane, &member, Some("archived")).await, foreign);
}

#[tokio::test]
async fn the_first_unit_by_slug_is_meant_without_a_header_and_an_archived_one_is_passed_over() {
    let people = People::new().await;
    let ada = people.person(&[(people.red, Role::Viewer), (people.blue, Role::Admin)]).await;
    let first = async || me(&people.plane, &ada.token, None).await.1["business_unit"].clone();
    assert_eq!(first().await, "blue");
    let path = format!("business-units/{}", people.blue);
    people.as_root("POST", &format!("{path}/archive"), None).await;
    assert_eq!(first().await, "red");
    people.as_root("POST", &format!("{path}/unarchive"), None).await;
    assert_eq!(first().await, "blue");
}

#[tokio::test]
async fn power_is_what_the_database_says_not_what_the_token_claims() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let body = json!({ "slug": "green", "name": "Green" });
    let conn = plane.db().conn().await.expect("a connection");
    conn.batch("UPDATE users SET is_superadmin = false").await.expect("demoted");
    let (status, _, _) = plane.call("POST", "/api/v1/business-units", &*admin, body).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn only_the_first_user_is_bootstrapped() {
    let plane = TestPlane::start().await;
    let boot =
        |email: &'static str| plumbline_core::users::service::bootstrap_admin(&plane.deps, email, PASSWORD);
    let (a, b) = futures::join!(boot("a@plumbline.test"), boot("b@plumbline.test"));
    assert!(a.is_ok() != b.is_ok(), "{a:?} {b:?}");
    assert!(
        plumbline_core::users::service::bootstrap_admin(&plane.deps, "c@plumbline.test", "short")
            .await
            .is_err()
    );
}
