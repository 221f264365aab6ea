//! `plumb config`, `plumb integration` and `plumb admin rotate-jwt-secret`.

use serde_json::{Value, json};

use super::server::{FakeServer, Plumb, Reply};

const KEY: &str = "auth.access_token_expire_minutes";

fn tunable(kind: &str, value: Value) -> Value {
    json!({ "type": kind, "value": value, "default": 480, "min": 5, "max": 1440, "description": "Life of a token.",
            "configured": true, "masked_tail": "...1234", "version": 3, "updated_by": null, "updated_at": null })
}

fn slack() -> Value {
    json!({ "bot_token": { "configured": true, "masked_tail": "...1234" }, "channel_id": "C0123", "port": 1,
            "use": true, "team_name": null, "updated_by": null, "updated_at": null })
}

#[tokio::test]
async fn a_tunable_is_set_against_the_version_that_was_seen_with_its_own_type() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = format!("/runtime-config/{KEY}");
    let seen = Reply::json(&tunable("duration", json!(480))).header("etag", "\"v3\"");
    server.on("GET", &path, [seen]);
    server.on("PUT", &path, [Reply::json(&tunable("duration", json!(60)))]);
    server.on("DELETE", &path, [Reply::empty(204)]);

    let set = plumb.run(&["config", "set", KEY, "60"]).await;
    let wrong = plumb.run(&["config", "set", KEY, "an hour"]).await;
    let got = plumb.run(&["config", "get", KEY]).await;
    let unset = plumb.run(&["config", "unset", KEY]).await;

    assert_eq!((set.code, wrong.code, got.code, unset.code), (0, 2, 0, 0), "{set:?} {wrong:?} {unset:?}");
    let asked = server.asked("PUT", &path);
    assert_eq!(
        (asked.len(), &asked[0].body, asked[0].header("if-match")),
        (1, &json!({ "value": 60 }), Some("\"v3\""))
    );
    assert!(got.stdout.contains("480") && got.stdout.contains("5 to 1440"), "{got:?}");
    assert_eq!(server.asked("DELETE", &path)[0].header("if-match"), Some("\"v3\""));
}

#[tokio::test]
async fn a_secret_comes_from_stdin_or_a_file_and_never_from_the_command_line() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let path = "/runtime-config/auth.oidc.client_secret";
    server.on("GET", path, [Reply::json(&tunable("secret", Value::Null)).header("etag", "\"v3\"")]);
    server.on("PUT", path, [Reply::json(&tunable("secret", Value::Null))]);
    server.on("GET", "/integrations/slack", [Reply::json(&slack()).header("etag", "\"v7\"")]);
    server.on("PUT", "/integrations/slack", [Reply::json(&slack())]);
    let file = plumb.config().join("secret");
    std::fs::write(&file, "planted-from-a-file\n").expect("written");
    let named = format!("bot_token={}", file.display());

    let refused = [
        plumb.run(&["config", "set", "auth.oidc.client_secret", "planted-in-the-open"]).await,
        plumb.run(&["integration", "set", "slack", "bot_token=planted-in-the-open"]).await,
        plumb.run(&["integration", "set", "slack", "bot_tokn=planted-in-the-open"]).await,
    ];
    for ran in refused {
        assert_eq!(ran.code, 2, "{ran:?}");
        assert!(!ran.stderr.contains("planted"), "{ran:?}");
    }
    assert!(server.asked("PUT", path).is_empty() && server.asked("PUT", "/integrations/slack").is_empty());

    let set = ["config", "set", "auth.oidc.client_secret", "--stdin"];
    let piped = plumb.run_with(&set, "planted-on-stdin\n").await;
    let slack_set = ["integration", "set", "slack", "channel_id=C2", "--secret", "bot_token"];
    let with_secret = plumb.run_with(&slack_set, "planted-for-slack\n").await;
    let from_file = plumb.run(&["integration", "set", "slack", "--secret-file", &named]).await;

    for ran in [&piped, &with_secret, &from_file] {
        assert_eq!(ran.code, 0, "{ran:?}");
        assert!(!ran.stdout.contains("planted") && !ran.stderr.contains("planted"), "{ran:?}");
    }
    assert_eq!(server.asked("PUT", path)[0].body, json!({ "value": "planted-on-stdin" }));
    let sent: Vec<_> =
        server.asked("PUT", "/integrations/slack").iter().map(|asked| asked.body.clone()).collect();
    let first = json!({ "channel_id": "C2", "bot_token": "planted-for-slack" });
    assert_eq!(sent, [first, json!({ "bot_token": "planted-from-a-file" })]);
}

