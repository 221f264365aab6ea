//! Stories of settings, credentials and variables.

use serde_json::{Value, json};

use super::ok;
use crate::api::cloud_accounts::{self, KINDS};
use crate::api::issuer_keys;
use crate::executors::FakeExecutor;
use crate::plane::TestPlane;
use crate::world::World;

pub(super) async fn settings() -> TestPlane {
    let plane = TestPlane::start().await;
    let admin = plane.admin_token().await;
    for (path, body) in [
        ("runtime-config/auth.access_token_expire_minutes", json!({ "value": 60 })),
        ("integrations/slack", json!({ "bot_token": "xoxb-planted", "channel_id": "C0123" })),
    ] {
        ok(&plane, &admin, "PUT", path, body).await;
        ok(&plane, &admin, "DELETE", path, None).await;
    }
    ok(&plane, &admin, "POST", "integrations/slack/test", None).await;
    ok(&plane, &admin, "POST", "auth/jwt-secrets", json!({})).await;
    plane
}

pub(super) async fn accounts() -> TestPlane {
    let world = World::new().await;
    for kind in &KINDS {
        let made = ok(&world.plane, &world.token, "POST", kind.path, (kind.new)()).await;
        let path = format!("{}/{}", kind.path, made["id"].as_str().unwrap());
        ok(&world.plane, &world.token, "PUT", &path, (kind.replacement)()).await;
        ok(&world.plane, &world.token, "POST", &format!("{path}/test"), None).await;
        ok(&world.plane, &world.token, "DELETE", &path, None).await;
    }
    ok(&world.plane, &world.token, "POST", "aws-accounts", cloud_accounts::aws()).await;
    let workspace = format!("workspaces/{}", world.workspace);
    let link = json!({ "state_aws_account_id": cloud_accounts::ACCOUNT });
    ok(&world.plane, &world.token, "PUT", &workspace, link).await;
    world.planned().await;
    world.plane
}

pub(super) async fn variables() -> TestPlane {
    let world = World::new().await;
    let call = async |method: &str, path: &str, body: Option<Value>| {
        ok(&world.plane, &world.token, method, path, body).await
    };
    let set = call("POST", "variable-sets", Some(json!({ "name": "shared" }))).await;
    let set = format!("variable-sets/{}", set["id"].as_str().unwrap());
    call("PATCH", &set, Some(json!({ "priority": 1 }))).await;
    let attached = format!("{set}/workspaces/{}", world.workspace);
    call("PUT", &attached, None).await;
    let own = format!("workspaces/{}/variables", world.workspace);
    for place in ["variables", &own, &format!("{set}/variables")] {
        let new = json!({ "key": "k", "value": "hunter2-hunter2", "is_secret": true });
        let made = call("POST", place, Some(new)).await;
        let one = format!("{place}/{}", made["id"].as_str().unwrap());
        call("PATCH", &one, Some(json!({ "description": "d" }))).await;
        if place != own {
            call("DELETE", &one, None).await;
        }
    }
    world.trigger("plan").await;
    FakeExecutor::start(&world.plane).await;
    let (_, _, kept) = world.plane.call("GET", &format!("/api/v1/{own}"), world.token.as_str(), None).await;
    call("DELETE", &format!("{own}/{}", kept["items"][0]["id"].as_str().unwrap()), None).await;
    call("DELETE", &attached, None).await;
    call("DELETE", &set, None).await;
    world.plane
}

pub(super) async fn git_credentials() -> TestPlane {
    let world = World::new().await;
    let new = json!({ "name": "forge", "kind": "token", "host": "git.example.com", "token": "planted" });
    let made = ok(&world.plane, &world.token, "POST", "git-credentials", new).await;
    let path = format!("git-credentials/{}", made["id"].as_str().unwrap());
    ok(&world.plane, &world.token, "PATCH", &path, json!({ "token": "planted anew" })).await;
    let asked = json!({ "repo_url": "https://git.example.com/infra.git" });
    ok(&world.plane, &world.token, "POST", &format!("{path}/test"), asked).await;
    world.trigger("plan").await;
    FakeExecutor::start(&world.plane).await;
    ok(&world.plane, &world.token, "DELETE", &format!("{path}?force=true"), None).await;
    world.plane
}

pub(super) async fn issuer() -> TestPlane {
    let world = issuer_keys::trusting_world().await;
    world.trigger("plan").await;
    issuer_keys::token_of(&FakeExecutor::start(&world.plane).await).await;
    let superadmin = world.plane.admin_token().await;
    ok(&world.plane, &superadmin, "POST", "auth/issuer-keys", json!({ "at_once": true })).await;
    world.plane
}
