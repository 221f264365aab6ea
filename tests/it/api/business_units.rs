//! Business units.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use crate::plane::{TestPlane, slug};

const UNITS: &str = "/api/v1/business-units";

fn slugs(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("a list").iter().filter_map(|unit| unit["slug"].as_str()).collect()
}

#[tokio::test]
async fn a_superadmin_makes_and_renames_units() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let (status, headers, made) =
        plane.call("POST", UNITS, &*admin, json!({ "slug": "payments", "name": "Payments" })).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let place = headers["location"].to_str().expect("text").to_owned();
    let (status, _, changed) = plane.call("PUT", &place, &*admin, json!({ "name": "Pay" })).await;
    assert_eq!(status, StatusCode::OK, "{changed}");
    let (_, _, read) = plane.call("GET", &place, &*admin, None).await;
    assert_eq!((&read["slug"], &read["name"]), (&json!("payments"), &json!("Pay")));
    // A slug is part of headers, settings and names elsewhere: there is no way to change it.
    for body in [json!({ "slug": "pay", "name": "Pay" }), json!({ "slug": "payments" })] {
        let (status, _, problem) = plane.call("PUT", &place, &*admin, body).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("slug")));
    }
    let (_, _, log) = plane.call("GET", "/api/v1/audit", &*admin, None).await;
    let actions: Vec<_> = log["items"]
        .as_array()
        .expect("a list")
        .iter()
        .filter_map(|entry| entry["action"].as_str())
        .collect();
    assert_eq!(actions[..2], ["business_unit.update", "business_unit.create"]);
}

#[tokio::test]
async fn a_taken_slug_is_a_conflict_also_in_a_race() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let make = || plane.call("POST", UNITS, &*admin, json!({ "slug": "twice", "name": "Twice" }));
    let answers = futures::future::join_all((0..5).map(|_| make())).await;
    let (made, refused): (Vec<_>, Vec<_>) =
        answers.into_iter().partition(|(status, _, _)| *status == StatusCode::CREATED);
    assert_eq!(made.len(), 1);
    for (status, _, problem) in refused {
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "business-unit-exists"));
    }
}

#[tokio::test]
async fn slugs_and_names_that_cannot_be_are_refused_by_name() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let long = "x".repeat(65);
    for bad in ["", "a", "ab", "-ab", "ab-", "Ab1", "a_b", "a b", "all", "ä-b", long.as_str()] {
        let (status, _, problem) =
            plane.call("POST", UNITS, &*admin, json!({ "slug": bad, "name": "N" })).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("slug")), "{bad}");
    }
    for bad in ["", " ", "a\nb", &"x".repeat(256)] {
        let (status, _, problem) =
            plane.call("POST", UNITS, &*admin, json!({ "slug": "good", "name": bad })).await;
        assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("name")), "{bad}");
    }
    let widest = "x".repeat(64);
    let (status, _, _) = plane.call("POST", UNITS, &*admin, json!({ "slug": widest, "name": "N" })).await;
    assert_eq!(status, StatusCode::CREATED);
}

#[tokio::test]
async fn a_member_sees_their_own_units_and_makes_none() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let (blue, red) = (plane.unit("blue").await, plane.unit("red").await);
    let member = plane.member(blue, Role::Admin).await;
    let (_, _, own) = plane.call("GET", UNITS, &*member, None).await;
    assert_eq!(slugs(&own), ["blue"]);
    let (_, _, all) = plane.call("GET", UNITS, &*admin, None).await;
    assert_eq!(slugs(&all), ["red", "blue", "default"]);
    let (status, _, problem) = plane.call("GET", &format!("{UNITS}/{red}"), &*member, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::NOT_FOUND, "not-found"));
    let viewer = plane.user(Role::Viewer).await;
    assert_eq!(slugs(&plane.call("GET", UNITS, &*viewer, None).await.2), ["default"]);
    let body = || json!({ "slug": "mine", "name": "Mine" });
    assert_eq!(plane.call("POST", UNITS, &*member, body()).await.0, StatusCode::FORBIDDEN);
    let rename = json!({ "name": "Mine" });
    let (status, ..) = plane.call("PUT", &format!("{UNITS}/{blue}"), &*member, rename).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn the_list_pages_without_gaps_or_repetitions() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for n in 0..7 {
        plane.unit(&format!("unit-{n}")).await;
    }
    let (mut seen, mut cursor) = (Vec::new(), String::new());
    loop {
        let (status, _, page) = plane.call("GET", &format!("{UNITS}?limit=3{cursor}"), &*admin, None).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        seen.extend(slugs(&page).into_iter().map(str::to_owned));
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    seen.sort();
    seen.dedup();
    assert_eq!(seen.len(), 8);
}
