//! Who looks at what right now.

use std::collections::BTreeMap;
use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::presence;
use plumbline_runtime::Function;
use serde_json::{Value, json};

use super::users::People;
use crate::plane::{ADMIN_EMAIL, slug};

async fn ping(people: &People, token: &str, slug: impl Into<Option<&str>>) -> (StatusCode, Value) {
    let body = match slug.into() {
        Some(slug) => json!({ "bu_slug": slug }),
        None => json!({}),
    };
    people.call(token, "POST", "presence", body).await
}

/// Who is seen, and at what they look.
async fn seen(people: &People, token: &str) -> BTreeMap<String, Value> {
    let (status, page) = people.call(token, "GET", "presence", None).await;
    assert_eq!(status, StatusCode::OK, "{page}");
    let items = page["items"].as_array().unwrap().iter();
    items.map(|one| (one["email"].as_str().unwrap().to_owned(), one["bu_slug"].clone())).collect()
}

#[tokio::test]
async fn people_are_seen_by_those_of_the_unit_that_they_look_at() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer), (people.red, Role::Viewer)]).await;
    let bob = people.person(&[(people.blue, Role::Viewer)]).await;
    let eve = people.person(&[(people.red, Role::Admin)]).await;
    for (person, slug) in [(&ada, None), (&bob, Some("blue")), (&eve, Some("red"))] {
        assert_eq!(ping(&people, &person.token, slug).await.0, StatusCode::NO_CONTENT);
    }
    assert_eq!(ping(&people, &people.root, None).await.0, StatusCode::NO_CONTENT);
    let of = |person: &str, slug: &str| (person.to_owned(), json!(slug));
    let in_blue = BTreeMap::from([of(&ada.email, "blue"), of(&bob.email, "blue")]);
    assert_eq!(seen(&people, &bob.token).await, in_blue, "without a slug the first unit is meant");
    assert_eq!(seen(&people, &eve.token).await, BTreeMap::from([of(&eve.email, "red")]));
    assert_eq!(seen(&people, &ada.token).await.len(), 3);
    let everybody = seen(&people, &people.root).await;
    assert_eq!((everybody.len(), &everybody[ADMIN_EMAIL]), (4, &Value::Null));

    // Somewhere else: one row for each person.
    assert_eq!(ping(&people, &ada.token, "red").await.0, StatusCode::NO_CONTENT);
    assert_eq!(seen(&people, &bob.token).await, BTreeMap::from([of(&bob.email, "blue")]));
    assert_eq!(seen(&people, &eve.token).await.len(), 2);
    // Without a membership nobody is seen any more.
    let leave = json!({ "remove_memberships": [people.red] });
    people.as_root("PATCH", &format!("users/{}", ada.id), leave).await;
    assert_eq!(seen(&people, &ada.token).await, BTreeMap::from([of(&bob.email, "blue")]));
}

#[tokio::test]
async fn nobody_looks_at_a_unit_that_they_do_not_see() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Admin)]).await;
    let archive = format!("business-units/{}/archive", people.red);
    for bad in ["red", "no-such-unit", "all", "", "<script>"] {
        let (status, problem) = ping(&people, &ada.token, bad).await;
        assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"), "{bad}");
    }
    assert_eq!(seen(&people, &people.root).await, BTreeMap::new());
    for good in ["red", "all"] {
        assert_eq!(ping(&people, &people.root, good).await.0, StatusCode::NO_CONTENT, "{good}");
    }
    assert_eq!(people.as_root("POST", &archive, None).await.0, StatusCode::OK);
    assert_eq!(ping(&people, &people.root, "red").await.0, StatusCode::NOT_FOUND, "archived");
}

#[tokio::test]
async fn whoever_says_nothing_for_a_minute_is_gone_and_is_swept_later() {
    let people = People::new().await;
    let ada = people.person(&[(people.blue, Role::Viewer)]).await;
    let bob = people.person(&[(people.blue, Role::Viewer)]).await;
    ping(&people, &ada.token, None).await;
    people.plane.advance(Duration::from_secs(45)).await;
    ping(&people, &bob.token, None).await;
    assert_eq!(seen(&people, &bob.token).await.len(), 2);
    people.plane.advance(Duration::from_secs(20)).await;
    let there: Vec<String> = seen(&people, &bob.token).await.into_keys().collect();
    assert_eq!(there, [bob.email.as_str()]);
    let reconciler = people.plane.as_function(Function::Reconciler);
    assert_eq!(presence::service::forget(&reconciler).await.unwrap(), 0);
    people.plane.advance(Duration::from_secs(540)).await;
    assert_eq!(presence::service::forget(&reconciler).await.unwrap(), 1);
    people.plane.advance(Duration::from_secs(600)).await;
    assert_eq!(presence::service::forget(&reconciler).await.unwrap(), 1);
}

#[tokio::test]
async fn the_disabled_are_not_seen_and_the_list_pages() {
    let people = People::new().await;
    let mut all = Vec::new();
    for _ in 0..4 {
        let person = people.person(&[(people.blue, Role::Viewer)]).await;
        ping(&people, &person.token, None).await;
        all.push(person);
    }
    people.as_root("POST", &format!("users/{}/disable", all[3].id), None).await;
    let (_, first) = people.call(&all[0].token, "GET", "presence?limit=2", None).await;
    let next = format!("presence?limit=2&cursor={}", first["next_cursor"].as_str().unwrap());
    let (_, second) = people.call(&all[0].token, "GET", &next, None).await;
    let count = |page: &Value| page["items"].as_array().map(Vec::len);
    assert_eq!((count(&first), count(&second)), (Some(2), Some(1)));
}
