//! Stories of people.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use super::ok;
use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane};

const FIRST: &str = "only for the first time";
const OWN: &str = "chosen by the person";

pub(super) async fn people() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let unit = plane.unit("blue").await;
    let memberships = json!([{ "business_unit_id": unit, "role": "viewer" }]);
    let new = json!({ "email": "ada@plumbline.test", "memberships": memberships });
    let made = ok(&plane, &admin, "POST", "users", new).await;
    let path = format!("users/{}", made["id"].as_str().unwrap());
    ok(&plane, &admin, "PATCH", &path, json!({ "display_name": "Ada" })).await;
    ok(&plane, &admin, "PATCH", &path, json!({ "remove_memberships": [unit] })).await;
    ok(&plane, &admin, "POST", &format!("{path}/disable"), None).await;
    ok(&plane, &admin, "POST", &format!("{path}/enable"), None).await;
    ok(&plane, &admin, "DELETE", &path, None).await;
    plane
}

pub(super) async fn passwords() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let made = ok(&plane, &admin, "POST", "users", json!({ "email": "ada@plumbline.test" })).await;
    let path = format!("users/{}", made["id"].as_str().unwrap());
    ok(&plane, &admin, "POST", &format!("{path}/invite"), None).await;
    ok(&plane, &admin, "DELETE", &format!("{path}/invite"), None).await;
    let invite = ok(&plane, &admin, "POST", &format!("{path}/invite"), None).await;
    let acceptance = json!({ "token": invite["token"], "password": OWN });
    ok(&plane, "", "POST", "auth/accept-invite", acceptance).await;
    ok(&plane, &admin, "PUT", &format!("{path}/password"), json!({ "password": FIRST })).await;
    ok(&plane, &admin, "DELETE", &format!("{path}/sessions"), None).await;
    let credentials = json!({ "email": "ada@plumbline.test", "password": FIRST });
    let pair = ok(&plane, "", "POST", "auth/token", credentials).await;
    let own = pair["access_token"].as_str().unwrap();
    let wrong = json!({ "current_password": "wrong", "new_password": OWN });
    let refused = plane.call("PUT", "/api/v1/me/password", own, wrong).await;
    assert_eq!(refused.0, StatusCode::FORBIDDEN);
    let right = json!({ "current_password": FIRST, "new_password": OWN });
    ok(&plane, own, "PUT", "me/password", right).await;
    let sessions = plane.call("GET", "/api/v1/sessions", own, None).await.2;
    ok(&plane, own, "DELETE", &format!("sessions/{}", sessions["items"][0]["id"].as_str().unwrap()), None)
        .await;
    let again = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let pair = ok(&plane, "", "POST", "auth/token", again).await;
    ok(&plane, pair["access_token"].as_str().unwrap(), "POST", "auth/logout-all", None).await;
    plane
}

/// A key's life.
pub(super) async fn keys() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let call = async |method: &str, below: &str, body: Value| {
        let path = format!("/api/v1/api-keys{below}");
        let (status, _, answer) = plane.call(method, &path, admin.as_str(), body).await;
        assert!(status.is_success(), "{method} {below}: {answer}");
        answer["id"].as_str().unwrap().to_owned()
    };
    let id = call("POST", "", json!({ "name": "ci" })).await;
    call("POST", &format!("/{id}/regenerate"), Value::Null).await;
    let successor = call("POST", &format!("/{id}/rotate"), json!({})).await;
    call("DELETE", &format!("/{successor}"), Value::Null).await;
    plane
}
