//! Where a secret is never sent: to another host, in the clear, to what is ours to protect.

use std::sync::atomic::Ordering;

use super::super::smart_http::{GitServer, Repository};
use super::*;

const LOGIN: &str = "x-access-token:pl4nted-t0ken";
const TOKEN: &str = "pl4nted-t0ken";

async fn test(plane: &TestPlane, admin: &str, id: &str, url: &str) -> Value {
    plane.short(&format!("{PATH}/{id}/test"), admin, json!({ "repo_url": url })).await
}

#[tokio::test]
async fn a_redirect_to_another_host_gets_nothing() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&["main.tf"]);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let other = GitServer::serve(&repository, Some(LOGIN)).await;
    *server.moved_to.lock().unwrap() = other.url.replace("/infra.git", "");
    let id = plane.store_credential(&admin, token_for(&host_of(&server.url), TOKEN)).await;
    let moved = server.url.replace("/infra.git", "/moved/infra.git");
    let result = test(&plane, &admin, &id, &moved).await;
    assert_eq!(result["outcome"], "refused", "{result}");
    assert!(result["detail"].as_str().unwrap().contains("redirects"), "{result}");
    assert_eq!(other.tries.load(Ordering::SeqCst), 0);
    assert!(other.command_lines.lock().unwrap().is_empty(), "it was not even asked");
}

#[tokio::test]
async fn nothing_secret_is_sent_in_the_clear_but_on_one_machine() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let id = plane.store_credential(&admin, token_for("git.example.com:80", TOKEN)).await;
    let body = json!({ "repo_url": "http://git.example.com/a" });
    let (status, _, problem) = plane.call("POST", &format!("{PATH}/{id}/test"), admin.as_str(), body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{problem}");
    assert!(problem["detail"].as_str().unwrap().contains("https://"), "{problem}");
    // A run gets none either.
    let workspace = json!({ "name": "w", "environment": "dev", "repo_url": "http://git.example.com/a" });
    let (_, _, made) = plane.call("POST", "/api/v1/workspaces", admin.as_str(), workspace).await;
    let run = json!({ "workspace_id": made["id"], "command": "plan" });
    assert_eq!(plane.call("POST", "/api/v1/runs", admin.as_str(), run).await.0, StatusCode::CREATED);
    let executor = crate::executors::FakeExecutor::start(&plane).await;
    assert!(executor.bundle.source.credentials.is_empty());
}

#[tokio::test]
async fn what_is_ours_to_protect_is_not_asked_for_repositories_or_tokens() {
    let mut plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let metadata = plane.store_credential(&admin, token_for("169.254.169.254:80", TOKEN)).await;
    let result = test(&plane, &admin, &metadata, "http://169.254.169.254/latest").await;
    assert_eq!(result["outcome"], "refused", "{result}");
    plane.deps.allow_private_addresses = false;
    for (name, host) in [("loopback", "127.0.0.1"), ("name", "localhost"), ("mapped", "[::ffff:127.0.0.1]")] {
        let mut new = token_for(host, TOKEN);
        new["name"] = json!(name);
        let id = plane.store_credential(&admin, new).await;
        let result = test(&plane, &admin, &id, &format!("https://{host}/a")).await;
        assert_eq!(result["outcome"], "refused", "{host}: {result}");
        assert!(result["detail"].as_str().unwrap().contains("may not be reached"), "{result}");
    }
}

#[tokio::test]
async fn a_host_that_does_not_answer_is_unreachable() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let closed = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let id = plane.store_credential(&admin, token_for(&closed.to_string(), TOKEN)).await;
    let result = test(&plane, &admin, &id, &format!("http://{closed}/a")).await;
    assert_eq!(result["outcome"], "unreachable", "{result}");
    assert!(!result.to_string().contains(PLANTED));
}
