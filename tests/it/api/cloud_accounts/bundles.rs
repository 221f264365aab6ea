//! What a phase of a run gets of its workspace's accounts, and what is left behind of it.

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::protocol::RunPhase;
use serde_json::{Value, json};

use super::*;
use crate::executors::{ADDS_ONE, FakeExecutor, claim_and_prepare, nonce, trade};

impl Desk {
    async fn trigger(&self, workspace: &Value, command: &str) -> String {
        let body = json!({"workspace_id": workspace["id"], "command": command});
        let (status, _, run) = self.call("POST", "runs", body).await;
        assert_eq!(status, StatusCode::CREATED, "{run}");
        run["id"].as_str().unwrap().to_owned()
    }

    async fn run(&self, id: &str) -> Value {
        self.call("GET", &format!("runs/{id}"), None).await.2
    }

    async fn linked(&self, name: &str, more: Value) -> Value {
        let (status, _, workspace) = self.workspace(name, more).await;
        assert_eq!(status, StatusCode::CREATED, "{workspace}");
        workspace
    }
}

#[tokio::test]
async fn a_run_gets_what_its_workspace_is_linked_to_and_says_which() {
    let desk = Desk::new().await;
    let mut account = aws();
    account["aws_profile_name"] = json!("payments");
    desk.register("aws-accounts", account).await;
    desk.register("azure-subscriptions", azure()).await;
    desk.register("gcp-projects", gcp()).await;
    let cluster = desk.register("clusters", cluster()).await;
    let links = json!({
        "aws_account_id": ACCOUNT, "region": "eu-west-1", "azure_subscription_id": SUBSCRIPTION,
        "gcp_project_id": PROJECT, "cluster_id": cluster["id"],
    });
    let workspace = desk.linked("net", links).await;
    let run = desk.trigger(&workspace, "plan").await;
    let executor = FakeExecutor::start(&desk.plane).await;

    let bundle = &executor.bundle;
    let aws = bundle.aws.as_ref().expect("AWS");
    let keys = aws.keys.as_ref().expect("static keys");
    assert_eq!((&*keys.access_key_id, &*keys.secret_access_key), ("AKIA0123456789ABCDEF", SECRET_KEY));
    assert_eq!((aws.role.is_none(), &*aws.region, &*aws.sts_region), (true, "eu-west-1", "eu-central-1"));
    assert_eq!(aws.profile.as_deref(), Some("payments"));
    let environment = |name: &str| bundle.environment[name].as_str();
    assert_eq!(environment("ARM_SUBSCRIPTION_ID"), SUBSCRIPTION);
    assert_eq!(environment("ARM_CLIENT_SECRET"), "hunter2~azure~abcd");
    let key: Value = serde_json::from_str(environment("GOOGLE_CREDENTIALS")).unwrap();
    assert_eq!(key["project_id"], json!(PROJECT));
    assert_eq!((environment("GOOGLE_PROJECT"), environment("GOOGLE_REGION")), (PROJECT, "us-central1"));
    let kubeconfig = &bundle.cluster.as_ref().expect("a cluster").kubeconfig;
    assert!(kubeconfig.contains("hunter2-kubernetes-abcd"), "{kubeconfig}");
    assert!(bundle.secrets.iter().any(|secret| secret.contains("hunter2gcp")));

    let shown = desk.run(&run).await;
    let accounts: Vec<(&str, &str)> = shown["credentials"]
        .as_array()
        .unwrap()
        .iter()
        .map(|one| (one["cloud"].as_str().unwrap(), one["account"].as_str().unwrap()))
        .collect();
    let all = [("aws", ACCOUNT), ("azure", SUBSCRIPTION), ("gcp", PROJECT), ("kubernetes", "prod")];
    assert_eq!(accounts, all);
    let entries = desk.entries("credentials.use").await;
    let mut used: Vec<&str> = entries.iter().map(|entry| entry["resource_id"].as_str().unwrap()).collect();
    used.sort_unstable();
    assert_eq!(used, [SUBSCRIPTION, ACCOUNT, PROJECT, "prod"]);
    for entry in &entries {
        assert_eq!((&entry["run_id"], &entry["details"]["phase"]), (&json!(run), &json!("plan")), "{entry}");
        assert_eq!((&entry["workspace_id"], &entry["user_id"]), (&workspace["id"], &Value::Null));
    }
    // The same ticket again is the same trade.
    assert_eq!(trade(&desk.plane, &executor.launch.ticket, &nonce(1)).await.0, StatusCode::OK);
    assert_eq!(desk.entries("credentials.use").await.len(), 4);
    assert!(!desk.dump().await.contains(MARK), "the run left nothing of it in the database");
}

