//! Tunables of the platform: who reads and writes them, what they may be, and that they take effect.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use crate::plane::{ADMIN_EMAIL, Answer, PASSWORD, TestPlane, slug};

const ALL: &str = "/api/v1/runtime-config";
const MINUTES: &str = "/api/v1/runtime-config/auth.access_token_expire_minutes";
const SECRET: &str = "/api/v1/runtime-config/auth.oidc.client_secret";
const ANY: &[(&str, &str)] = &[("if-match", "*")];

async fn set(plane: &TestPlane, token: &str, path: &str, value: impl Into<Value>) -> Answer {
    plane.call_with("PUT", path, token, json!({ "value": value.into() }), ANY).await
}

async fn get(plane: &TestPlane, token: &str, path: &str) -> Value {
    let (status, _, body) = plane.call("GET", path, token, None).await;
    assert_eq!(status, StatusCode::OK, "{path}: {body}");
    body
}

/// Signs in and gives how long the access token lives, and until when the session does, both in seconds from now.
async fn lives(plane: &TestPlane) -> (i64, i64) {
    const EXPIRES: &str = "
        SELECT extract(epoch FROM expires_at - plumbline_now())::bigint FROM sessions ORDER BY id DESC LIMIT 1";
    let body = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let (_, _, pair) = plane.call("POST", "/api/v1/auth/token", None, body).await;
    let conn = plane.db().conn().await.unwrap();
    (pair["expires_in"].as_i64().unwrap(), conn.query_one(EXPIRES, &[]).await.unwrap().get(0))
}

#[tokio::test]
async fn a_tunable_is_read_changed_and_set_back_and_each_is_recorded() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let (status, headers, before) = plane.call("GET", MINUTES, &*admin, None).await;
    assert_eq!((status, &before["value"], &before["default"]), (StatusCode::OK, &json!(480), &json!(480)));
    assert_eq!(
        (&before["type"], &before["min"], &before["max"]),
        (&json!("duration"), &json!(5), &json!(1440))
    );
    assert_eq!(before["configured"], false);
    assert_eq!(headers["etag"], "\"v0\"");

    let (status, headers, changed) = set(&plane, &admin, MINUTES, 60).await;
    assert_eq!((status, &changed["value"], &changed["default"]), (StatusCode::OK, &json!(60), &json!(480)));
    assert_eq!(headers["etag"], "\"v1\"");
    assert!(changed["updated_by"].is_string() && changed["updated_at"].is_string(), "{changed}");
    assert_eq!(get(&plane, &admin, ALL).await["auth.access_token_expire_minutes"], changed);

    // The same value again is no change.
    assert_eq!(set(&plane, &admin, MINUTES, 60).await.1["etag"], "\"v1\"");
    assert_eq!(plane.call_with("DELETE", MINUTES, &*admin, None, ANY).await.0, StatusCode::NO_CONTENT);
    let after = get(&plane, &admin, MINUTES).await;
    assert_eq!(
        (&after["value"], &after["configured"], &after["version"]),
        (&json!(480), &json!(false), &json!(2))
    );

    let history = get(&plane, &admin, &format!("{MINUTES}/history")).await;
    let told: Vec<_> = history["items"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["change"].as_str().unwrap(), one["old_value"].clone(), one["new_value"].clone()))
        .collect();
    assert_eq!(told, [("deleted", json!(60), Value::Null), ("set", Value::Null, json!(60))]);
    assert_eq!(history["items"][0]["changed_by"], changed["updated_by"]);

    let log = get(&plane, &admin, "/api/v1/audit").await;
    let entries: Vec<_> = log["items"].as_array().unwrap().iter().take(2).collect();
    assert_eq!(
        (&entries[0]["action"], &entries[1]["action"]),
        (&json!("config.delete"), &json!("config.write"))
    );
    assert_eq!(entries[1]["resource_id"], "auth.access_token_expire_minutes");
    assert_eq!(entries[1]["details"]["changes"][0]["new_value"], 60);
}

