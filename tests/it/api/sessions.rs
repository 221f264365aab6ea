//! One's own sessions, and the end of somebody's.

use std::net::{Ipv4Addr, SocketAddr};

use axum::body::Body;
use axum::extract::ConnectInfo;
use http::{Request, StatusCode, header};
use plumbline_core::access::Role;
use serde_json::{Value, json};

use super::users::People;
use crate::plane::{PASSWORD, TestPlane, read, slug};

/// Signs in as a program at an address.
async fn sign_in_from(
    plane: &TestPlane,
    email: &str,
    password: &str,
    address: [u8; 4],
) -> (StatusCode, Value) {
    let body = json!({ "email": email, "password": password }).to_string();
    let request = Request::post("/api/v1/auth/token")
        .header(header::CONTENT_TYPE, "application/json")
        .header(header::USER_AGENT, "plumb/9")
        // What anybody can write is not where they are.
        .header("x-forwarded-for", "203.0.113.1")
        .extension(ConnectInfo(SocketAddr::from((Ipv4Addr::from(address), 4711))))
        .body(Body::from(body))
        .unwrap();
    let (status, _, answer) = read(plane.send(request).await).await;
    (status, answer)
}

fn token(pair: &Value) -> &str {
    pair["access_token"].as_str().unwrap_or_else(|| panic!("{pair}"))
}

#[tokio::test]
async fn people_see_where_they_are_signed_in_and_end_one_of_their_sessions() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let (_, other) = sign_in_from(&people.plane, &ada.email, PASSWORD, [192, 0, 2, 7]).await;
    let (status, page) = people.call(&ada.token, "GET", "sessions", None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let items = page["items"].as_array().unwrap();
    assert_eq!(items.len(), 2);
    let (new, old) = (&items[0], &items[1]);
    assert_eq!((&new["address"], &new["user_agent"]), (&json!("192.0.2.7"), &json!("plumb/9")));
    assert_eq!((&old["address"], &old["user_agent"]), (&Value::Null, &Value::Null));
    assert_eq!((&new["current"], &old["current"]), (&json!(false), &json!(true)));
    assert!(
        new["created_at"].is_string() && new["refreshed_at"].is_string() && new["expires_at"].is_string()
    );

    let path = format!("sessions/{}", new["id"].as_str().unwrap());
    assert_eq!(people.call(&ada.token, "DELETE", &path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(people.stands(token(&other)).await, StatusCode::UNAUTHORIZED);
    let refresh = json!({ "refresh_token": other["refresh_token"] });
    assert_eq!(people.call("", "POST", "auth/refresh", refresh).await.0, StatusCode::UNAUTHORIZED);
    assert_eq!(people.stands(&ada.token).await, StatusCode::OK);
    let (status, problem) = people.call(&ada.token, "DELETE", &path, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "it is over");
    let (_, page) = people.call(&ada.token, "GET", "sessions", None).await;
    assert_eq!(page["items"].as_array().map(Vec::len), Some(1));
    assert_eq!(people.entries("session.end", &ada.id).await.len(), 1);
}

#[tokio::test]
async fn the_list_of_sessions_pages_and_says_nothing_of_others() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    for _ in 0..4 {
        people.plane.login(&ada.email).await;
    }
    let (_, first) = people.call(&ada.token, "GET", "sessions?limit=3", None).await;
    let next = format!("sessions?limit=3&cursor={}", first["next_cursor"].as_str().unwrap());
    let (_, second) = people.call(&ada.token, "GET", &next, None).await;
    let count = |page: &Value| page["items"].as_array().map(Vec::len);
    assert_eq!((count(&first), count(&second)), (Some(3), Some(2)));
    assert_eq!(second["next_cursor"], Value::Null);
    let others = first["items"][0]["id"].as_str().unwrap();
    let (status, problem) = people.as_root("DELETE", &format!("sessions/{others}"), None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "also for a superadmin");
}

#[tokio::test]
async fn signing_out_everywhere_ends_every_token_that_was_ever_made() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let bystander = people.person(&[(people.blue, Role::Viewer)]).await;
    let mut pairs = Vec::new();
    for _ in 0..3 {
        let credentials = json!({ "email": ada.email, "password": PASSWORD });
        pairs.push(people.call("", "POST", "auth/token", credentials).await.1);
    }
    let out = people.call(&ada.token, "POST", "auth/logout-all", None).await;
    assert_eq!(out.0, StatusCode::NO_CONTENT);
    for pair in &pairs {
        assert_eq!(people.stands(token(pair)).await, StatusCode::UNAUTHORIZED);
        let refresh = json!({ "refresh_token": pair["refresh_token"] });
        assert_eq!(people.call("", "POST", "auth/refresh", refresh).await.0, StatusCode::UNAUTHORIZED);
    }
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(people.stands(&bystander.token).await, StatusCode::OK);
    let again = people.plane.login(&ada.email).await;
    assert_eq!(people.stands(&again).await, StatusCode::OK);
    let entries = people.entries("session.end_all", &ada.id).await;
    assert_eq!((entries.len(), &entries[0]["details"]["sessions"]), (1, &json!(4)));
}

#[tokio::test]
async fn an_admin_ends_the_sessions_of_a_person_who_signs_in_again() {
    let people = People::new().await;
    let admin = people.person(&[(people.blue, Role::Admin)]).await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let path = format!("users/{}/sessions", ada.id);
    assert_eq!(people.call(&admin.token, "DELETE", &path, None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(people.stands(&ada.token).await, StatusCode::UNAUTHORIZED);
    assert_eq!(people.stands(&people.plane.login(&ada.email).await).await, StatusCode::OK);
    let entries = people.entries("session.end_all", &ada.id).await;
    assert_eq!((entries.len(), &entries[0]["user_id"]), (1, &json!(admin.id)));
}

#[tokio::test]
async fn where_a_sign_in_comes_from_is_what_the_gateway_saw() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    // The address of the header gets no say in who is throttled.
    let limit = people.plane.deps.limits.logins_per_minute;
    for _ in 0..limit {
        let (status, _) =
            sign_in_from(&people.plane, &ada.email, "a wrong password", [198, 51, 100, 7]).await;
        assert_eq!(status, StatusCode::UNAUTHORIZED);
    }
    let (status, problem) = sign_in_from(&people.plane, &ada.email, PASSWORD, [198, 51, 100, 7]).await;
    assert_eq!((status, slug(&problem)), (StatusCode::TOO_MANY_REQUESTS, "too-many-attempts"));
    let (status, _) = sign_in_from(&people.plane, &ada.email, PASSWORD, [192, 0, 2, 7]).await;
    assert_eq!(status, StatusCode::OK, "the owner is not kept out");
}