#[tokio::test]
async fn a_session_that_a_role_asks_for_lasts_an_hour_at_most() {
    let desk = Desk::new().await;
    let role = format!("arn:aws:iam::{ACCOUNT}:role/x");
    let mut new = json!({
        "account_id": ACCOUNT, "name": "keyless", "plan_role_arn": role, "apply_role_arn": role,
        "session_duration_seconds": 7200,
    });
    let (status, _, problem) = desk.call("POST", "aws-accounts", new.clone()).await;
    let refusal = (status, &problem["field"]);
    assert_eq!(refusal, (StatusCode::UNPROCESSABLE_ENTITY, &json!("session_duration_seconds")), "{problem}");
    new["session_duration_seconds"] = json!(3600);
    let (status, _, made) = desk.call("POST", "aws-accounts", new).await;
    assert_eq!(status, StatusCode::CREATED, "{made}");
}

#[tokio::test]
async fn plan_and_apply_act_in_roles_of_their_own_with_tags_that_name_the_run() {
    let desk = Desk::new().await;
    let role = |name: &str| format!("arn:aws:iam::{ACCOUNT}:role/{name}");
    let mut new = aws();
    new["plan_role_arn"] = json!(role("plan"));
    new["apply_role_arn"] = json!(role("apply"));
    new["session_duration_seconds"] = json!(7200);
    new["session_policy"] = json!({"Version": "2012-10-17", "Statement": []});
    let account = desk.register("aws-accounts", new).await;
    let workspace = desk.linked("net", json!({"state_aws_account_id": ACCOUNT})).await;
    let run = desk.trigger(&workspace, "apply").await;

    let planner = FakeExecutor::start(&desk.plane).await;
    let check = |executor: &FakeExecutor<'_>, phase: &str| {
        let aws = executor.bundle.aws.clone().expect("AWS");
        let asked = aws.role.expect("a role");
        assert!(aws.keys.is_some(), "what asks for the role");
        assert_eq!(asked.role_arn, role(phase));
        assert_eq!(json!(asked.external_id), account["external_id"]);
        // A plan has an hour; its session is of no use afterwards.
        let seconds = if phase == "plan" { 3600 } else { 7200 };
        assert_eq!((asked.session_name, asked.duration_seconds), (format!("plumbline-{run}"), seconds));
        assert!(asked.session_policy.expect("a policy").contains("2012-10-17"));
        let tags = json!(asked.tags);
        let expected = json!({
            "plumbline:unit": "default", "plumbline:workspace": workspace["id"],
            "plumbline:run": run, "plumbline:phase": phase,
        });
        assert_eq!(tags, expected);
    };
    check(&planner, "plan");
    assert_eq!(planner.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);
    let (status, _, answer) = desk.call("POST", &format!("approvals/{run}/approve"), json!({})).await;
    assert_eq!(status, StatusCode::OK, "{answer}");
    let applier = FakeExecutor::start(&desk.plane).await;
    assert_eq!(applier.bundle.phase, RunPhase::Apply);
    check(&applier, "apply");
    let shown = desk.run(&run).await["credentials"].clone();
    let expected = json!([
        {"phase": "plan", "cloud": "aws", "account": ACCOUNT, "role_arn": role("plan")},
        {"phase": "apply", "cloud": "aws", "account": ACCOUNT, "role_arn": role("apply")},
    ]);
    assert_eq!(shown, expected);
}

