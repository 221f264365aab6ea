//! Kubeconfigs over HTTP: what is refused names where, and repeats nothing.

use http::StatusCode;
use plumbline_core::access::Role;
use serde_json::{Value, json};

use super::*;

fn exec(command: &str, rest: &str) -> String {
    kubeconfig(&format!(
        "exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: '{command}'{rest}}}"
    ))
}

async fn reason(desk: &Desk, kubeconfig: &str) -> String {
    let body = json!({"name": "prod", "kubeconfig": kubeconfig});
    let (status, _, problem) = desk.call("POST", "clusters", body).await;
    assert_eq!(status, StatusCode::UNPROCESSABLE_ENTITY, "{kubeconfig}: {problem}");
    assert_eq!(problem["field"], json!("kubeconfig"));
    assert!(!problem.to_string().contains(MARK), "{problem}");
    problem["detail"].as_str().unwrap().to_owned()
}

#[tokio::test]
async fn a_kubeconfig_runs_only_known_plugins_and_names_no_file_and_no_proxy() {
    let desk = Desk::new().await;
    for command in ["/bin/sh", "./aws", "/tmp/evil/aws", "bash", "curl", "aws;id", "..\\aws"] {
        let why = reason(&desk, &exec(command, "")).await;
        assert!(why.contains("users[0].user.exec.command"), "{command}: {why}");
    }
    for (rest, place) in [
        (", args: [s3, cp, x, y]", "exec.args"),
        (", args: [eks, get-token, --endpoint-url, 'https://example.com']", "exec.args"),
        (", args: [eks, get-token], env: [{name: AWS_CONFIG_FILE, value: x}]", "exec.env"),
        (", args: [eks, get-token], env: [{name: HTTPS_PROXY, value: x}]", "exec.env"),
    ] {
        let why = reason(&desk, &exec("aws", rest)).await;
        assert!(why.contains(place), "{rest}: {why}");
    }
    for (name, line) in [
        ("tokenFile", "tokenFile: /var/run/hunter2"),
        ("client-certificate", "client-certificate: hunter2.pem"),
        ("client-key", "client-key: hunter2.pem"),
        ("auth-provider", "auth-provider: {name: gcp}"),
    ] {
        let why = reason(&desk, &kubeconfig(line)).await;
        assert!(why.contains(&format!("users[0].user.{name}")), "{why}");
    }
    let server = "server: https://k8s.example.com";
    let with = |more: &str| kubeconfig("token: hunter2").replace(server, more);
    for (name, line) in [
        ("proxy-url", "server: https://k8s.example.com\n    proxy-url: http://169.254.169.254/"),
        ("certificate-authority", "server: https://k8s.example.com\n    certificate-authority: /etc/hunter2"),
        ("insecure-skip-tls-verify", "server: https://k8s.example.com\n    insecure-skip-tls-verify: true"),
        ("server", "server: http://k8s.example.com"),
        ("server", "server: https://user:hunter2@k8s.example.com"),
        // YAML has escapes of its own, which nobody has looked at before.
        ("server", r#"server: "https://k8s.example.com/\0""#),
        ("server", r#"server: "https://k8s.\nexample.com/""#),
        ("server", r#"server: "https://k8s.example.com/\t""#),
        ("server", &format!("server: https://k8s.example.com/{}", "x".repeat(3000))),
    ] {
        let why = reason(&desk, &with(line)).await;
        assert!(why.contains(&format!("clusters[0].cluster.{name}")), "{why}");
    }
    let good = kubeconfig("token: hunter2");
    for text in [
        good.replace("current-context: ", r#"current-context: "\0" # "#),
        format!("{good}---\n{good}"),
        format!("a: &a [x]\nb: [*a,*a]\n{good}"),
        format!("{good}hunter2: hunter2\n"),
        "x".repeat(200 << 10),
        "hunter2".into(),
    ] {
        reason(&desk, &text).await;
    }
}

#[tokio::test]
async fn a_known_plugin_is_taken_and_an_unchecked_server_only_on_demand() {
    let desk = Desk::new().await;
    let plugin = exec("aws", ", args: [eks, get-token, --cluster-name, prod]");
    let made = desk.register("clusters", json!({"name": "eks", "kubeconfig": plugin})).await;
    assert_eq!(made["server_url"], json!("https://k8s.example.com"));
    assert_eq!(made["kubeconfig"]["masked_tail"], Value::Null, "there is no token to show a piece of");
    assert_eq!(made["default_namespace"], json!("default"));

    let insecure = kubeconfig("token: hunter2-token").replace(
        "server: https://k8s.example.com",
        "server: https://k8s.example.com\n    insecure-skip-tls-verify: true",
    );
    let allowed = json!({"name": "lab", "kubeconfig": insecure, "allow_insecure_tls": true});
    let lab = desk.register("clusters", allowed).await;
    let own = format!("clusters/{}", lab["id"].as_str().unwrap());
    let (status, _, problem) = desk.call("PUT", &own, json!({"allow_insecure_tls": false})).await;
    assert_eq!(
        status,
        StatusCode::UNPROCESSABLE_ENTITY,
        "the kubeconfig that stays is looked at again: {problem}"
    );
}

#[tokio::test]
async fn a_cluster_is_linked_to_an_account_of_its_own_unit_and_holds_it() {
    let desk = Desk::new().await;
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    let mut new = cluster();
    new["aws_account_id"] = json!(ACCOUNT);
    // Another unit's account is no account, as is one that nobody has.
    assert_eq!(desk.call_as(&stranger, "POST", "aws-accounts", aws()).await.0, StatusCode::CREATED);
    let (status, _, problem) = desk.call("POST", "clusters", new.clone()).await;
    assert_eq!((status, &problem["field"]), (StatusCode::UNPROCESSABLE_ENTITY, &json!("aws_account_id")));

    let account = desk.register("aws-accounts", aws()).await;
    let made = desk.register("clusters", new).await;
    let account = format!("aws-accounts/{}", account["id"].as_str().unwrap());
    let (status, _, problem) = desk.call("DELETE", &account, None).await;
    assert_eq!((status, &problem["clusters"]), (StatusCode::CONFLICT, &json!(["prod"])), "{problem}");
    let own = format!("clusters/{}", made["id"].as_str().unwrap());
    let (_, _, unlinked) = desk.call("PUT", &own, json!({"aws_account_id": null})).await;
    assert_eq!(unlinked["aws_account_id"], Value::Null);
    assert_eq!(desk.call("DELETE", &account, None).await.0, StatusCode::NO_CONTENT);
}
