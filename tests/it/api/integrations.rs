//! Integrations of a business unit: typed fields, masked secrets, and nothing of anybody else's.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::config::{INTEGRATIONS, registry, service};
use plumbline_core::db::Query as _;
use plumbline_core::ids::BusinessUnitId;
use plumbline_core::secrets::{Domain, Place};
use serde_json::{Value, json};
use uuid::Uuid;

use super::config::holds_none_of;
use crate::plane::{Answer, TestPlane, slug};

const ANY: &[(&str, &str)] = &[("if-match", "*")];

fn path(name: &str) -> String {
    format!("/api/v1/integrations/{name}")
}

async fn put(plane: &TestPlane, token: &str, name: &str, change: Value) -> Answer {
    plane.call_with("PUT", &path(name), token, change, ANY).await
}

async fn get(plane: &TestPlane, token: &str, name: &str) -> Value {
    let (status, _, body) = plane.call("GET", &path(name), token, None).await;
    assert_eq!(status, StatusCode::OK, "{name}: {body}");
    body
}

/// A change of every field of every integration.
pub(super) fn everything(secret: impl Fn(&str) -> String) -> Vec<(&'static str, Value)> {
    vec![
        ("checkov", json!({ "mode": "warn" })),
        (
            "opa",
            json!({ "mode": "enforce", "use_bundled": false, "bundled_severity": "warn", "git_severity": "info",
                        "repo_url": "https://git.example.com/policies.git", "repo_ref": "v2", "repo_dir": "rego/prod" }),
        ),
        ("infracost", json!({ "api_key": secret("infracost"), "currency": "EUR" })),
        (
            "slack",
            json!({ "bot_token": secret("slack-bot"), "channel_id": "C0123", "channel_name": "infra",
                          "team_name": "acme", "webhook_url": format!("https://hooks.example.com/{}", secret("hook")) }),
        ),
        (
            "smtp",
            json!({ "host": "mail.example.com", "port": 2525, "from": "plumbline@example.com",
                         "to": "a@example.com, b@example.com", "username": "plumbline", "password": secret("smtp") }),
        ),
        ("webhook", json!({ "secret": secret("webhook-deliveries"), "github_org": "acme" })),
        ("infra-repo", json!({ "repo_url": "https://git.example.com/infra.git" })),
        ("notification", json!({ "webhook_url": format!("https://events.example.com/{}", secret("event")) })),
    ]
}

fn is_secret(field: &Value) -> bool {
    field.get("configured").is_some()
}

#[tokio::test]
async fn every_field_of_every_integration_is_set_read_and_set_back() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let all = everything(|what| format!("planted-{what}-1234"));
    assert_eq!(all.len(), INTEGRATIONS.len());
    for (name, change) in &all {
        let before = get(&plane, &admin, name).await;
        let fields = INTEGRATIONS.iter().find(|one| one.name == *name).unwrap().fields.len();
        assert_eq!(change.as_object().unwrap().len(), fields, "{name} has every field");
        let (status, headers, after) = put(&plane, &admin, name, change.clone()).await;
        assert_eq!(status, StatusCode::OK, "{name}: {after}");
        assert_eq!(headers["etag"], format!("\"v{fields}\"").as_str());
        assert_eq!(after, get(&plane, &admin, name).await, "{name}");
        for (field, value) in change.as_object().unwrap() {
            if is_secret(&after[field]) {
                assert_eq!(
                    after[field],
                    json!({ "configured": true, "masked_tail": "...1234" }),
                    "{name}.{field}"
                );
                assert_eq!(before[field], json!({ "configured": false, "masked_tail": null }));
            } else {
                assert_eq!(&after[field], value, "{name}.{field}");
            }
        }
        // The same once more changes nothing but secrets, which nobody compares.
        let secrets = change.as_object().unwrap().keys().filter(|field| is_secret(&after[*field])).count();
        let (_, headers, _) = put(&plane, &admin, name, change.clone()).await;
        assert_eq!(headers["etag"], format!("\"v{}\"", fields + secrets).as_str(), "{name}");

        assert_eq!(
            plane.call_with("DELETE", &path(name), &*admin, None, ANY).await.0,
            StatusCode::NO_CONTENT
        );
        let mut reset = get(&plane, &admin, name).await;
        for stamp in ["updated_at", "updated_by"] {
            reset[stamp] = before[stamp].clone();
        }
        assert_eq!(reset, before, "{name}");
    }
    let (_, _, log) = plane.call("GET", "/api/v1/audit?limit=200", &*admin, None).await;
    let count = |action: &str| {
        log["items"].as_array().unwrap().iter().filter(|entry| entry["action"] == action).count()
    };
    assert_eq!((count("config.write"), count("config.delete")), (13, 8), "8, and 5 with secrets once more");
}

