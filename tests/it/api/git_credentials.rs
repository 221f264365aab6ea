//! Git credentials: what people may do with them, and that nobody reads a secret.

mod apps;
mod reach;
mod ssh;
mod uses;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use super::repositories::plane;
use crate::plane::{TestPlane, slug};

const PATH: &str = "/api/v1/git-credentials";
/// In every secret, so that one search finds them all.
const PLANTED: &str = "pl4nted";

impl TestPlane {
    /// Stores a credential: its id.
    async fn store_credential(&self, token: &str, body: Value) -> String {
        let (status, headers, made) = self.call("POST", PATH, token, body).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        let id = made["id"].as_str().unwrap().to_owned();
        assert_eq!(headers["location"], format!("{PATH}/{id}"));
        id
    }
}

fn token_for(host: &str, secret: &str) -> Value {
    json!({ "name": "forge", "kind": "token", "host": host, "token": secret })
}

/// Host and port of an address.
fn host_of(url: &str) -> String {
    let url = url::Url::parse(url).unwrap();
    format!("{}:{}", url.host_str().unwrap(), url.port().unwrap())
}

#[tokio::test]
async fn a_credential_is_stored_shown_masked_edited_and_deleted_and_its_secret_is_never_read() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let operator = plane.user(Role::Operator).await;
    let secret = format!("{PLANTED}-tokenABCD");
    let mut new = token_for("GIT.example.com", &secret);
    new["path_prefix"] = json!("/org/");
    let id = plane.store_credential(&admin, new).await;
    let at = format!("{PATH}/{id}");
    let (status, headers, shown) = plane.call("GET", &at, operator.as_str(), None).await;
    assert_eq!(status, StatusCode::OK, "{shown}");
    assert_eq!(headers["etag"], "\"v1\"");
    for (field, value) in [
        ("host", json!("git.example.com")),
        ("path_prefix", json!("org")),
        ("username", json!("x-access-token")),
        ("secret", json!({ "configured": true, "masked_tail": "ABCD" })),
        ("last_used_at", json!(null)),
    ] {
        assert_eq!(shown[field], value, "{shown}");
    }
    let (_, _, list) = plane.call("GET", PATH, operator.as_str(), None).await;
    assert_eq!(list["items"], json!([shown]));

    let edit = async |headers: &[(&str, &str)], change: Value| {
        plane.call_with("PATCH", &at, admin.as_str(), change, headers).await
    };
    assert_eq!(edit(&[], json!({})).await.0, StatusCode::PRECONDITION_REQUIRED);
    let (status, _, renamed) = edit(&[("if-match", "\"v1\"")], json!({ "name": "other" })).await;
    assert_eq!((status, &renamed["secret"]["masked_tail"]), (StatusCode::OK, &json!("ABCD")), "it stays");
    let stale = edit(&[("if-match", "\"v1\"")], json!({ "name": "again" })).await;
    assert_eq!((stale.0, slug(&stale.2)), (StatusCode::PRECONDITION_FAILED, "changed-meanwhile"));
    let short = edit(&[("if-match", "*")], json!({ "token": PLANTED, "username": "bot" })).await.2;
    assert_eq!(
        short["secret"],
        json!({ "configured": true, "masked_tail": null }),
        "too short to show an end"
    );
    assert_eq!((&short["username"], &short["version"]), (&json!("bot"), &json!(3)));

    let (_, _, log) = plane.call("GET", "/api/v1/audit", admin.as_str(), None).await;
    let text = [plane.stored_text().await, log.to_string(), shown.to_string(), short.to_string()].concat();
    assert!(text.contains("git_credential.update") && text.contains(":gAAAA"));
    assert!(!text.contains(PLANTED) && !text.contains("tokenABCD"), "sealed everywhere");

    assert_eq!(plane.call("DELETE", &at, admin.as_str(), None).await.0, StatusCode::NO_CONTENT);
    assert_eq!(plane.call("GET", &at, admin.as_str(), None).await.0, StatusCode::NOT_FOUND);
    let count = "SELECT count(*) AS n FROM git_credentials";
    let left: i64 = plane.db().conn().await.unwrap().query_one(count, &[]).await.unwrap().get("n");
    assert_eq!(left, 0);
}

