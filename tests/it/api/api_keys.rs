//! API keys over HTTP. Which route takes which key stands in the table that [`super::permissions`] walks.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use plumbline_core::ids::UserId;
use serde_json::{Value, json};

use crate::plane::{Answer, TestPlane, slug};
use crate::store::state_client::{Backend, insert_workspace, state};

const HOUR: Duration = Duration::from_secs(3600);

/// A plane with an admin who makes keys.
struct Desk {
    backend: Backend,
    admin: String,
    owner: UserId,
}

impl Desk {
    async fn new() -> Self {
        let backend = Backend::start().await;
        let admin = backend.plane.member(backend.unit, Role::Admin).await;
        let (_, _, me) = backend.plane.call("GET", "/api/v1/me", admin.as_str(), None).await;
        let owner = me["id"].as_str().unwrap().parse().unwrap();
        Self { backend, admin, owner }
    }

    fn plane(&self) -> &TestPlane {
        &self.backend.plane
    }

    /// Calls as the admin, below `/api-keys`.
    async fn keys(&self, method: &str, below: &str, body: Value) -> Answer {
        let body = if body.is_null() { None } else { Some(body) };
        self.plane().call(method, &format!("/api/v1/api-keys{below}"), self.admin.as_str(), body).await
    }

    async fn mint(&self, body: Value) -> Key {
        let (status, headers, made) = self.keys("POST", "", body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let key = Key::of(&made);
        assert_eq!(headers["location"], format!("/api/v1/api-keys/{}", key.id));
        key
    }

    /// What a token is answered: 200 if it is believed.
    async fn believed(&self, token: &str) -> (u16, String) {
        let (status, _, body) = self.plane().call("GET", "/api/v1/workspaces", token, None).await;
        (status.as_u16(), body["detail"].as_str().unwrap_or_default().to_owned())
    }

    async fn execute(&self, statement: &'static str) {
        self.plane().db().conn().await.unwrap().execute(statement, &[&self.owner]).await.unwrap();
    }
}

#[derive(Clone, Debug)]
struct Key {
    id: String,
    token: String,
    view: Value,
}

impl Key {
    fn of(made: &Value) -> Self {
        let text = |field: &str| made[field].as_str().unwrap_or_default().to_owned();
        Self { id: text("id"), token: text("token"), view: made.clone() }
    }
}

#[tokio::test]
async fn a_token_is_shown_once_and_stored_nowhere() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "deploy", "capability": "apply" })).await;
    assert!(key.token.starts_with("plb_") && key.token.len() == 47, "{}", key.token.len());
    assert_eq!(key.view["token_prefix"], key.token[..12]);
    assert_eq!(key.view["user_id"], desk.owner.to_string());
    assert_eq!(desk.believed(&key.token).await.0, 200);

    let (_, _, one) = desk.keys("GET", &format!("/{}", key.id), Value::Null).await;
    let (_, _, all) = desk.keys("GET", "", Value::Null).await;
    assert_eq!(all["items"][0], one);
    let rows = format!("{:?}", desk.plane().every_row().await);
    assert!(rows.contains("token_prefix") && !rows.contains(&key.token));
    assert!(!one.to_string().contains(&key.token) && one.get("token").is_none(), "{one}");
}

#[tokio::test]
async fn a_key_acts_in_its_own_unit_whatever_the_header_names() {
    let desk = Desk::new().await;
    let other = desk.plane().unit("other-unit").await;
    insert_workspace(desk.plane(), other, "runs_only").await;
    let key = desk.mint(json!({ "name": "k", "capability": "admin" })).await;
    for unit in ["other-unit", "all", "nowhere"] {
        let headers = [("x-business-unit", unit)];
        let answer = desk.plane().call_with("GET", "/api/v1/workspaces", &*key.token, None, &headers).await;
        assert_eq!(answer.0, StatusCode::OK, "{}", answer.2);
        let ids: Vec<&Value> = answer.2["items"].as_array().unwrap().iter().map(|one| &one["id"]).collect();
        assert_eq!(ids, [&json!(desk.backend.workspace)], "{unit}");
    }
    let (_, _, units) = desk.plane().call("GET", "/api/v1/business-units", &*key.token, None).await;
    let slugs: Vec<&Value> = units["items"].as_array().unwrap().iter().map(|unit| &unit["slug"]).collect();
    assert_eq!(slugs, ["default"]);
}

