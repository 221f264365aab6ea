//! Cloud accounts and clusters.

use serde_json::{Value, json};

use super::Row;
use super::Scripts::{Get, Nothing};
use super::world::id;

const AWS: &str = "id A\nname payments\naccount_id 123456789012\nsecret_access_key …abcd\naccess_key_id none";
const AZURE: &str = "id A\nname payments\nsubscription_id s-1\nclient_secret …abcd";
const GCP: &str = "id A\nname payments\nproject_id payments-prod\nservice_account_json set";
const CLUSTER: &str =
    "id A\nname prod\nserver_url https://k8s.example.com\nkubeconfig unreadable: replace it";

/// The routes that are called, with what they answer.
pub(super) fn replies() -> Vec<(&'static str, u16, Value)> {
    let mask = |tail: Value| json!({ "configured": true, "masked_tail": tail, "unreadable": false });
    let none = json!({ "configured": false, "masked_tail": null, "unreadable": false });
    let unreadable = json!({ "configured": true, "masked_tail": null, "unreadable": true });
    let aws = json!({ "id": id('A'), "name": "payments", "account_id": "123456789012",
        "secret_access_key": mask(json!("abcd")), "access_key_id": none });
    let azure = json!({ "id": id('A'), "name": "payments", "subscription_id": "s-1", "client_secret": mask(json!("abcd")) });
    let gcp = json!({ "id": id('A'), "name": "payments", "project_id": "payments-prod",
        "service_account_json": mask(Value::Null) });
    let cluster = json!({ "id": id('A'), "name": "prod", "server_url": "https://k8s.example.com", "kubeconfig": unreadable });
    let items = |item: &Value| json!({ "items": [item] });
    vec![
        ("GET /aws-accounts", 200, items(&aws)),
        ("POST /aws-accounts", 201, aws.clone()),
        ("GET /aws-accounts/A", 200, aws.clone()),
        ("PUT /aws-accounts/A", 200, aws),
        ("DELETE /aws-accounts/A", 204, Value::Null),
        ("POST /aws-accounts/A/test", 202, json!({ "task_id": id('T') })),
        ("POST /azure-subscriptions/A/test", 202, json!({ "task_id": id('T') })),
        ("POST /gcp-projects/A/test", 202, json!({ "task_id": id('T') })),
        ("POST /clusters/A/test", 202, json!({ "task_id": id('T') })),
        ("GET /azure-subscriptions", 200, items(&azure)),
        ("POST /azure-subscriptions", 201, azure.clone()),
        ("GET /azure-subscriptions/A", 200, azure.clone()),
        ("PUT /azure-subscriptions/A", 200, azure),
        ("DELETE /azure-subscriptions/A", 204, Value::Null),
        ("GET /gcp-projects", 200, items(&gcp)),
        ("POST /gcp-projects", 201, gcp.clone()),
        ("GET /gcp-projects/A", 200, gcp.clone()),
        ("PUT /gcp-projects/A", 200, gcp),
        ("DELETE /gcp-projects/A", 204, Value::Null),
        ("GET /clusters", 200, items(&cluster)),
        ("POST /clusters", 201, cluster.clone()),
        ("GET /clusters/A", 200, cluster.clone()),
        ("PUT /clusters/A", 200, cluster),
        ("DELETE /clusters/A", 204, Value::Null),
    ]
}