#[tokio::test]
async fn values_keep_to_their_types_and_bounds_and_unknown_keys_do_not_exist() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for refused in
        [json!(0), json!(4), json!(1441), json!(1.5), json!("60"), json!(null), json!([]), json!({})]
    {
        let (status, _, problem) = set(&plane, &admin, MINUTES, refused.clone()).await;
        assert_eq!(
            (status, slug(&problem)),
            (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"),
            "{refused}"
        );
        assert_eq!(problem["field"], "value");
    }
    let provider = format!("{ALL}/auth.provider");
    assert_eq!(set(&plane, &admin, &provider, "ldap").await.0, StatusCode::UNPROCESSABLE_ENTITY);
    // A unit's setting is none of the platform's, and neither is anything made up.
    for unknown in ["checkov.mode", "slack.bot_token", "worker.poll_interval_seconds", "x", "auth"] {
        let path = format!("{ALL}/{unknown}");
        assert_eq!(set(&plane, &admin, &path, "warn").await.0, StatusCode::NOT_FOUND, "{unknown}");
        for path in [path.clone(), format!("{path}/history")] {
            assert_eq!(plane.call("GET", &path, &*admin, None).await.0, StatusCode::NOT_FOUND, "{path}");
        }
        assert_eq!(plane.call_with("DELETE", &path, &*admin, None, ANY).await.0, StatusCode::NOT_FOUND);
    }
}

#[tokio::test]
async fn admins_read_tunables_and_superadmins_change_them() {
    let plane = TestPlane::start().await;
    let superadmin = plane.admin_token().await;
    assert_eq!(set(&plane, &superadmin, SECRET, "planted-oidc-client").await.0, StatusCode::OK);
    let before = plane.every_row().await;
    for (role, reads) in [(Role::Viewer, 403), (Role::Operator, 403), (Role::Admin, 200)] {
        let token = plane.user(role).await;
        assert_eq!(plane.call("GET", ALL, &*token, None).await.0, reads, "{role:?}");
        assert_eq!(plane.call("GET", MINUTES, &*token, None).await.0, reads, "{role:?}");
        let history = format!("{MINUTES}/history");
        for answer in [
            set(&plane, &token, MINUTES, 60).await,
            plane.call_with("DELETE", MINUTES, &*token, None, ANY).await,
            plane.call("GET", &history, &*token, None).await,
        ] {
            assert_eq!(answer.0, StatusCode::FORBIDDEN, "{role:?}: {}", answer.2);
        }
    }
    assert_eq!(plane.every_row().await["platform_config"], before["platform_config"]);

    // Of the platform's secrets a unit's admin learns that they are there.
    let admin = plane.user(Role::Admin).await;
    let seen = get(&plane, &admin, SECRET).await;
    assert_eq!(
        (&seen["configured"], seen.get("masked_tail"), &seen["value"]),
        (&json!(true), None, &Value::Null)
    );
    assert_eq!(get(&plane, &superadmin, SECRET).await["masked_tail"], "...ient");
}

#[tokio::test]
async fn of_a_secret_nothing_is_kept_but_what_was_done() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let (first, second) = ("planted-first-secret", "planted-second-secret");
    for secret in [first, second] {
        let (status, _, answer) = set(&plane, &admin, SECRET, secret).await;
        assert_eq!(status, StatusCode::OK, "{answer}");
        assert!(!answer.to_string().contains("planted"), "{answer}");
    }
    assert_eq!(plane.call_with("DELETE", SECRET, &*admin, None, ANY).await.0, StatusCode::NO_CONTENT);
    assert_eq!(set(&plane, &admin, SECRET, first).await.0, StatusCode::OK);

    let history = get(&plane, &admin, &format!("{SECRET}/history")).await;
    let items = history["items"].as_array().unwrap();
    let told: Vec<_> = items.iter().map(|one| one["change"].as_str().unwrap()).collect();
    assert_eq!(told, ["set", "deleted", "replaced", "set"]);
    assert!(items.iter().all(|one| one.get("old_value").is_none() && one.get("new_value").is_none()));
    holds_none_of(&plane, &[first, second]).await;
}