#[tokio::test]
async fn absent_fields_stay_null_ones_go_back_and_defaults_are_those_of_the_design() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    assert_eq!(get(&plane, &admin, "checkov").await["mode"], "enforce");
    assert_eq!(get(&plane, &admin, "opa").await["mode"], "off");
    assert_eq!(get(&plane, &admin, "smtp").await["port"], 587);
    put(&plane, &admin, "slack", json!({ "bot_token": "xoxb-planted-1234", "channel_id": "C1" })).await;
    let (_, _, after) = put(&plane, &admin, "slack", json!({ "channel_id": "C2" })).await;
    assert_eq!((&after["channel_id"], &after["bot_token"]["configured"]), (&json!("C2"), &json!(true)));
    let (_, _, after) = put(&plane, &admin, "slack", json!({ "bot_token": null })).await;
    assert_eq!((&after["channel_id"], &after["bot_token"]["configured"]), (&json!("C2"), &json!(false)));
    let (_, _, after) = put(&plane, &admin, "slack", json!({ "bot_token": "short-one" })).await;
    assert_eq!(
        after["bot_token"],
        json!({ "configured": true, "masked_tail": null }),
        "nothing of a short one"
    );
}

#[tokio::test]
async fn a_wrong_field_is_named_and_nothing_of_the_change_is_kept() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    for (name, change, field) in [
        ("checkov", json!({ "mode": "fail" }), "mode"),
        ("checkov", json!({ "mode": "warn", "modus": "warn" }), "modus"),
        ("opa", json!({ "mode": "warn", "use_bundled": "yes" }), "use_bundled"),
        ("opa", json!({ "repo_url": "file:///etc" }), "repo_url"),
        ("opa", json!({ "repo_dir": "../.." }), "repo_dir"),
        ("smtp", json!({ "host": "mail.example.com", "port": 0 }), "port"),
        ("smtp", json!({ "from": "a@b\r\nBcc: c@d" }), "from"),
        ("webhook", json!({ "github_org": "acme", "secret": "planted-short" }), "secret"),
        ("slack", json!({ "webhook_url": "http://hooks.example.com/planted" }), "webhook_url"),
        ("infracost", json!({ "api_key": 7 }), "api_key"),
        ("infracost", json!({ "api_key": { "configured": true, "masked_tail": "...1234" } }), "api_key"),
    ] {
        let (status, _, problem) = put(&plane, &admin, name, change.clone()).await;
        assert_eq!((status, slug(&problem)), (StatusCode::UNPROCESSABLE_ENTITY, "invalid-field"), "{change}");
        assert_eq!(problem["field"], field, "{problem}");
        assert!(!problem.to_string().contains("planted"), "{problem}");
    }
    assert_eq!(plane.every_row().await["unit_config"], "");
    let (status, ..) = plane.call("GET", &path("teams"), &*admin, None).await;
    assert_eq!(status, StatusCode::NOT_FOUND);
}

