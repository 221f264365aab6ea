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
    for path in ["/api/v1/audit", "/api/v1/audit/verify", "/api/v1/audit/export"] {
        assert_eq!(plane.call("GET", path, &*operator, None).await.0, StatusCode::FORBIDDEN, "{path}");
    }
}

#[tokio::test]
async fn a_cursor_of_another_list_is_refused() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for query in ["cursor=x", "cursor=1.2.3", "limit=x", "run_id=x", "nonsense=1", "action=%00"] {
        let (status, _, problem) = plane.call("GET", &format!("/api/v1/audit?{query}"), &*admin, None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{query}");
    }
    let (status, _, _) = plane.call("GET", "/api/v1/audit?limit=-5&action=%20", &*admin, None).await;
    assert_eq!(status, StatusCode::OK);
}