#[tokio::test]
async fn a_place_that_is_not_registered_gives_no_credentials_and_the_run_says_so() {
    let desk = Desk::new().await;
    let other = desk.plane.unit("other").await;
    let stranger = desk.plane.member(other, Role::Admin).await;
    // Another unit's account of this number is not looked at.
    assert_eq!(desk.call_as(&stranger, "POST", "aws-accounts", aws()).await.0, StatusCode::CREATED);
    let workspace = desk.linked("net", json!({"aws_account_id": ACCOUNT})).await;
    let run = desk.trigger(&workspace, "plan").await;
    let executor = FakeExecutor::start(&desk.plane).await;
    assert!(executor.bundle.aws.is_none() && executor.bundle.environment.is_empty());
    let shown = desk.run(&run).await["credentials"].clone();
    assert_eq!((&shown[0]["account"], shown[0]["missing"].is_string()), (&json!(ACCOUNT), true), "{shown}");
    assert!(desk.entries("credentials.use").await.is_empty());
    assert_eq!(executor.plan(ADDS_ONE).await.0, StatusCode::NO_CONTENT);

    let workspace = desk.linked("dns", json!({})).await;
    let run = desk.trigger(&workspace, "plan").await;
    let executor = FakeExecutor::start(&desk.plane).await;
    assert!(executor.bundle.aws.is_none());
    assert_eq!(desk.run(&run).await["credentials"], json!([]), "in no account nothing is missing");
}

#[tokio::test]
async fn credentials_that_cannot_be_opened_fail_the_run_with_a_reason_and_nothing_is_handed_out() {
    let desk = Desk::new().await;
    for kind in &KINDS {
        let account = desk.register(kind.path, (kind.new)()).await;
        let workspace = desk.linked(kind.path, json!({kind.link: account[kind.linked_by]})).await;
        desk.spoil(kind.sealed).await;
        let run = desk.trigger(&workspace, "plan").await;
        let (_, launch) = claim_and_prepare(&desk.plane).await.expect("a task is due");
        let (status, answer) = trade(&desk.plane, &launch.ticket, &nonce(1)).await;
        assert_eq!(status, StatusCode::GONE, "{}: {answer}", kind.path);
        let shown = desk.run(&run).await;
        let error = shown["error"].as_str().unwrap_or_default().to_owned();
        assert_eq!(shown["status"], json!("failed"), "{shown}");
        assert!(error.contains("cannot be used") && error.contains("another root key"), "{error}");
        let named = account[kind.identity].as_str().unwrap();
        assert!(error.contains(named), "{error} names {named}");
        assert!(desk.entries("credentials.use").await.is_empty());
    }
}

#[tokio::test]
async fn an_eks_cluster_is_opened_with_the_account_that_it_is_linked_to() {
    let desk = Desk::new().await;
    desk.register("aws-accounts", aws()).await;
    let plugin = |more: &str| {
        kubeconfig(&format!(
            "exec: {{apiVersion: client.authentication.k8s.io/v1beta1, command: aws, args: [eks, get-token, --cluster-name, prod-1{more}]}}"
        ))
    };
    for (name, more, is_ours) in
        [("plain", "", true), ("other-role", ", --role-arn, 'arn:aws:iam::1:role/x'", false)]
    {
        let new = json!({"name": name, "kubeconfig": plugin(more), "aws_account_id": ACCOUNT});
        let cluster = desk.register("clusters", new).await;
        let workspace = desk.linked(name, json!({"cluster_id": cluster["id"]})).await;
        desk.trigger(&workspace, "plan").await;
        let executor = FakeExecutor::start(&desk.plane).await;
        let access = executor.bundle.cluster.as_ref().expect("a cluster");
        let eks = access.eks.as_ref();
        assert_eq!(eks.map(|eks| eks.cluster_name.as_str()), is_ours.then_some("prod-1"), "{name}");
        assert!(executor.bundle.aws.is_none(), "the workspace itself is in no account");
    }
}
