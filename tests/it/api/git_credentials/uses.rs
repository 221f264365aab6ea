//! Short tasks with stored credentials: the right one, of the right unit, for the right host, and nothing of it anywhere.

use std::sync::atomic::Ordering;

use plumbline_core::tasks::FailedAttempt;
use plumbline_runtime::Function;

use super::super::smart_http::{GitServer, Repository};
use super::*;

const FILES: [&str; 2] = ["stacks/net/main.tf", "README.md"];
const LOGIN: &str = "x-access-token:pl4nted-t0ken+/=";
const TOKEN: &str = "pl4nted-t0ken+/=";

/// A repository behind a login, and the credential of the unit `default` for it.
async fn private_repository(plane: &TestPlane, admin: &str) -> (GitServer, Repository, String) {
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let id = plane.store_credential(admin, token_for(&host_of(&server.url), TOKEN)).await;
    (server, repository, id)
}

/// Does the one task that is due and expects it to fail for good.
async fn refusal(plane: &TestPlane) -> String {
    match plane.do_short().await.1 {
        Err(FailedAttempt::Permanent(why)) => why,
        other => panic!("{other:?}"),
    }
}

#[tokio::test]
async fn discovery_import_and_branches_use_the_stored_credential_with_the_longest_prefix() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, right) = private_repository(&plane, &admin).await;
    for (name, prefix) in [("wrong", ""), ("elsewhere", "infra/deeper"), ("a-part", "inf")] {
        let mut other = token_for(&host_of(&server.url), "pl4nted-wrong");
        other["name"] = json!(name);
        if prefix.is_empty() {
            // The right one moves down, to make room for one that covers the whole host.
            let change = json!({ "path_prefix": "infra.git" });
            let headers = [("if-match", "*")];
            let path = format!("{PATH}/{right}");
            let (status, ..) = plane.call_with("PATCH", &path, admin.as_str(), change, &headers).await;
            assert_eq!(status, StatusCode::OK);
        }
        other["path_prefix"] = json!(prefix);
        plane.store_credential(&admin, other).await;
    }
    let request = json!({ "repo_url": server.url });
    let found = plane.short("/api/v1/workspaces/discover", &admin, request.clone()).await;
    assert_eq!(found["candidates"].as_array().map(Vec::len), Some(1), "{found}");
    let made = plane.short("/api/v1/workspaces/import", &admin, request).await;
    let workspace = made["created"][0]["id"].as_str().unwrap().to_owned();
    let viewer = plane.user(Role::Viewer).await;
    let branches = plane.short(&format!("/api/v1/workspaces/{workspace}/branches"), &viewer, None).await;
    assert_eq!(branches["default_branch"], "main");
    assert_eq!(*server.logins.lock().unwrap(), [LOGIN.to_owned()].into());

    let (_, _, log) =
        plane.call("GET", "/api/v1/audit?action=git_credential.use", admin.as_str(), None).await;
    let entries = log["items"].as_array().unwrap();
    assert_eq!(entries.len(), 3, "one for each task: {log}");
    for entry in entries {
        assert_eq!((&entry["resource_id"], &entry["user_id"]), (&json!(right), &json!(null)), "{entry}");
    }
    let (_, _, shown) = plane.call("GET", &format!("{PATH}/{right}"), admin.as_str(), None).await;
    assert!(shown["last_used_at"].is_string(), "{shown}");
    let lines = server.command_lines.lock().unwrap().clone();
    assert!(lines.contains("clone") && !lines.contains(PLANTED), "no process shows it");
    assert!(!plane.stored_text().await.contains(PLANTED));
}

#[tokio::test]
async fn another_unit_never_uses_it_and_there_is_none_for_all() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, _) = private_repository(&plane, &admin).await;
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let request = json!({ "repo_url": server.url });
    plane.call("POST", "/api/v1/workspaces/discover", stranger.as_str(), request.clone()).await;
    assert_eq!(refusal(&plane).await, "the repository refused the login, or needs one");
    assert_eq!(server.tries.load(Ordering::SeqCst), 0, "no login was sent");
    // A superadmin who works in that unit is in that unit.
    let superadmin = plane.admin_token().await;
    let headers = [("x-business-unit", "other-unit")];
    let path = "/api/v1/workspaces/discover";
    plane.call_with("POST", path, superadmin.as_str(), request.clone(), &headers).await;
    refusal(&plane).await;
    assert_eq!(server.tries.load(Ordering::SeqCst), 0);
    // Nor is it theirs when they have one that does not fit.
    let mut own = token_for(&host_of(&server.url), "pl4nted-wrong");
    own["path_prefix"] = json!("elsewhere");
    plane.store_credential(&stranger, own).await;
    plane.call("POST", path, stranger.as_str(), request).await;
    refusal(&plane).await;
    assert_eq!(server.tries.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_login_that_came_with_the_request_goes_before_the_stored_one() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    plane.store_credential(&admin, token_for(&host_of(&server.url), "pl4nted-wrong")).await;
    let request = json!({ "repo_url": server.url, "token": TOKEN });
    plane.short("/api/v1/workspaces/discover", &admin, request).await;
    assert_eq!(*server.logins.lock().unwrap(), [LOGIN.to_owned()].into());
}