#[tokio::test]
async fn a_key_does_no_more_than_its_owner_may_today_and_sleeps_without_them() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k", "capability": "admin" })).await;
    let create = async || {
        let body = json!({ "name": "n", "environment": "dev", "repo_url": "https://git.example.com/x.git" });
        desk.plane().call("POST", "/api/v1/workspaces", &*key.token, body).await.0.as_u16()
    };
    assert_eq!(create().await, 201);
    desk.execute("UPDATE memberships SET role = 'operator' WHERE user_id = $1").await;
    assert_eq!(create().await, 403);
    assert_eq!(desk.believed(&key.token).await.0, 200);
    desk.execute("UPDATE users SET disabled_at = plumbline_now() WHERE id = $1").await;
    assert_eq!(desk.believed(&key.token).await.0, 401);
    desk.execute("UPDATE users SET disabled_at = NULL WHERE id = $1").await;
    assert_eq!(desk.believed(&key.token).await.0, 200);
    desk.execute("DELETE FROM memberships WHERE user_id = $1").await;
    let (status, detail) = desk.believed(&key.token).await;
    assert!(status == 401 && detail.contains("owner"), "{status} {detail}");
    // Whoever stands above all units acts in this one, but their key does not stand above them.
    desk.execute("UPDATE users SET is_superadmin = true WHERE id = $1").await;
    assert_eq!(desk.believed(&key.token).await.0, 200);
    let units = json!({ "slug": "made-by-key", "name": "x" });
    let (status, ..) = desk.plane().call("POST", "/api/v1/business-units", &*key.token, units).await;
    assert_eq!(status, StatusCode::FORBIDDEN);
}

#[tokio::test]
async fn a_key_of_an_archived_unit_or_of_before_a_restore_says_so() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k" })).await;
    let conn = desk.plane().db().conn().await.unwrap();
    conn.batch("UPDATE installation SET epoch = epoch + 1").await.unwrap();
    let (status, detail) = desk.believed(&key.token).await;
    assert!(status == 401 && detail.contains("restored"), "{status} {detail}");
    conn.batch(
        "UPDATE installation SET epoch = epoch - 1; UPDATE business_units SET archived_at = plumbline_now()",
    )
    .await
    .unwrap();
    let (status, detail) = desk.believed(&key.token).await;
    assert!(status == 403 && detail.contains("archived"), "{status} {detail}");
}

#[tokio::test]
async fn revoked_and_expired_keys_are_refused_and_get_no_new_token() {
    let desk = Desk::new().await;
    let revoked = desk.mint(json!({ "name": "k" })).await;
    for _ in 0..2 {
        let (status, _, view) = desk.keys("DELETE", &format!("/{}", revoked.id), Value::Null).await;
        assert!(status == StatusCode::OK && view["revoked_at"].is_string(), "{view}");
    }
    let expires_at = chrono::Utc::now() + chrono::TimeDelta::minutes(30);
    let expired = desk.mint(json!({ "name": "k", "expires_at": expires_at })).await;
    assert_eq!(desk.believed(&expired.token).await.0, 200);
    desk.plane().advance(HOUR).await;
    for (key, why) in [(&revoked, "revoked"), (&expired, "expired")] {
        let (status, detail) = desk.believed(&key.token).await;
        assert!(status == 401 && detail.contains(why), "{status} {detail}");
        for (verb, body) in [("regenerate", Value::Null), ("rotate", json!({}))] {
            let (status, _, problem) = desk.keys("POST", &format!("/{}/{verb}", key.id), body).await;
            assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "api-key-dead"), "{problem}");
        }
    }
    for token in ["plb_", "plb_x", &format!("plb_{}", "A".repeat(43)), &revoked.token[..46]] {
        assert_eq!(desk.believed(token).await.0, 401, "{token}");
    }
}

