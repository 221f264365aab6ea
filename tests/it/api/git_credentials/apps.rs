//! GitHub Apps: the token is made at use, by an assertion that the API can verify, and is kept nowhere.

use super::super::smart_http::{GitServer, Repository};
use super::*;
use crate::fake_github::{APP_ID, FakeGithub, INSTALLATION_ID, LOGIN, Mood};

fn app(host: &str, api: &str, key: &str) -> Value {
    json!({ "name": "app", "kind": "github_app", "host": host, "app_id": APP_ID, "installation_id": INSTALLATION_ID,
            "api_url": api, "private_key": key })
}

#[tokio::test]
async fn an_app_gets_a_short_token_by_a_signed_assertion_and_git_uses_it() {
    let Some(github) = FakeGithub::start().await else { return };
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&["stacks/net/main.tf"]);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let id =
        plane.store_credential(&admin, app(&host_of(&server.url), &github.url, &github.private_key())).await;
    let found = plane.short("/api/v1/workspaces/discover", &admin, json!({ "repo_url": server.url })).await;
    assert_eq!(found["candidates"].as_array().map(Vec::len), Some(1), "{found}");
    assert_eq!(*server.logins.lock().unwrap(), [LOGIN.to_owned()].into());
    {
        let asked = github.asked.lock().unwrap();
        let [(path, body, judged)] = asked.as_slice() else { panic!("asked once, not {asked:?}") };
        assert_eq!(*judged, Ok(()));
        assert_eq!(*path, format!("/app/installations/{INSTALLATION_ID}/access_tokens"));
        assert_eq!(*body, json!({ "permissions": { "contents": "read" } }), "no more than Git needs");
    }
    let (_, _, shown) = plane.call("GET", &format!("{PATH}/{id}"), admin.as_str(), None).await;
    assert_eq!(shown["secret"], json!({ "configured": true, "masked_tail": null }));
    let stored = plane.stored_text().await;
    let body_of_key = github.private_key().lines().nth(1).unwrap().to_owned();
    assert!(!stored.contains("ghs_") && !stored.contains(&body_of_key), "neither token nor key");
    assert!(!server.command_lines.lock().unwrap().contains("ghs_"));
}

#[tokio::test]
async fn an_api_that_refuses_redirects_fails_or_babbles_is_told_apart() {
    let Some(github) = FakeGithub::start().await else { return };
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&["main.tf"]);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let new = app(&host_of(&server.url), &github.url, &github.private_key());
    let id = plane.store_credential(&admin, new).await;
    let test = format!("{PATH}/{id}/test");
    let body = json!({ "repo_url": server.url });
    for (mood, outcome) in [
        (Mood::Redirects, "refused"),
        (Mood::Fails, "unreachable"),
        (Mood::Babbles, "refused"),
        (Mood::Right, "ok"),
    ] {
        *github.mood.lock().unwrap() = mood;
        let result = plane.short(&test, &admin, body.clone()).await;
        assert_eq!(result["outcome"], outcome, "{mood:?}: {result}");
    }
    assert_eq!(github.asked.lock().unwrap().len(), 4, "no redirect was followed");
    let headers = [("if-match", "*")];
    let path = format!("{PATH}/{id}");
    let change = json!({ "private_key": github.strange_key() });
    assert_eq!(plane.call_with("PATCH", &path, admin.as_str(), change, &headers).await.0, StatusCode::OK);
    let result = plane.short(&test, &admin, body).await;
    assert_eq!(result["outcome"], "refused", "{result}");
}

#[tokio::test]
async fn an_api_is_bound_by_the_rules_of_addresses_and_a_key_must_be_able_to_sign() {
    let Some(github) = FakeGithub::start().await else { return };
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let host = "git.example.com";
    let metadata = app(host, "http://169.254.169.254/latest", &github.private_key());
    let id = plane.store_credential(&admin, metadata).await;
    let asked = json!({ "repo_url": "https://git.example.com/a" });
    let result = plane.short(&format!("{PATH}/{id}/test"), &admin, asked).await;
    assert_eq!(result["outcome"], "refused", "{result}");
    assert!(result["detail"].as_str().unwrap().contains("may not be reached"), "{result}");
    // As long as a key and armoured like one.
    let mut hollow = app("other.example.com", &github.url, "");
    let body = base64::Engine::encode(
        &base64::engine::general_purpose::STANDARD,
        [&[0x30, 0x82, 1, 0][..], &[1; 256]].concat(),
    );
    hollow["private_key"] =
        json!(format!("-----BEGIN RSA PRIVATE KEY-----\n{body}\n-----END RSA PRIVATE KEY-----\n"));
    let (status, _, problem) = plane.call("POST", PATH, admin.as_str(), hollow).await;
    let answer = (status, problem["field"].as_str());
    assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some("private_key")), "{problem}");
}