#[tokio::test]
async fn a_test_says_what_the_repository_said_and_remembers_which_it_was() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, id) = private_repository(&plane, &admin).await;
    let test = format!("{PATH}/{id}/test");
    let (status, _, problem) = plane.call("POST", &test, admin.as_str(), json!({})).await;
    let answer = (status, problem["field"].as_str());
    assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some("repo_url")), "none was tested before");
    let ok = json!({ "outcome": "ok", "detail": "the repository can be read", "repo_url": server.url });
    assert_eq!(plane.short(&test, &admin, json!({ "repo_url": server.url })).await, ok);
    assert_eq!(plane.short(&test, &admin, json!({})).await, ok, "the same once more");
    for other in ["https://git.example.com/a", "git@127.0.0.1:a", "/srv/git/a", "nonsense"] {
        let body = json!({ "repo_url": other });
        let (status, _, problem) = plane.call("POST", &test, admin.as_str(), body).await;
        let answer = (status, problem["field"].as_str());
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some("repo_url")), "{other}: {problem}");
    }
    let missing = server.url.replace("infra", "other");
    let result = plane.short(&test, &admin, json!({ "repo_url": missing })).await;
    assert_eq!(result["outcome"], "refused", "{result}");
}

#[tokio::test]
async fn a_wrong_secret_is_tried_once() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    let id = plane.store_credential(&admin, token_for(&host_of(&server.url), "pl4nted-wrong")).await;
    let test = format!("{PATH}/{id}/test");
    let result = plane.short(&test, &admin, json!({ "repo_url": server.url })).await;
    assert_eq!(result["outcome"], "refused", "{result}");
    assert!(!result.to_string().contains(PLANTED), "{result}");
    assert_eq!(server.tries.load(Ordering::SeqCst), 1, "a forge would lock the account");
    plane
        .call("POST", "/api/v1/workspaces/discover", admin.as_str(), json!({ "repo_url": server.url }))
        .await;
    refusal(&plane).await;
    assert_eq!(server.tries.load(Ordering::SeqCst), 2);
}

#[tokio::test]
async fn a_sealed_secret_that_was_moved_to_another_row_opens_nothing() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, id) = private_repository(&plane, &admin).await;
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let mut theirs = token_for(&host_of(&server.url), "pl4nted-theirs");
    theirs["name"] = json!("theirs");
    let theirs = plane.store_credential(&stranger, theirs).await;
    let steal = format!(
        "UPDATE git_credentials SET secret_sealed = (SELECT secret_sealed FROM git_credentials WHERE id = '{id}')
         WHERE id = '{theirs}'"
    );
    plane.db().conn().await.unwrap().batch(&steal).await.unwrap();
    let test = format!("{PATH}/{theirs}/test");
    let (status, ..) = plane.call("POST", &test, stranger.as_str(), json!({ "repo_url": server.url })).await;
    assert_eq!(status, StatusCode::ACCEPTED);
    let why = refusal(&plane).await;
    assert!(why.contains("belongs to another row"), "{why}");
    assert_eq!(server.tries.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn a_credential_that_changed_after_its_test_was_asked_for_is_not_sent() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, id) = private_repository(&plane, &admin).await;
    let path = format!("{PATH}/{id}");
    plane.call("POST", &format!("{path}/test"), admin.as_str(), json!({ "repo_url": server.url })).await;
    let headers = [("if-match", "*")];
    let change = json!({ "path_prefix": "elsewhere" });
    assert_eq!(plane.call_with("PATCH", &path, admin.as_str(), change, &headers).await.0, StatusCode::OK);
    assert!(refusal(&plane).await.contains("not for this repository"));
    assert_eq!(server.tries.load(Ordering::SeqCst), 0);
}

#[tokio::test]
async fn outbound_opens_credentials_with_its_own_role_and_keys() {
    let plane = plane().await;
    crate::plane::roles::grant(plane.db()).await;
    let admin = plane.user(Role::Admin).await;
    let (server, _repository, _) = private_repository(&plane, &admin).await;
    let path = "/api/v1/workspaces/discover";
    plane.call("POST", path, admin.as_str(), json!({ "repo_url": server.url })).await;
    let task = plane.claim_short().await;
    let function = Function::Outbound;
    let deps = plumbline_core::Deps {
        db: crate::plane::roles::pool_as(&plane.database_url, function.role(), 1),
        keys: std::sync::Arc::new(plane.deps.keys.only(function.key_domains())),
        ..plane.deps.clone()
    };
    plumbline_outbound::handle(&deps, &task).await.unwrap();
    assert_eq!(*server.logins.lock().unwrap(), [LOGIN.to_owned()].into());
}