#[tokio::test]
async fn regenerating_kills_the_old_token_and_keeps_the_key() {
    let desk = Desk::new().await;
    let listed = json!([desk.backend.workspace]);
    let key = desk.mint(json!({ "name": "k", "capability": "plan", "workspace_ids": listed })).await;
    assert_eq!(desk.believed(&key.token).await.0, 200);
    let (status, _, made) = desk.keys("POST", &format!("/{}/regenerate", key.id), Value::Null).await;
    assert_eq!(status, StatusCode::OK, "{made}");
    let new = Key::of(&made);
    assert_eq!(
        (&new.id, &new.view["capability"], &new.view["workspace_ids"]),
        (&key.id, &json!("plan"), &listed)
    );
    assert_eq!(new.view["last_used_at"], Value::Null);
    assert_eq!(desk.believed(&key.token).await.0, 401);
    assert_eq!(desk.believed(&new.token).await.0, 200);
}

#[tokio::test]
async fn both_tokens_of_a_rotation_are_good_during_the_overlap_and_one_after_it() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k", "capability": "plan" })).await;
    let (status, _, made) =
        desk.keys("POST", &format!("/{}/rotate", key.id), json!({ "overlap_hours": 2 })).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
    let successor = Key::of(&made);
    let (_, _, old) = desk.keys("GET", &format!("/{}", key.id), Value::Null).await;
    assert_eq!(old["superseded_by_id"], successor.view["id"]);
    assert!(old["rotated_at"].is_string());
    assert_eq!((&made["name"], &made["capability"]), (&json!("k"), &json!("plan")));
    for token in [&key.token, &successor.token] {
        assert_eq!(desk.believed(token).await.0, 200);
    }
    let (status, _, problem) = desk.keys("POST", &format!("/{}/rotate", key.id), json!({})).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "api-key-rotated"));
    desk.plane().advance(3 * HOUR).await;
    assert_eq!(desk.believed(&key.token).await.0, 401);
    assert_eq!(desk.believed(&successor.token).await.0, 200);
}

#[tokio::test]
async fn a_rotation_never_lets_a_key_live_longer() {
    let desk = Desk::new().await;
    let expires_at = chrono::Utc::now() + chrono::TimeDelta::minutes(90);
    let key = desk.mint(json!({ "name": "k", "expires_at": expires_at })).await;
    let (_, _, made) =
        desk.keys("POST", &format!("/{}/rotate", key.id), json!({ "overlap_hours": 168 })).await;
    let (_, _, old) = desk.keys("GET", &format!("/{}", key.id), Value::Null).await;
    assert_eq!(old["expires_at"], key.view["expires_at"]);
    // The successor lives as long as the key would have, unless the request names another time.
    assert_eq!(made["expires_at"], key.view["expires_at"]);
    desk.plane().advance(2 * HOUR).await;
    assert_eq!(desk.believed(&key.token).await.0, 401);
    assert_eq!(desk.believed(&Key::of(&made).token).await.0, 401);
}

#[tokio::test]
async fn of_many_rotations_at_once_one_makes_a_successor() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k" })).await;
    let path = format!("/{}/rotate", key.id);
    let answers = futures::future::join_all((0..8).map(|_| desk.keys("POST", &path, json!({})))).await;
    let made = answers.iter().filter(|answer| answer.0 == StatusCode::CREATED).count();
    assert_eq!(made, 1);
    assert!(answers.iter().all(|answer| [201, 409].contains(&answer.0.as_u16())));
    let (_, _, all) = desk.keys("GET", "", Value::Null).await;
    assert_eq!(all["items"].as_array().unwrap().len(), 2);
}