#[tokio::test]
async fn an_integration_is_shown_masked_and_its_fields_keep_their_types() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    server.on("GET", "/integrations/slack", [Reply::json(&slack()).header("etag", "\"v7\"")]);
    server.on("PUT", "/integrations/slack", [Reply::json(&slack())]);
    server.on("DELETE", "/integrations/slack", [Reply::empty(204)]);
    let change =
        json!({ "key": "slack.bot_token", "change": "replaced", "changed_by": "ada", "changed_at": null });
    server.on("GET", "/integrations/slack/history", [Reply::json(&json!({ "items": [change] }))]);

    let shown = plumb.run(&["integration", "show", "slack"]).await;
    let set = plumb.run(&["integration", "set", "slack", "port=25", "use=false", "team_name=acme"]).await;
    let wrong = plumb.run(&["integration", "set", "slack", "use=perhaps"]).await;
    let one = plumb.run(&["integration", "unset", "slack", "bot_token"]).await;
    let asked = plumb.run(&["integration", "unset", "slack"]).await;
    let all = plumb.run(&["integration", "unset", "slack", "--yes"]).await;
    let history = plumb.run(&["integration", "history", "slack"]).await;

    assert!(shown.stdout.contains("...1234") && shown.stdout.contains("C0123"), "{shown:?}");
    assert_eq!(
        (set.code, wrong.code, one.code, asked.code, all.code),
        (0, 2, 0, 2, 0),
        "{set:?} {asked:?} {all:?}"
    );
    let sent = server.asked("PUT", "/integrations/slack");
    assert_eq!(sent[0].body, json!({ "port": 25, "use": false, "team_name": "acme" }));
    assert_eq!(sent[1].body, json!({ "bot_token": null }));
    assert!(sent.iter().all(|asked| asked.header("if-match") == Some("\"v7\"")));
    assert_eq!(server.asked("DELETE", "/integrations/slack").len(), 1);
    assert!(history.stdout.contains("slack.bot_token") && history.stdout.contains("replaced"), "{history:?}");
}

#[tokio::test]
async fn the_secret_of_tokens_is_rotated_once_with_the_overlap_that_was_asked_for() {
    let server = FakeServer::start().await;
    let plumb = Plumb::signed_in(&server).await;
    let made = json!({ "kid": "0190f3c2-0000-7000-8000-000000000009", "created_at": "2026-01-01T00:00:00Z" });
    server.on("POST", "/auth/jwt-secrets", [Reply::status(201, &made)]);

    let ran = plumb.run(&["admin", "rotate-jwt-secret", "--overlap-minutes", "0"]).await;
    let plain = plumb.run(&["admin", "rotate-jwt-secret"]).await;

    assert_eq!((ran.code, plain.code), (0, 0), "{ran:?} {plain:?}");
    assert!(ran.stdout.contains("0190f3c2-0000-7000-8000-000000000009"), "{ran:?}");
    let asked = server.asked("POST", "/auth/jwt-secrets");
    assert_eq!(
        (&asked[0].body, &asked[1].body),
        (&json!({ "overlap_minutes": 0 }), &json!({ "overlap_minutes": null }))
    );
    assert!(asked[0].header("idempotency-key").is_some());
}