#[tokio::test]
async fn operators_read_and_admins_write() {
    let plane = TestPlane::start().await;
    let [viewer, operator, admin] =
        [plane.user(Role::Viewer).await, plane.user(Role::Operator).await, plane.user(Role::Admin).await];
    let new = token_for("git.example.com", PLANTED);
    let id = plane.store_credential(&admin, new.clone()).await;
    let at = |rest: &str| format!("{PATH}/{id}{rest}");
    let test = json!({ "repo_url": "https://git.example.com/a" });
    for (method, path, body, operators) in [
        ("GET", PATH.to_owned(), None, true),
        ("GET", at(""), None, true),
        ("GET", at("/usage"), None, true),
        ("POST", PATH.to_owned(), Some(new), false),
        ("PATCH", at(""), Some(json!({ "name": "x" })), false),
        ("POST", at("/test"), Some(test), false),
        ("DELETE", at(""), None, false),
    ] {
        for (token, allowed) in [(&viewer, false), (&operator, operators)] {
            let headers = [("if-match", "*")];
            let (status, _, answer) =
                plane.call_with(method, &path, token.as_str(), body.clone(), &headers).await;
            let expected = if allowed { StatusCode::OK } else { StatusCode::FORBIDDEN };
            assert_eq!(status, expected, "{method} {path}: {answer}");
        }
    }
}

#[tokio::test]
async fn one_name_and_one_place_have_one_credential() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let first = plane.store_credential(&admin, token_for("git.example.com", PLANTED)).await;
    let mut named = token_for("other.example.com", PLANTED);
    let mut placed = token_for("git.example.com:443", PLANTED);
    placed["name"] = json!("another");
    for body in [named.clone(), placed] {
        let (status, _, problem) = plane.call("POST", PATH, admin.as_str(), body).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "git-credential-exists"), "{problem}");
    }
    named["name"] = json!("second");
    let second = plane.store_credential(&admin, named).await;
    let headers = [("if-match", "*")];
    let path = format!("{PATH}/{second}");
    let (status, _, problem) =
        plane.call_with("PATCH", &path, admin.as_str(), json!({ "name": "forge" }), &headers).await;
    assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "git-credential-exists"));
    // Another unit has its own.
    let other = plane.unit("other-unit").await;
    let stranger = plane.member(other, Role::Admin).await;
    let theirs = plane.store_credential(&stranger, token_for("git.example.com", PLANTED)).await;
    assert_ne!(first, theirs);
    let (_, _, list) = plane.call("GET", PATH, stranger.as_str(), None).await;
    assert_eq!(list["items"].as_array().map(Vec::len), Some(1), "{list}");
}

#[tokio::test]
async fn where_a_secret_goes_changes_only_together_with_it() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let id = plane.store_credential(&admin, token_for("git.example.com", PLANTED)).await;
    let headers = [("if-match", "*")];
    for (change, field) in [
        (json!({ "host": "evil.example" }), "host"),
        (json!({ "kind": "ssh_key" }), "kind"),
        (json!({ "api_url": "https://evil.example" }), "api_url"),
        (json!({ "private_key": "x" }), "private_key"),
    ] {
        let path = format!("{PATH}/{id}");
        let (status, _, problem) =
            plane.call_with("PATCH", &path, admin.as_str(), change.clone(), &headers).await;
        let answer = (status, problem["field"].as_str());
        assert_eq!(answer, (StatusCode::UNPROCESSABLE_ENTITY, Some(field)), "{change}: {problem}");
    }
}

#[tokio::test]
async fn a_credential_that_workspaces_use_is_named_by_them_and_deleted_only_by_force() {
    let plane = TestPlane::start().await;
    let admin = plane.user(Role::Admin).await;
    let broad = plane.store_credential(&admin, token_for("git.example.com", PLANTED)).await;
    let mut narrow = token_for("git.example.com", PLANTED);
    narrow["name"] = json!("narrow");
    narrow["path_prefix"] = json!("org/team");
    let narrow = plane.store_credential(&admin, narrow).await;
    for (name, url) in [
        ("one", "https://git.example.com/org/team/a.git"),
        ("two", "https://git.example.com/org/b.git"),
        ("three", "https://elsewhere.example.com/git.example.com/c.git"),
        ("four", "git@git.example.com:org/team/d.git"),
    ] {
        let body = json!({ "name": name, "environment": "dev", "repo_url": url });
        let (status, ..) = plane.call("POST", "/api/v1/workspaces", admin.as_str(), body).await;
        assert_eq!(status, StatusCode::CREATED);
    }
    for (id, user) in [(&broad, "two"), (&narrow, "one")] {
        let at = format!("{PATH}/{id}");
        let (_, _, usage) = plane.call("GET", &format!("{at}/usage"), admin.as_str(), None).await;
        assert_eq!(usage["workspaces_total"], 1, "{usage}");
        assert_eq!(usage["workspaces"][0]["name"], user);
        let (status, _, problem) = plane.call("DELETE", &at, admin.as_str(), None).await;
        assert_eq!((status, slug(&problem)), (StatusCode::CONFLICT, "git-credential-in-use"), "{problem}");
        let forced = plane.call("DELETE", &format!("{at}?force=true"), admin.as_str(), None).await;
        assert_eq!(forced.0, StatusCode::NO_CONTENT);
    }
}
