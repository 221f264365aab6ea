//! SSH against OpenSSH's own server: the pinned host is believed and no other, the unit's key is used and no other.

use super::super::smart_http::Repository;
use super::*;
use crate::sshd::Sshd;

fn key(sshd: &Sshd, private: &str, hosts: &[String]) -> Value {
    json!({ "name": "deploy", "kind": "ssh_key", "host": format!("127.0.0.1:{}", sshd.port), "private_key": private,
            "host_keys": hosts })
}

#[tokio::test]
async fn a_pinned_host_is_believed_and_another_key_is_a_mismatch() {
    let Some(sshd) = Sshd::start().await else { return };
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let repository = Repository::with(&["stacks/net/main.tf"]);
    let url = sshd.url(&repository.root().join("infra.git"));
    let id = plane.store_credential(&admin, key(&sshd, &sshd.client_key(), &[sshd.host_line()])).await;
    let (_, _, shown) = plane.call("GET", &format!("{PATH}/{id}"), admin.as_str(), None).await;
    assert!(shown["public_key"].as_str().unwrap().starts_with("ssh-ed25519 AAAA"), "{shown}");
    assert_eq!(shown["secret"], json!({ "configured": true, "masked_tail": null }));
    let found = plane.short("/api/v1/workspaces/discover", &admin, json!({ "repo_url": url })).await;
    assert_eq!(found["candidates"].as_array().map(Vec::len), Some(1), "{found}");

    let path = format!("{PATH}/{id}");
    let accepted = || sshd.log().matches("Accepted publickey").count();
    let before = accepted();
    for (change, outcome, logins) in [
        (json!({ "host_keys": [sshd.fingerprint()] }), "ok", 1),
        (json!({ "host_keys": [sshd.other_host_line()] }), "host_key_mismatch", 0),
        (
            json!({ "host_keys": ["SHA256:AAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAAA"] }),
            "host_key_mismatch",
            0,
        ),
        (json!({ "host_keys": [sshd.host_line()], "private_key": sshd.strange_key() }), "refused", 0),
    ] {
        let headers = [("if-match", "*")];
        let (status, _, changed) =
            plane.call_with("PATCH", &path, admin.as_str(), change.clone(), &headers).await;
        assert_eq!(status, StatusCode::OK, "{changed}");
        let since = accepted();
        let result = plane.short(&format!("{path}/test"), &admin, json!({ "repo_url": url })).await;
        assert_eq!(result["outcome"], outcome, "{change}: {result} {}", sshd.log());
        assert_eq!(accepted() - since, logins, "{change}");
    }
    assert_eq!(accepted(), before + 1);
    let stored = plane.stored_text().await;
    let inside = sshd.client_key().lines().nth(1).unwrap().to_owned();
    assert!(!stored.contains(&inside) && !stored.contains("PRIVATE KEY"));
}

#[tokio::test]
async fn an_ssh_address_without_a_credential_is_refused_before_anybody_is_asked() {
    let plane = plane().await;
    let admin = plane.user(Role::Admin).await;
    let listener = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    listener.set_nonblocking(true).unwrap();
    let url = format!("ssh://git@{}/a.git", listener.local_addr().unwrap());
    plane.call("POST", "/api/v1/workspaces/discover", admin.as_str(), json!({ "repo_url": url })).await;
    let (_, answer) = plane.do_short().await;
    let why = "an ssh address needs a Git credential of the kind ssh_key for its host".to_owned();
    assert_eq!(answer, Err(plumbline_core::tasks::FailedAttempt::Permanent(why)));
    assert!(listener.accept().is_err(), "a key of this machine would have been offered");
}