#[tokio::test]
async fn operators_read_and_admins_write_in_one_named_unit() {
    let plane = TestPlane::start().await;
    let superadmin = plane.admin_token().await;
    for (role, reads, writes) in
        [(Role::Viewer, 403, 403), (Role::Operator, 200, 403), (Role::Admin, 200, 200)]
    {
        let token = plane.user(role).await;
        for (name, change) in everything(|what| format!("planted-{what}-1234")) {
            let what = format!("{name} as {role:?}");
            assert_eq!(plane.call("GET", &path(name), &*token, None).await.0, reads, "{what}");
            let history = format!("{}/history", path(name));
            assert_eq!(plane.call("GET", &history, &*token, None).await.0, reads, "{what}");
            assert_eq!(put(&plane, &token, name, change).await.0, writes, "{what}");
            let deleted = plane.call_with("DELETE", &path(name), &*token, None, ANY).await.0;
            assert_eq!(deleted, if writes == 200 { 204 } else { writes }, "{what}");
        }
    }
    // In all units at once there is nothing to read or write.
    for (method, body) in [("GET", None), ("PUT", Some(json!({ "mode": "off" }))), ("DELETE", None)] {
        let (status, _, problem) = plane.call_with(method, &path("checkov"), &*superadmin, body, ANY).await;
        assert_eq!((status, slug(&problem)), (StatusCode::BAD_REQUEST, "unit-required"), "{method}");
    }
}

#[tokio::test]
async fn a_unit_has_what_it_has_set_and_never_what_another_unit_or_the_platform_has() {
    let plane = TestPlane::start().await;
    let (blue, red) = (plane.unit("blue").await, plane.unit("red").await);
    let (of_blue, of_red) = (plane.member(blue, Role::Admin).await, plane.member(red, Role::Admin).await);
    let untouched = {
        let mut all = Vec::new();
        for integration in INTEGRATIONS {
            all.push(get(&plane, &of_red, integration.name).await);
        }
        all
    };
    for (name, change) in everything(|what| format!("planted-{what}-1234")) {
        assert_eq!(put(&plane, &of_blue, name, change).await.0, StatusCode::OK);
    }
    // Not even where somebody has put values of the same names among the platform's.
    let sealed_elsewhere = planted_in_the_platform(&plane).await;
    for (integration, before) in INTEGRATIONS.iter().zip(&untouched) {
        assert_eq!(&get(&plane, &of_red, integration.name).await, before);
        let history = format!("{}/history", path(integration.name));
        let (_, _, history) = plane.call("GET", &history, &*of_red, None).await;
        assert_eq!(history["items"], json!([]));
        let values =
            service::of_unit(&plane.db().conn().await.unwrap(), red, &integration.settings()).await.unwrap();
        for (field, setting) in integration.fields {
            let default = setting.default_value(&plane.deps.limits);
            assert_eq!(values.get(setting, &plane.deps.limits), default, "{field}");
            assert_eq!(values.secret(setting, &plane.deps.keys).unwrap(), None, "{field}");
        }
    }
    // Taking a value away leads to the registry's default, and not to anybody's value either.
    put(&plane, &of_red, "slack", json!({ "bot_token": "red-token-5678" })).await;
    put(&plane, &of_red, "slack", json!({ "bot_token": null })).await;
    assert_eq!(get(&plane, &of_red, "slack").await["bot_token"]["configured"], false);

    // A sealed value that is moved to another unit, or from the platform, opens nowhere else.
    put(&plane, &of_red, "slack", json!({ "bot_token": "red-token-5678" })).await;
    for stolen in [sealed_of(&plane, blue).await, sealed_elsewhere] {
        const MOVE: &str =
            "UPDATE unit_config SET sealed = $1 WHERE business_unit_id = $2 AND key = 'slack.bot_token'";
        let conn = plane.db().conn().await.unwrap();
        assert_eq!(conn.execute(MOVE, &[&stolen, &red]).await.unwrap(), 1);
        let values = service::of_unit(&conn, red, &[&registry::SLACK_BOT_TOKEN]).await.unwrap();
        let opened = values.secret(&registry::SLACK_BOT_TOKEN, &plane.deps.keys);
        assert!(opened.unwrap_err().to_string().contains("another row"));
        drop(conn);
        let seen = get(&plane, &of_red, "slack").await;
        assert_eq!(seen["bot_token"], json!({ "configured": true, "masked_tail": null }));
    }
}

