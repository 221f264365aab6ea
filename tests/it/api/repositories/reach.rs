//! What can be reached of a repository, and what must not be.

use super::*;

#[tokio::test]
async fn a_wrong_login_fails_for_good_and_is_not_told_on() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, Some(LOGIN)).await;
    for token in [None, Some("wrong-s3cr3t")] {
        let mut request = json!({ "repo_url": server.url });
        if let Some(token) = token {
            request["token"] = json!(token);
        }
        let (status, ..) = plane.call("POST", "/api/v1/workspaces/discover", &*admin, request).await;
        assert_eq!(status, StatusCode::ACCEPTED);
        let (_, answer) = plane.do_short().await;
        let why = "the repository refused the login, or needs one".to_owned();
        assert_eq!(answer, Err(FailedAttempt::Permanent(why)));
    }
}

#[tokio::test]
async fn redirects_inner_addresses_and_missing_branches_are_refused() {
    let mut plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&FILES);
    let server = GitServer::serve(&repository, None).await;
    let moved = server.url.replace("/infra.git", "/moved/infra.git");
    let missing = server.url.replace("infra", "other");
    let cases = [
        (json!({ "repo_url": moved }), "the server redirects"),
        (json!({ "repo_url": missing }), "there is no repository"),
        (json!({ "repo_url": server.url, "ref": "no/such" }), "the repository has no such branch"),
        (json!({ "repo_url": "http://169.254.169.254/latest/meta-data" }), "the host 169.254.169.254 is at"),
    ];
    for (request, expected) in cases {
        plane.call("POST", "/api/v1/workspaces/discover", &*admin, request).await;
        match plane.do_short().await.1 {
            Err(FailedAttempt::Permanent(why)) => assert!(why.starts_with(expected), "{why}"),
            other => panic!("{expected}: {other:?}"),
        }
    }
    plane.deps.allow_private_addresses = false;
    for url in [server.url.clone(), server.url.replace("127.0.0.1", "localhost")] {
        plane.call("POST", "/api/v1/workspaces/discover", &*admin, json!({ "repo_url": url })).await;
        let (_, answer) = plane.do_short().await;
        assert!(matches!(&answer, Err(FailedAttempt::Permanent(why)) if why.contains("may not be reached")));
    }
}

#[tokio::test]
async fn local_repositories_are_read_below_the_root_alone() {
    let mut plane = TestPlane::start().await;
    let repository = Repository::with(&FILES);
    let outside = Repository::with(&FILES);
    let root = repository.root();
    std::os::unix::fs::symlink(outside.root().join("infra.git"), root.join("link.git")).unwrap();
    plane.deps.local_repos_root = Some(root.display().to_string().into());
    let admin = plane.user(Role::Admin).await;
    let at = |path: std::path::PathBuf| json!({ "repo_url": path.display().to_string() });
    let found = plane.short("/api/v1/workspaces/discover", &admin, at(root.join("infra.git"))).await;
    assert_eq!(found["candidates"].as_array().map(Vec::len), Some(4));
    for bad in [outside.root().join("infra.git"), root.join("link.git"), root.join("missing.git")] {
        plane.call("POST", "/api/v1/workspaces/discover", &*admin, at(bad)).await;
        let (_, answer) = plane.do_short().await;
        assert!(
            matches!(&answer, Err(FailedAttempt::Permanent(why)) if why.contains("below the allowed root"))
        );
    }
}

#[tokio::test]
async fn a_repository_that_never_answers_is_given_up() {
    let mut plane = plane().await;
    let mut limits = (*plane.deps.limits).clone();
    limits.git_timeout = std::time::Duration::from_millis(300);
    plane.deps.limits = Arc::new(limits);
    let admin = plane.user(Role::Admin).await;
    let silent = tokio::net::TcpListener::bind("127.0.0.1:0").await.unwrap();
    let url = format!("http://{}/a", silent.local_addr().unwrap());
    plane.call("POST", "/api/v1/workspaces/discover", &*admin, json!({ "repo_url": url })).await;
    let (_, answer) = plane.do_short().await;
    assert!(
        matches!(&answer, Err(FailedAttempt::Retry(why)) if why.contains("did not answer")),
        "{answer:?}"
    );
}
