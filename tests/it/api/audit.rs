//! The audit log over the API.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use crate::plane::{TestPlane, slug};

fn actions(list: &Value) -> Vec<&str> {
    list["items"].as_array().expect("a list").iter().filter_map(|entry| entry["action"].as_str()).collect()
}

#[tokio::test]
async fn sign_ins_and_changes_are_listed_newest_first() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    plane.call("POST", "/api/v1/business-units", &*admin, json!({ "slug": "blue", "name": "Blue" })).await;
    let wrong = json!({ "email": "x@plumbline.test", "password": "wrong" });
    plane.call("POST", "/api/v1/auth/token", None, wrong).await;
    let (status, _, log) = plane.call("GET", "/api/v1/audit", &*admin, None).await;
    assert_eq!(status, StatusCode::OK);
    assert_eq!(
        actions(&log),
        [
            "session.login_failed",
            "business_unit.create",
            "jwt_secret.create",
            "session.login",
            "user.bootstrap"
        ]
    );
    assert_eq!(log["items"][0]["user_id"], Value::Null, "a failed attempt is nobody's deed");
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=user.bootstrap&limit=1", &*admin, None).await;
    assert_eq!(actions(&log), ["user.bootstrap"]);
    let (_, _, found) = plane.call("GET", "/api/v1/audit/verify", &*admin, None).await;
    assert_eq!((&found["ok"], &found["entries"]), (&json!(true), &json!(5)), "{found}");
}

#[tokio::test]
async fn a_units_admin_sees_only_the_units_chain_and_others_see_nothing() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    let (admin, operator) = (plane.member(unit, Role::Admin).await, plane.member(unit, Role::Operator).await);
    let (status, _, log) = plane.call("GET", "/api/v1/audit", &*admin, None).await;
    assert_eq!((status, actions(&log)), (StatusCode::OK, vec![]), "sign-ins are the platform's");
    let platform = format!("/api/v1/audit/export?chain_id={}", uuid::Uuid::nil());
    let (_, _, export) = plane.call("GET", &platform, &*admin, None).await;
    assert_eq!(export["items"], json!([]), "the scope wins over the parameter");
    for path in ["/api/v1/audit", "/api/v1/audit/verify", "/api/v1/audit/export", "/api/v1/audit/chains"] {
        assert_eq!(plane.call("GET", path, &*operator, None).await.0, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for query in [
        "cursor=x",
        "cursor=1.2.3",
        "limit=x",
        "run_id=x",
        "nonsense=1",
        "action=%00",
        "user_id=x",
        "from=yesterday",
        "from=-0500-01-01T00:00:00Z",
        "to=%2B12345-01-01T00:00:00Z",
        "resource_id=%00",
        "from=2026-01-02T00:00:00Z&to=2026-01-01T00:00:00Z",
    ] {
        let (status, _, problem) = plane.call("GET", &format!("/api/v1/audit?{query}"), &*admin, None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{query}");
    }
    let (status, _, _) = plane.call("GET", "/api/v1/audit?limit=-5&action=%20", &*admin, None).await;
    assert_eq!(status, StatusCode::OK);
}

#[tokio::test]
async fn entries_are_found_by_who_what_and_when_in_one_unit_and_in_all() {
    let plane = TestPlane::start().await;
    let superadmin = plane.admin_token().await;
    let unit = plane.unit("blue").await;
    let admin = plane.member(unit, Role::Admin).await;
    for (name, seconds) in [("a", 0), ("b", 100), ("c", 200)] {
        let body = json!({ "name": name, "environment": "dev", "repo_url": format!("https://git.example.com/{name}.git") });
        let (status, _, made) = plane.call("POST", "/api/v1/workspaces", &*admin, body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        plane.advance(std::time::Duration::from_secs(if seconds == 200 { 0 } else { 100 })).await;
    }
    let (_, _, all) = plane.call("GET", "/api/v1/audit?action=workspace.create", &*admin, None).await;
    let times: Vec<&str> =
        all["items"].as_array().unwrap().iter().map(|e| e["created_at"].as_str().unwrap()).collect();
    let [last, middle, first] = times[..] else { panic!("three were made: {all}") };
    let (one, by) =
        (all["items"][1]["resource_id"].as_str().unwrap(), all["items"][1]["user_id"].as_str().unwrap());
    for (query, expected) in [
        (format!("resource_type=workspace&resource_id={one}"), vec![middle]),
        (format!("resource_type=run&resource_id={one}"), vec![]),
        (format!("user_id={by}&resource_type=workspace"), vec![last, middle, first]),
        (format!("user_id={}&resource_type=workspace", uuid::Uuid::nil()), vec![]),
        (format!("resource_type=workspace&from={middle}"), vec![last, middle]),
        (format!("resource_type=workspace&to={middle}"), vec![first]),
        (format!("resource_type=workspace&from={middle}&to={last}&limit=1"), vec![middle]),
    ] {
        for token in [&admin, &superadmin] {
            let (status, _, found) =
                plane.call("GET", &format!("/api/v1/audit?{query}"), &**token, None).await;
            assert_eq!(status, StatusCode::OK, "{query}: {found}");
            let found: Vec<&str> = found["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|e| e["created_at"].as_str().unwrap())
                .collect();
            assert_eq!(found, expected, "{query}");
        }
    }
}

#[tokio::test]
async fn an_attempt_that_was_lost_or_refused_is_found_with_its_run() {
    let world = crate::world::World::new().await;
    let (run, _executor) = world.applying().await;
    world.plane.advance(world.plane.deps.limits.apply_wall_clock + std::time::Duration::from_secs(1)).await;
    plumbline_core::tasks::sweeps::judge_silent(&world.plane.deps).await.unwrap();
    let (_, log) = world.get(&format!("audit?run_id={run}&action=executor.lost")).await;
    assert_eq!(actions(&log), ["executor.lost"], "{log}");
}

#[tokio::test]
async fn chains_page_in_order_and_a_unit_sees_its_own() {
    let plane = TestPlane::start().await;
    let superadmin = plane.admin_token().await;
    let mut units = vec![];
    for slug in ["blue", "red", "green"] {
        let unit = plane.unit(slug).await;
        let admin = plane.member(unit, Role::Admin).await;
        let body = json!({ "name": slug, "environment": "dev", "repo_url": format!("https://git.example.com/{slug}.git") });
        assert_eq!(plane.call("POST", "/api/v1/workspaces", &*admin, body).await.0, StatusCode::CREATED);
        units.push((unit.to_string(), admin));
    }
    let (mut seen, mut cursor) = (vec![], String::new());
    loop {
        let path = format!("/api/v1/audit/chains?limit=2{cursor}");
        let (status, _, page) = plane.call("GET", &path, &*superadmin, None).await;
        assert_eq!(status, StatusCode::OK, "{page}");
        seen.extend(
            page["items"]
                .as_array()
                .unwrap()
                .iter()
                .map(|head| head["chain_id"].as_str().unwrap().to_owned()),
        );
        let Some(next) = page["next_cursor"].as_str() else { break };
        cursor = format!("&cursor={next}");
    }
    let mut expected = vec![uuid::Uuid::nil().to_string()];
    expected.extend(units.iter().map(|(unit, _)| unit.clone()));
    expected.sort();
    assert_eq!(seen, expected);
    let (unit, admin) = &units[1];
    let (_, _, own) = plane.call("GET", "/api/v1/audit/chains", &**admin, None).await;
    assert_eq!(
        (own["items"].as_array().unwrap().len(), own["items"][0]["chain_id"].as_str()),
        (1, Some(unit.as_str()))
    );
}
