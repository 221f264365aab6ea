//! Trying kubeconfigs against an API server with TLS of its own.

use http::StatusCode;
use serde_json::{Value, json};

use super::cloud_accounts::{ACCOUNT, Desk, MARK};
use crate::fake_cluster::FakeCluster;
use crate::fake_sts::FakeSts;
use crate::plane::TestPlane;

const TOKEN: &str = "hunter2-kubernetes-token";

async fn desk() -> Desk {
    let mut plane = TestPlane::start().await;
    plane.deps.allow_private_addresses = true;
    Desk::on(plane).await
}

/// Registers a kubeconfig, and gives what its test finds.
async fn found(desk: &Desk, name: &str, kubeconfig: String) -> Value {
    let made = desk.register("clusters", json!({ "name": name, "kubeconfig": kubeconfig })).await;
    desk.try_out(&format!("clusters/{}/test", made["id"].as_str().unwrap())).await
}

fn detail(found: &Value) -> &str {
    assert_eq!(found["ok"], json!(false), "{found}");
    found["detail"].as_str().unwrap()
}

#[tokio::test]
async fn a_kubeconfig_gets_in_by_token_password_or_certificate_and_the_server_says_what_it_is() {
    let Some(cluster) = FakeCluster::start().await else { return };
    let desk = desk().await;
    // Base64 of "admin:hunter2".
    let basic = "Basic YWRtaW46aHVudGVyMg==";
    for (name, user, known) in [
        ("token", json!({ "token": TOKEN }), format!("Bearer {TOKEN}")),
        ("password", json!({ "username": "admin", "password": "hunter2" }), basic.to_owned()),
        (
            "certificate",
            json!({ "client-certificate-data": cluster.data("client.pem"), "client-key-data": cluster.data("client.key") }),
            String::new(),
        ),
    ] {
        *cluster.known.lock().unwrap() = known;
        let found = found(&desk, name, cluster.kubeconfig("ca.pem", user)).await;
        assert_eq!(
            (&found["ok"], &found["context"]),
            (&json!(true), &json!("prod-admin")),
            "{name}: {found}"
        );
        assert_eq!(found["server_version"], json!("v1.33.1"), "{found}");
    }
    assert_eq!(desk.entries("cluster.test").await.len(), 3);
    assert!(!desk.dump().await.contains(MARK), "nothing of it is left in the database");
}

#[tokio::test]
async fn a_user_that_is_not_known_and_a_server_that_is_another_are_told_apart() {
    let Some(cluster) = FakeCluster::start().await else { return };
    let mut desk = desk().await;
    *cluster.known.lock().unwrap() = format!("Bearer {TOKEN}");
    let wrong = found(&desk, "wrong", cluster.kubeconfig("ca.pem", json!({ "token": "hunter2-old" }))).await;
    assert_eq!(detail(&wrong), "the server does not know the user of the kubeconfig (401)");
    cluster.shown.lock().unwrap().clear();
    let user = json!({ "token": TOKEN });
    let other = found(&desk, "other", cluster.kubeconfig("other.pem", user.clone())).await;
    assert_eq!(detail(&other), "127.0.0.1 shows a certificate that is not trusted");
    assert!(cluster.shown.lock().unwrap().is_empty(), "the token is shown to nobody who is not believed");

    let none = found(&desk, "nobody", cluster.kubeconfig("ca.pem", json!({}))).await;
    assert!(detail(&none).contains("has no token, certificate or password"), "{none}");
    let plugin = json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1", "command": "gke-gcloud-auth-plugin" } });
    let plugin = found(&desk, "plugin", cluster.kubeconfig("ca.pem", plugin)).await;
    assert!(detail(&plugin).contains("its plugin runs in runs alone"), "{plugin}");

    let nowhere = cluster.kubeconfig("ca.pem", user.clone()).replace(&cluster.url, "https://127.0.0.1:9");
    assert!(detail(&found(&desk, "nowhere", nowhere).await).contains("127.0.0.1 cannot be reached"));
    // As in production.
    desk.plane.deps.allow_private_addresses = false;
    for address in [cluster.url.as_str(), "https://169.254.169.254", "https://10.0.0.1", "https://[::1]"] {
        let kubeconfig = cluster.kubeconfig("ca.pem", user.clone()).replace(&cluster.url, address);
        let refused = found(&desk, address, kubeconfig).await;
        assert!(
            detail(&refused).contains("is at an address that may not be reached"),
            "{address}: {refused}"
        );
    }
    assert!(cluster.shown.lock().unwrap().is_empty());
}

#[tokio::test]
async fn an_eks_cluster_is_tried_with_a_token_of_its_linked_account_in_the_role_of_plans() {
    let Some(cluster) = FakeCluster::start().await else { return };
    let sts = FakeSts::start().await;
    let mut desk = desk().await;
    desk.plane.deps.sts_endpoint = Some(sts.url.as_str().into());
    let who = "arn:aws:iam::123456789012:user/plumbline";
    let user = sts.user(who);
    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    let account = json!({
        "account_id": ACCOUNT, "name": "payments", "default_region": "eu-central-1",
        "access_key_id": user.keys.access_key_id(), "secret_access_key": user.keys.secret_access_key(),
        "plan_role_arn": role("plan"), "apply_role_arn": role("apply"),
    });
    let account = desk.register("aws-accounts", account).await;
    let exec = json!({ "exec": { "apiVersion": "client.authentication.k8s.io/v1beta1", "command": "aws",
        "args": ["eks", "get-token", "--cluster-name", "prod", "--region", "eu-central-1"] } });
    let new =
        json!({ "name": "eks", "kubeconfig": cluster.kubeconfig("ca.pem", exec), "aws_account_id": ACCOUNT });
    let made = desk.register("clusters", new).await;
    let path = format!("clusters/{}/test", made["id"].as_str().unwrap());
    let refused = desk.try_out(&path).await;
    assert!(detail(&refused).contains("role/plan cannot be assumed"), "{refused}");

    sts.role(&role("plan"), who, account["external_id"].as_str());
    let unknown = desk.try_out(&path).await;
    assert!(detail(&unknown).contains("does not know the user"), "{unknown}");
    let shown = cluster.shown.lock().unwrap().last().cloned().unwrap();
    assert!(shown.starts_with("Bearer k8s-aws-v1."), "{shown}");
    assert_eq!(sts.sessions().last().unwrap().role_arn, role("plan"));

    // Without keys only a run could show it.
    let own = format!("aws-accounts/{}", account["id"].as_str().unwrap());
    let change = json!({ "access_key_id": null, "secret_access_key": null });
    assert_eq!(desk.call("PUT", &own, change).await.0, StatusCode::OK);
    let alone = desk.try_out(&path).await;
    assert!(detail(&alone).contains("only a run shows whether they may"), "{alone}");
}
