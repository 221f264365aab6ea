//! Replacing the root key over the API.

use std::sync::Arc;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::rekeys::{self, RekeyStatus};
use plumbline_core::secrets::Keyring;
use serde_json::{Value, json};

use crate::plane::{ADMIN_EMAIL, PASSWORD, TestPlane, slug};
use crate::store::rekeys::{NEXT_ROOT_KEY, both, finish};

const PATH: &str = "/api/v1/admin/rekey";

fn current(job: &Value) -> (&str, &str) {
    (job["key_id"].as_str().unwrap(), job["status"].as_str().unwrap())
}

#[tokio::test]
async fn a_rekey_is_asked_for_once_and_shows_its_progress() {
    let mut plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    assert_eq!(plane.call("GET", PATH, &*admin, None).await.0, StatusCode::NOT_FOUND);
    plane.deps.keys = both();
    let (status, headers, job) = plane.call("POST", PATH, &*admin, None).await;
    assert_eq!((status, headers["location"].to_str().unwrap()), (StatusCode::ACCEPTED, PATH), "{job}");
    assert_eq!(current(&job), (plane.deps.keys.key_id(), "running"));
    let (_, _, again) = plane.call("POST", PATH, &*admin, None).await;
    assert_eq!(again["id"], job["id"], "it goes on");

    finish(&plane).await;
    let (status, _, job) = plane.call("GET", PATH, &*admin, None).await;
    assert_eq!((status, current(&job).1), (StatusCode::OK, "done"), "{job}");
    assert_eq!(job["columns"].as_array().unwrap().iter().filter(|column| column["resealed"] == 1).count(), 1);
    let columns = job["columns"].as_array().unwrap();
    assert_eq!(columns.len(), rekeys::SEALED_COLUMNS.len());
    assert!(columns.iter().all(|column| column["remaining"] == 0), "{job}");

    let (_, _, log) = plane.call("GET", "/api/v1/audit?resource_type=rekey", &*admin, None).await;
    let said: Vec<_> = log["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|entry| (&entry["action"], &entry["details"]["status"]))
        .collect();
    assert_eq!(said, [(&json!("rekey.end"), &json!("done")), (&json!("rekey.begin"), &json!("running"))]);
}

#[tokio::test]
async fn only_a_superadmin_asks_for_a_rekey_or_sees_one() {
    let plane = TestPlane::start().await;
    let (superadmin, admin) = (plane.admin_token().await, plane.user(Role::Admin).await);
    plane.call("POST", PATH, &*superadmin, None).await;
    for method in ["GET", "POST"] {
        assert_eq!(plane.call(method, PATH, &*admin, None).await.0, StatusCode::FORBIDDEN, "{method}");
        assert_eq!(plane.call(method, PATH, None, None).await.0, StatusCode::UNAUTHORIZED, "{method}");
    }
}

#[tokio::test]
async fn a_job_for_an_earlier_root_key_is_superseded() {
    let mut plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let (_, _, first) = plane.call("POST", PATH, &*admin, None).await;
    plane.deps.keys = both();
    let (_, _, second) = plane.call("POST", PATH, &*admin, None).await;
    assert_ne!(first["id"], second["id"]);
    assert_eq!(current(&second), (plane.deps.keys.key_id(), "running"));
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=rekey.end", &*admin, None).await;
    assert_eq!(log["items"][0]["details"]["status"], "superseded", "{log}");
}

async fn sign_in(plane: &TestPlane) -> (String, String) {
    let credentials = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let (status, _, pair) = plane.call("POST", "/api/v1/auth/token", None, credentials).await;
    assert_eq!(status, StatusCode::OK, "{pair}");
    let token = |name: &str| pair[name].as_str().unwrap().to_owned();
    (token("access_token"), token("refresh_token"))
}

async fn me(plane: &TestPlane, access: &str) -> StatusCode {
    plane.call("GET", "/api/v1/me", access, None).await.0
}

#[tokio::test]
async fn sessions_outlive_the_change_of_the_root_key_and_the_removal_of_the_old_one() {
    let mut plane = TestPlane::start().await;
    plane.admin_token().await;
    let (access, refresh) = sign_in(&plane).await;
    let (_, early) = sign_in(&plane).await;
    plane.deps.keys = both();
    assert_eq!(me(&plane, &access).await, StatusCode::OK);
    let renew = async |plane: &TestPlane, token: &str| {
        plane.call("POST", "/api/v1/auth/refresh", None, json!({ "refresh_token": token })).await
    };
    let (status, _, fresh) = renew(&plane, &refresh).await;
    assert_eq!(status, StatusCode::OK, "{fresh}");
    assert_eq!(plane.call("POST", PATH, &*access, None).await.0, StatusCode::ACCEPTED);
    assert_eq!(finish(&plane).await.status, RekeyStatus::Done);

    plane.deps.keys = Arc::new(Keyring::from_root(NEXT_ROOT_KEY).unwrap());
    for access in [&*access, fresh["access_token"].as_str().unwrap()] {
        assert_eq!(me(&plane, access).await, StatusCode::OK, "its secret was sealed again");
    }
    assert_eq!(renew(&plane, fresh["refresh_token"].as_str().unwrap()).await.0, StatusCode::OK);
    assert_eq!(renew(&plane, &early).await.0, StatusCode::UNAUTHORIZED, "made with the old root");
}

#[tokio::test]
async fn a_secret_that_no_key_opens_makes_its_tokens_invalid_and_the_next_sign_in_makes_another() {
    let mut plane = TestPlane::start().await;
    plane.admin_token().await;
    let (access, _) = sign_in(&plane).await;
    plane.deps.keys = Arc::new(Keyring::from_root(NEXT_ROOT_KEY).unwrap());
    assert_eq!(me(&plane, &access).await, StatusCode::UNAUTHORIZED, "taken away too early");
    let (status, _, problem) = plane.call("POST", "/api/v1/auth/logout", &*access, None).await;
    assert_eq!((status, slug(&problem)), (StatusCode::UNAUTHORIZED, "unauthenticated"));

    let signed_in = futures::future::join_all((0..4).map(|_| sign_in(&plane))).await;
    for (access, _) in &signed_in {
        assert_eq!(me(&plane, access).await, StatusCode::OK);
    }
    let admin = &*signed_in[0].0;
    let (_, _, log) = plane.call("GET", "/api/v1/audit?action=jwt_secret.rotate", admin, None).await;
    assert_eq!(log["items"].as_array().unwrap().len(), 1, "of four at once: {log}");
    assert_eq!(log["items"][0]["details"]["reason"], "it was sealed under another root key");

    // The old root comes back: nobody who was signed in has lost anything.
    plane.deps.keys = both();
    assert_eq!(me(&plane, &access).await, StatusCode::OK);
    assert_eq!(me(&plane, admin).await, StatusCode::OK);
}