/// No table holds one of the secrets, as it is, encoded, or as a digest.
pub(super) async fn holds_none_of(plane: &TestPlane, secrets: &[&str]) {
    use base64::Engine as _;
    use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
    let rows = plane.every_row().await;
    assert!(rows["audit_entries"].contains("config."), "the writes are there");
    for secret in secrets {
        let digest = plumbline_core::digest::Sha256Digest::of(secret.as_bytes()).to_string();
        let forms = [
            (*secret).to_owned(),
            hex::encode(secret),
            STANDARD.encode(secret).trim_end_matches('=').to_owned(),
            URL_SAFE_NO_PAD.encode(secret),
            digest[..8].to_owned(),
        ];
        for (table, text) in &rows {
            for form in &forms {
                assert!(!text.contains(form.as_str()), "{table} holds {secret} as {form}");
            }
        }
    }
}

#[tokio::test]
async fn of_many_edits_of_one_version_one_wins_and_none_is_lost() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    let edit = |minutes: i64| {
        let (plane, admin) = (&plane, &admin);
        async move {
            let seen = [("if-match", "\"v0\"")];
            plane.call_with("PUT", MINUTES, admin.as_str(), json!({ "value": minutes }), &seen).await
        }
    };
    let answers = futures::future::join_all((10..18).map(edit)).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.0 == StatusCode::OK);
    assert_eq!(won.len(), 1);
    for (status, _, problem) in lost {
        assert_eq!(
            (status, slug(&problem)),
            (StatusCode::PRECONDITION_FAILED, "changed-meanwhile"),
            "{problem}"
        );
        assert_eq!(problem["current_etag"], "\"v1\"");
    }
    assert_eq!(get(&plane, &admin, MINUTES).await["value"], won[0].2["value"]);
    let (status, _, problem) = plane.call("PUT", MINUTES, &*admin, json!({ "value": 60 })).await;
    assert_eq!((status, slug(&problem)), (StatusCode::PRECONDITION_REQUIRED, "precondition-required"));
    // A version that was taken away does not come again.
    let seen = [("if-match", "\"v1\"")];
    assert_eq!(plane.call_with("DELETE", MINUTES, &*admin, None, &seen).await.0, StatusCode::NO_CONTENT);
    assert_eq!(edit(20).await.0, StatusCode::PRECONDITION_FAILED);
}

#[tokio::test]
async fn the_lives_of_tokens_follow_their_tunables_at_the_next_sign_in() {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    assert_eq!(lives(&plane).await.0, 8 * 3600);
    assert_eq!(set(&plane, &admin, MINUTES, 30).await.0, StatusCode::OK);
    let hours = format!("{ALL}/auth.refresh_token_expire_hours");
    assert_eq!(set(&plane, &admin, &hours, 2).await.0, StatusCode::OK);
    let (access, refresh) = lives(&plane).await;
    assert_eq!(access, 30 * 60);
    assert!((7190..=7200).contains(&refresh), "{refresh}");

    let body = json!({ "email": ADMIN_EMAIL, "password": PASSWORD });
    let (_, _, pair) = plane.call("POST", "/api/v1/auth/token", None, body).await;
    assert_eq!(set(&plane, &admin, MINUTES, 20).await.0, StatusCode::OK);
    let body = json!({ "refresh_token": pair["refresh_token"] });
    let (_, _, next) = plane.call("POST", "/api/v1/auth/refresh", None, body).await;
    assert_eq!(next["expires_in"], 20 * 60);
    plane.advance(Duration::from_secs(20 * 60 + 1)).await;
    let old = next["access_token"].as_str().unwrap();
    assert_eq!(plane.call("GET", "/api/v1/me", old, None).await.0, StatusCode::UNAUTHORIZED);
    // Those that were given out before keep their life.
    assert_eq!(plane.call("GET", "/api/v1/me", pair["access_token"].as_str(), None).await.0, StatusCode::OK);
}

#[tokio::test]
async fn new_passwords_are_hashed_at_the_cost_that_is_set() {
    let plane = TestPlane::start().await;
    let conn = plane.db().conn().await.unwrap();
    const SET: &str = "
        INSERT INTO platform_config (key, id, value, version) VALUES ('auth.bcrypt_cost', $1, $2, 1)";
    let id: uuid::Uuid = plane.deps.ids.mint();
    conn.execute(SET, &[&id, &json!(10)]).await.unwrap();
    drop(conn);
    plane.admin_token().await;
    let conn = plane.db().conn().await.unwrap();
    let hash: String = conn.query_one("SELECT password_hash FROM users", &[]).await.unwrap().get(0);
    assert!(hash.starts_with("$2b$10$"), "{hash}");
}