#[tokio::test]
async fn a_confined_key_sees_and_changes_only_what_is_on_its_list() {
    let desk = Desk::new().await;
    let plane = desk.plane();
    let (own, beyond) =
        (desk.backend.workspace, insert_workspace(plane, desk.backend.unit, "runs_only").await);
    let key = desk.mint(json!({ "name": "k", "capability": "apply", "workspace_ids": [own, own] })).await;
    let mut runs = Vec::new();
    for workspace in [own, beyond] {
        let body = json!({ "workspace_id": workspace, "command": "plan" });
        let (status, _, run) = plane.call("POST", "/api/v1/runs", desk.admin.as_str(), body.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        runs.push(run["id"].as_str().unwrap().to_owned());
        let (status, _, answer) = plane.call("POST", "/api/v1/runs", &*key.token, body).await;
        let expected = if workspace == own { StatusCode::CREATED } else { StatusCode::NOT_FOUND };
        assert_eq!(status, expected, "{answer}");
    }
    let seen = async |path: &str, field: &str| {
        let (status, _, list) = plane.call("GET", path, &*key.token, None).await;
        assert_eq!(status, StatusCode::OK, "{list}");
        let items = list["items"].as_array().unwrap().iter();
        items.map(|one| one[field].as_str().unwrap().to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(seen("/api/v1/workspaces", "id").await, [own.to_string()]);
    let all_own = [own.to_string(), own.to_string()];
    assert_eq!(seen("/api/v1/runs", "workspace_id").await, all_own);
    assert!(seen(&format!("/api/v1/runs?workspace_id={beyond}"), "id").await.is_empty());
    for (run, expected) in runs.iter().zip([200, 404]) {
        let (status, ..) = plane.call("GET", &format!("/api/v1/runs/{run}"), &*key.token, None).await;
        assert_eq!(status.as_u16(), expected);
    }
    let (status, _, problem) = plane.call("GET", "/api/v1/tasks", &*key.token, None).await;
    assert!(
        status == StatusCode::FORBIDDEN && problem["detail"].as_str().unwrap().contains("list"),
        "{problem}"
    );
    // A body that is no request is refused as everywhere, and one that is too large as well.
    let (status, ..) = plane.call("POST", "/api/v1/runs", &*key.token, json!({ "workspace_id": 7 })).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY);
    let huge = json!({ "workspace_id": own, "command": "plan", "message": "x".repeat(2 << 20) });
    let (status, ..) = plane.call("POST", "/api/v1/runs", &*key.token, huge).await;
    assert_eq!(status, StatusCode::PAYLOAD_TOO_LARGE);
}

#[tokio::test]
async fn a_confined_key_whose_workspaces_are_gone_reaches_nothing() {
    let desk = Desk::new().await;
    let key = desk
        .mint(json!({ "name": "k", "capability": "admin", "workspace_ids": [desk.backend.workspace] }))
        .await;
    insert_workspace(desk.plane(), desk.backend.unit, "runs_only").await;
    let path = format!("/api/v1/workspaces/{}?force=true", desk.backend.workspace);
    let (status, _, answer) = desk.plane().call("DELETE", &path, desk.admin.as_str(), None).await;
    assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    let (status, _, list) = desk.plane().call("GET", "/api/v1/workspaces", &*key.token, None).await;
    assert_eq!((status, &list["items"]), (StatusCode::OK, &json!([])));
    let (_, _, view) = desk.keys("GET", &format!("/{}", key.id), Value::Null).await;
    assert_eq!(view["workspace_ids"], json!([]));
    // Its successor reaches as little.
    let (_, _, made) = desk.keys("POST", &format!("/{}/rotate", key.id), json!({})).await;
    let (_, _, list) = desk.plane().call("GET", "/api/v1/workspaces", &*Key::of(&made).token, None).await;
    assert_eq!(list["items"], json!([]));
}

#[tokio::test]
async fn terraform_takes_a_key_as_its_password_as_far_as_the_key_goes() {
    let desk = Desk::new().await;
    let backend = &desk.backend;
    let beyond = insert_workspace(desk.plane(), backend.unit, "runs_and_people").await;
    let apply =
        desk.mint(json!({ "name": "k", "capability": "apply", "workspace_ids": [backend.workspace] })).await;
    let plan = desk.mint(json!({ "name": "k", "capability": "plan" })).await;
    let (status, _, body) = backend.send_as(&apply.token, "POST", &backend.path(), state(1, "l", "a")).await;
    assert_eq!(status, StatusCode::OK, "{body:?}");
    let (status, _, read) = backend.send_as(&apply.token, "GET", &backend.path(), "").await;
    assert!(status == StatusCode::OK && !read.is_empty());
    let elsewhere = format!("/api/v1/state/{beyond}");
    for (method, body) in [("GET", String::new()), ("POST", state(1, "l", "a"))] {
        let refused = backend.send_as(&apply.token, method, &elsewhere, body.clone()).await;
        assert_eq!(refused.0, StatusCode::NOT_FOUND, "{method}");
        let refused = backend.send_as(&plan.token, method, &backend.path(), body).await;
        assert_eq!(refused.0, StatusCode::FORBIDDEN, "{method}");
    }
}

#[tokio::test]
async fn use_is_noted_at_most_once_a_minute() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k" })).await;
    let used = async || {
        assert_eq!(desk.believed(&key.token).await.0, 200);
        let (_, _, view) = desk.keys("GET", &format!("/{}", key.id), Value::Null).await;
        view["last_used_at"].as_str().unwrap().to_owned()
    };
    let first = used().await;
    desk.plane().advance(Duration::from_secs(20)).await;
    assert_eq!(used().await, first);
    desk.plane().advance(Duration::from_secs(50)).await;
    assert_ne!(used().await, first);
}

#[tokio::test]
async fn what_a_key_does_is_recorded_with_its_owner_and_its_id() {
    let desk = Desk::new().await;
    let key = desk.mint(json!({ "name": "k", "capability": "plan" })).await;
    let body = json!({ "workspace_id": desk.backend.workspace, "command": "plan" });
    let (status, _, run) = desk.plane().call("POST", "/api/v1/runs", &*key.token, body).await;
    assert_eq!(status, StatusCode::CREATED, "{run}");
    let (_, _, log) =
        desk.plane().call("GET", "/api/v1/audit?action=run.trigger", desk.admin.as_str(), None).await;
    let entry = &log["items"][0];
    assert_eq!(entry["user_id"], desk.owner.to_string());
    assert_eq!(entry["details"]["api_key_id"], key.id.as_str());
}

#[tokio::test]
async fn keys_that_cannot_be_are_refused_and_leave_nothing() {
    let desk = Desk::new().await;
    let other = desk.plane().unit("other-unit").await;
    let foreign = insert_workspace(desk.plane(), other, "runs_only").await;
    let key = desk.mint(json!({ "name": "k" })).await;
    let before = desk.plane().every_row().await;
    let rotate = format!("/{}/rotate", key.id);
    for (below, body, wrong) in [
        ("", json!({ "name": " " }), "name"),
        ("", json!({ "name": "k", "capability": "root" }), "capability"),
        ("", json!({ "name": "k", "workspace_ids": [] }), "workspace_ids"),
        ("", json!({ "name": "k", "workspace_ids": [foreign] }), "workspace_ids"),
        ("", json!({ "name": "k", "workspace_ids": [desk.backend.workspace, foreign] }), "workspace_ids"),
        ("", json!({ "name": "k", "expires_at": "2020-01-01T00:00:00Z" }), "expires_at"),
        ("", json!({ "name": "k", "expires_at": "soon" }), "expires_at"),
        ("", json!({ "name": "k", "user_id": desk.owner }), "user_id"),
        (&*rotate, json!({ "overlap_hours": 169 }), "overlap_hours"),
        (&*rotate, json!({ "overlap_hours": -1 }), "overlap_hours"),
        (&*rotate, json!({ "expires_at": "2020-01-01T00:00:00Z" }), "expires_at"),
    ] {
        let (status, _, problem) = desk.keys("POST", below, body.clone()).await;
        assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{body}: {problem}");
        assert!(problem.to_string().contains(wrong), "{body}: {problem}");
    }
    assert_eq!(desk.plane().every_row().await, before);
    // A superadmin above all units must say in which one.
    let superadmin = desk.plane().admin_token().await;
    let all = [("x-business-unit", "all")];
    let body = json!({ "name": "k" });
    let answer = desk.plane().call_with("POST", "/api/v1/api-keys", &*superadmin, body, &all).await;
    assert_eq!((answer.0, slug(&answer.2)), (StatusCode::BAD_REQUEST, "unit-required"));
}