/// Every command.
pub(super) fn rows() -> Vec<Row> {
    let mut rows = vec![
        (
            "account aws create 123456789012 --name payments --plan-role none --session-duration 900",
            r#"POST /aws-accounts {"account_id":"123456789012","name":"payments","plan_role_arn":null,"session_duration_seconds":900}"#,
            Get("POST /aws-accounts"),
            AWS,
        ),
        (
            "account azure create s-1 --name payments --tenant-id t --client-id c",
            r#"POST /azure-subscriptions {"client_id":"c","name":"payments","subscription_id":"s-1","tenant_id":"t"}"#,
            Get("POST /azure-subscriptions"),
            AZURE,
        ),
        (
            "account azure update payments --no-secret --oidc-audience api://x",
            r#"PUT /azure-subscriptions/A {"client_secret":null,"oidc_audience":"api://x"}"#,
            Get("PUT /azure-subscriptions/A"),
            AZURE,
        ),
        (
            "account gcp update A --no-key --workload-identity-provider p --service-account e",
            r#"PUT /gcp-projects/A {"client_email":"e","service_account_json":null,"workload_identity_provider":"p"}"#,
            Get("PUT /gcp-projects/A"),
            GCP,
        ),
        (
            "account gcp create payments-prod --name payments",
            r#"POST /gcp-projects {"name":"payments","project_id":"payments-prod"}"#,
            Get("POST /gcp-projects"),
            GCP,
        ),
        (
            "cluster create --name prod --allow-insecure-tls false",
            r#"POST /clusters {"allow_insecure_tls":false,"name":"prod"}"#,
            Get("POST /clusters"),
            CLUSTER,
        ),
        (
            "account aws test A",
            "POST /aws-accounts/A/test",
            Get("GET /tasks/T"),
            "It works: AWS knows the keys as arn:aws:iam::123456789012:user/plumbline.",
        ),
        (
            "account azure test A",
            "POST /azure-subscriptions/A/test",
            Get("GET /tasks/T"),
            "It works: it sees the subscription Payments.",
        ),
        (
            "account gcp test A",
            "POST /gcp-projects/A/test",
            Get("GET /tasks/T"),
            "It works: Google knows the key of plumbline@p.iam.gserviceaccount.com.",
        ),
        (
            "cluster test A",
            "POST /clusters/A/test",
            Get("GET /tasks/T"),
            "It works: the server is Kubernetes v1.33.1.",
        ),
    ];
    rows.extend(alike());
    rows
}

/// What the commands of every kind do alike.
fn alike() -> Vec<Row> {
    vec![
        (
            "account aws list",
            "GET /aws-accounts",
            Get("GET /aws-accounts"),
            "ID NAME ACCOUNT SECRET\nA payments 123456789012 …abcd",
        ),
        ("account aws show A", "GET /aws-accounts/A", Get("GET /aws-accounts/A"), AWS),
        (
            "account aws update A --description none",
            r#"PUT /aws-accounts/A {"description":null}"#,
            Get("PUT /aws-accounts/A"),
            AWS,
        ),
        ("account aws delete A --yes", "DELETE /aws-accounts/A", Nothing, "Forgot AWS account payments."),
        (
            "account azure list",
            "GET /azure-subscriptions",
            Get("GET /azure-subscriptions"),
            "ID NAME ACCOUNT SECRET\nA payments s-1 …abcd",
        ),
        (
            "account azure show payments",
            "GET /azure-subscriptions/A",
            Get("GET /azure-subscriptions/A"),
            AZURE,
        ),
        (
            "account azure update payments --description none",
            r#"PUT /azure-subscriptions/A {"description":null}"#,
            Get("PUT /azure-subscriptions/A"),
            AZURE,
        ),
        (
            "account azure delete payments --yes",
            "DELETE /azure-subscriptions/A",
            Nothing,
            "Forgot Azure subscription payments.",
        ),
        (
            "account gcp list",
            "GET /gcp-projects",
            Get("GET /gcp-projects"),
            "ID NAME ACCOUNT SECRET\nA payments payments-prod set",
        ),
        ("account gcp show A", "GET /gcp-projects/A", Get("GET /gcp-projects/A"), GCP),
        (
            "account gcp update A --description none",
            r#"PUT /gcp-projects/A {"description":null}"#,
            Get("PUT /gcp-projects/A"),
            GCP,
        ),
        ("account gcp delete A --yes", "DELETE /gcp-projects/A", Nothing, "Forgot GCP project payments."),
        (
            "cluster list",
            "GET /clusters",
            Get("GET /clusters"),
            "ID NAME ACCOUNT SECRET\nA prod https://k8s.example.com unreadable: replace it",
        ),
        ("cluster show A", "GET /clusters/A", Get("GET /clusters/A"), CLUSTER),
        (
            "cluster update A --description none",
            r#"PUT /clusters/A {"description":null}"#,
            Get("PUT /clusters/A"),
            CLUSTER,
        ),
        ("cluster delete A --yes", "DELETE /clusters/A", Nothing, "Forgot cluster prod."),
    ]
}