/// Rows of the units' names in the platform's table, which no route can make.
async fn planted_in_the_platform(plane: &TestPlane) -> String {
    const PLANT: &str =
        "INSERT INTO platform_config (key, id, value, sealed, version) VALUES ($1, $2, $3, $4, 1)";
    let conn = plane.db().conn().await.unwrap();
    let mut last = String::new();
    for (_, setting) in INTEGRATIONS.iter().flat_map(|one| one.fields) {
        let id: Uuid = plane.deps.ids.mint();
        let place = Place { table: "platform_config", column: "sealed", row: id };
        let sealed = plane.deps.keys.seal(Domain::Config, place, "planted-for-everybody").unwrap();
        let value = (!setting.is_secret()).then(|| json!("planted"));
        let secret = setting.is_secret().then_some(sealed);
        conn.execute(PLANT, &[&setting.name, &id, &value, &secret]).await.unwrap();
        last = secret.unwrap_or(last);
    }
    last
}

async fn sealed_of(plane: &TestPlane, unit: BusinessUnitId) -> String {
    const SEALED: &str =
        "SELECT sealed FROM unit_config WHERE business_unit_id = $1 AND key = 'slack.bot_token'";
    plane.db().conn().await.unwrap().query_one(SEALED, &[&unit]).await.unwrap().get(0)
}

#[tokio::test]
async fn of_two_edits_of_one_version_the_second_is_refused_and_its_secret_is_not_kept() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let edit = |n: usize| {
        let (plane, admin) = (&plane, &admin);
        async move {
            let change =
                json!({ "bot_token": format!("xoxb-planted-{n}-123{n}"), "channel_id": format!("C{n}") });
            plane.call_with("PUT", &path("slack"), admin.as_str(), change, &[("if-match", "\"v0\"")]).await
        }
    };
    let answers = futures::future::join_all((0..6).map(edit)).await;
    let (won, lost): (Vec<_>, Vec<_>) = answers.into_iter().partition(|answer| answer.0 == StatusCode::OK);
    assert_eq!(won.len(), 1);
    assert!(lost.iter().all(|answer| answer.0 == StatusCode::PRECONDITION_FAILED));
    let now = get(&plane, &admin, "slack").await;
    assert_eq!(now, won[0].2, "token and channel are of one edit");
    let n = now["channel_id"].as_str().unwrap().trim_start_matches('C');
    assert_eq!(now["bot_token"]["masked_tail"], format!("...123{n}"));

    let (_, _, history) = plane.call("GET", &format!("{}/history", path("slack")), &*admin, None).await;
    assert_eq!(history["items"].as_array().unwrap().len(), 2);
    // An edit of another field since counts as well: the two are seen together.
    put(&plane, &admin, "slack", json!({ "channel_name": "infra" })).await;
    let seen = [("if-match", "\"v2\"")];
    let stale = plane.call_with("DELETE", &path("slack"), &*admin, None, &seen).await;
    assert_eq!((stale.0, &stale.2["current_etag"]), (StatusCode::PRECONDITION_FAILED, &json!("\"v3\"")));
    let headers = [("if-none-match", "\"v3\"")];
    let same = plane.call_with("GET", &path("slack"), &*admin, None, &headers).await;
    assert_eq!(same.0, StatusCode::NOT_MODIFIED);
}

#[tokio::test]
async fn no_table_no_history_and_no_answer_holds_a_secret() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let secret = |what: &str| format!("planted-{what}-before");
    let later = |what: &str| format!("planted-{what}-after-1");
    for (name, change) in everything(secret).into_iter().chain(everything(later)) {
        let (status, _, answer) = put(&plane, &admin, name, change).await;
        assert_eq!(status, StatusCode::OK);
        assert!(!answer.to_string().contains("planted"), "{answer}");
    }
    for integration in INTEGRATIONS {
        for path in [path(integration.name), format!("{}/history", path(integration.name))] {
            let (_, _, answer) = plane.call("GET", &path, &*admin, None).await;
            assert!(!answer.to_string().contains("planted"), "{answer}");
        }
    }
    let (_, _, history) = plane.call("GET", &format!("{}/history", path("smtp")), &*admin, None).await;
    let of_password: Vec<_> =
        history["items"].as_array().unwrap().iter().filter(|one| one["key"] == "smtp.password").collect();
    assert_eq!(of_password.len(), 2);
    assert_eq!((&of_password[0]["change"], &of_password[1]["change"]), (&json!("replaced"), &json!("set")));
    for name in ["infracost", "slack-bot", "hook", "smtp", "webhook-deliveries", "event"] {
        holds_none_of(&plane, &[&secret(name), &later(name)]).await;
    }
}
