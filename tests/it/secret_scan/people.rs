//! Passwords, invitations, sessions, API keys and sign-ins of CI systems.

use chrono::{TimeDelta, Utc};
use http::Method;
use serde_json::{Value, json};

use super::stage::{Stage, id};
use crate::idp::Idp;

const CI_AUDIENCE: &str = "https://plumbline.test";
const CI_SUBJECT: &str = "repo:acme/infra:ref:refs/heads/main";

/// Somebody with a password that others set, who changes it; mistypes it; is invited; signs in and out.
pub async fn people(stage: &Stage) {
    let first = stage.plant("NewUser.password", "of a new user");
    let email = "ada@plumbline.test";
    let ada = stage.post("users", json!({ "email": email, "password": first })).await;
    let ada = format!("users/{}", id(&ada));
    let (own, _) = stage.session(email, &first).await;
    let second = stage.plant("PasswordChange.new_password", "of their own");
    let mistyped = stage.plant("PasswordChange.current_password", "mistyped");
    let wrong = json!({ "current_password": mistyped, "new_password": second });
    stage.refused(Method::PUT, "me/password", &own, wrong).await;
    let right = json!({ "current_password": first, "new_password": second });
    let (status, answer) = stage.call(Method::PUT, "me/password", &own, Some(right)).await;
    assert_eq!(status, 204, "{answer}");
    let (own, refresh) = stage.session(email, &second).await;
    refreshed(stage, &refresh).await;
    let (status, _) = stage.call(Method::POST, "auth/logout", &own, None).await;
    assert_eq!(status, 204);

    // Wrong ones may be right ones of somewhere else.
    for (who, what) in [(email, "mistyped by somebody"), ("nobody@plumbline.test", "of nobody")] {
        let wrong = stage.plant("Credentials.password", what);
        stage.refused(Method::POST, "auth/token", "", json!({ "email": who, "password": wrong })).await;
    }
    let code = stage.plant("CodeTrade.code", "of no sign-in");
    let secret = stage.plant("CodeTrade.cli_secret", "of no command line");
    let trade = json!({ "code": code, "cli_secret": secret });
    stage.refused(Method::POST, "auth/oidc/token", "", trade).await;
    let third = stage.plant("OneTimePassword.password", "set by an admin");
    stage.put(&format!("{ada}/password"), json!({ "password": third })).await;
    stage.session(email, &third).await;
    stage.delete(&format!("{ada}/sessions")).await;
    invited(stage).await;
}

/// A session that goes on, and one whose token somebody else has, too.
async fn refreshed(stage: &Stage, refresh: &str) {
    stage.plant_this("RefreshRequest.refresh_token", "one that is good", &refresh[refresh.len() - 24..]);
    let body = json!({ "refresh_token": refresh });
    let (status, pair) = stage.call(Method::POST, "auth/refresh", "", Some(body.clone())).await;
    assert_eq!(status, 200, "{pair}");
    stage.pair(&pair);
    let nobodys = stage.plant("RefreshRequest.refresh_token", "nobody's");
    stage.refused(Method::POST, "auth/refresh", "", json!({ "refresh_token": nobodys })).await;
}

async fn invited(stage: &Stage) {
    let grace = stage.post("users", json!({ "email": "grace@plumbline.test" })).await;
    let invite = stage.post(&format!("users/{}/invite", id(&grace)), json!({})).await;
    let token = stage.given("Invite.token", "of a new user", &invite["token"]);
    stage.plant_this("Acceptance.token", "one that is good", &token[token.len() - 24..]);
    let password = stage.plant("Acceptance.password", "of the invited");
    let nobodys = stage.plant("Acceptance.token", "nobody's");
    let unknown = json!({ "token": nobodys, "password": password });
    stage.refused(Method::POST, "auth/accept-invite", "", unknown).await;
    let accepted = json!({ "token": token, "password": password });
    let (status, answer) = stage.call(Method::POST, "auth/accept-invite", "", Some(accepted)).await;
    assert_eq!(status, 204, "{answer}");
    stage.session("grace@plumbline.test", &password).await;
}

/// Keys that are made, replaced, used as tokens and as passwords, and mistyped.
pub async fn keys(stage: &Stage, workspace: &str) {
    let state = format!("state/{workspace}");
    let key = stage.post("api-keys", json!({ "name": "ci", "capability": "admin" })).await;
    let path = format!("api-keys/{}", id(&key));
    let mut tokens = vec![stage.given("MintedKey.token", "made", &key["token"])];
    let key = stage.post(&format!("{path}/regenerate"), json!({})).await;
    tokens.push(stage.given("MintedKey.token", "made again", &key["token"]));
    let key = stage.post(&format!("{path}/rotate"), json!({})).await;
    tokens.push(stage.given("MintedKey.token", "that follows", &key["token"]));
    stage.know("a key that is mistyped", "plb_pl4ntedPl4ntedPl4nted7");
    tokens.push("plb_pl4ntedPl4ntedPl4nted7pl4nted".into());
    for (token, good) in tokens.iter().zip([false, true, true, false]) {
        let (status, answer) = stage.call(Method::GET, "runs", token, None).await;
        assert_eq!(status == 200, good, "{answer}");
        let (status, answer) = stage.call_as_terraform(&state, token).await;
        assert_eq!(matches!(status, 200 | 204), good, "{status} {answer}");
    }
}

/// A job's token is traded for a key; another one's is refused.
pub async fn ci_logins(stage: &Stage) {
    let Some(idp) = Idp::start().await else { return };
    let rule =
        json!({ "name": "main", "issuer": idp.issuer, "audience": CI_AUDIENCE, "subject": CI_SUBJECT });
    stage.post("ci-trust-rules", rule).await;
    let signed = |subject: &str, what: &str| {
        let now = Utc::now();
        let token = idp.sign(&json!({
            "iss": idp.issuer, "aud": CI_AUDIENCE, "sub": subject, "iat": now.timestamp(), "nbf": now.timestamp(),
            "exp": (now + TimeDelta::minutes(5)).timestamp(),
        }));
        stage.plant_this("CiLogin.token", what, &token[token.len() - 40..]);
        token
    };
    let token = signed(CI_SUBJECT, "of a job");
    // The first who comes waits until the issuer's keys are there.
    let deadline = std::time::Instant::now() + std::time::Duration::from_secs(60);
    let key: Value = loop {
        let (status, answer) = stage
            .call(
                Method::POST,
                "auth/ci-token",
                "",
                Some(json!({ "token": token, "business_unit": "default" })),
            )
            .await;
        if status == 200 {
            break answer;
        }
        assert!(std::time::Instant::now() < deadline, "{status} {answer}");
        tokio::time::sleep(std::time::Duration::from_millis(250)).await;
    };
    let key = stage.given("CiKey.token", "of a job", &key["token"]);
    let strange = signed("repo:other/infra:ref:refs/heads/main", "of a stranger");
    stage
        .refused(Method::POST, "auth/ci-token", "", json!({ "token": strange, "business_unit": "default" }))
        .await;
    assert_eq!(stage.call(Method::GET, "workspaces", &key, None).await.0, 200);
}
