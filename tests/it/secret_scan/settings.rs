//! Secrets among the settings, of cloud accounts and of clusters: each is set and then replaced.

use http::Method;
use plumbline_core::config::{Kind, registry::SETTINGS};
use serde_json::{Value, json};

use super::stage::{Stage, id};

/// The secret settings, and where they are set: the field of an integration, or by their own name.
const PLACES: [(&str, &str, &str); 8] = [
    ("auth.oidc.client_secret", "NewValue.value", "runtime-config/auth.oidc.client_secret"),
    ("infracost.api_key", "InfracostChange.api_key", "integrations/infracost"),
    ("slack.bot_token", "SlackChange.bot_token", "integrations/slack"),
    ("slack.webhook_url", "SlackChange.webhook_url", "integrations/slack"),
    ("smtp.password", "SmtpChange.password", "integrations/smtp"),
    ("webhook.secret", "WebhookChange.secret", "integrations/webhook"),
    ("notification.webhook_url", "NotificationChange.webhook_url", "integrations/notification"),
    ("no setting", "NewValue.value", "runtime-config/auth.bcrypt_cost"),
];

/// Every secret setting.
pub async fn settings(stage: &Stage) {
    for setting in SETTINGS.iter().filter(|setting| matches!(setting.kind, Kind::Secret(_))) {
        assert!(PLACES.iter().any(|(name, ..)| *name == setting.name), "{} is planted nowhere", setting.name);
    }
    for (name, field, path) in PLACES {
        let own = field.split_once('.').unwrap().1;
        let body = |secret: &str| match own {
            "webhook_url" => json!({ own: format!("https://hooks.plumbline.test/services/T0/{secret}") }),
            _ => json!({ own: secret }),
        };
        let make = |what: &str| match own {
            "webhook_url" => stage.plant_plain(field, &format!("{name}, {what}")),
            _ => stage.plant(field, &format!("{name}, {what}")),
        };
        if name == "no setting" {
            // Somebody takes the wrong line.
            let lost = make("in a setting that is a number");
            stage.refused(Method::PUT, path, &stage.admin, body(&lost)).await;
            continue;
        }
        stage.put(path, body(&make("at first"))).await;
        stage.put(path, body(&make("replaced"))).await;
    }
    let gone = stage.plant("InfracostChange.api_key", "deleted");
    stage.put("integrations/infracost", json!({ "api_key": gone })).await;
    stage.delete("integrations/infracost").await;
    stage.post("auth/jwt-secrets", json!({})).await;
}

fn service_account(core: &str) -> String {
    json!({
        "type": "service_account", "project_id": "payments-prod", "private_key_id": "0123456789",
        "private_key": format!("-----BEGIN PRIVATE KEY-----\n{core}/+\n-----END PRIVATE KEY-----\n"),
        "client_email": "plumbline@payments-prod.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    })
    .to_string()
}

fn kubeconfig(core: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n    server: https://k8s.example.com\n\
         contexts:\n- name: c\n  context: {{cluster: k, user: u}}\nusers:\n- name: u\n  user:\n    token: {core}\n"
    )
}

/// Keys of AWS have a shape of their own.
fn access_key(stage: &Stage, schema: &str) -> String {
    let id = format!("AKIA{}", &uuid::Uuid::new_v4().simple().to_string().to_uppercase()[..16]);
    stage.plant_this(&format!("{schema}.access_key_id"), "AWS", &id);
    id
}

/// One account of each kind; what links them to a workspace.
pub async fn accounts(stage: &Stage) -> Value {
    let (subscription, uuid) =
        ("0f9619ff-8b86-d011-b42d-00cf4fc964ff", "0f9619ff-8b86-d011-b42d-00cf4fc964fe");
    let aws = |schema: &str| {
        let secret = stage.plant_plain(&format!("{schema}.secret_access_key"), "AWS");
        json!({ "access_key_id": access_key(stage, schema), "secret_access_key": format!("{secret}/+0123456789abcd") })
    };
    let azure =
        |schema: &str| json!({ "client_secret": stage.plant(&format!("{schema}.client_secret"), "Azure") });
    let gcp = |schema: &str| {
        let core = stage.plant_plain(&format!("{schema}.service_account_json"), "GCP");
        json!({ "service_account_json": service_account(&core) })
    };
    let cluster = |schema: &str| {
        let core = stage.plant_plain(&format!("{schema}.kubeconfig"), "Kubernetes");
        json!({ "kubeconfig": kubeconfig(&core) })
    };
    let with = |mut secrets: Value, more: Value| {
        secrets.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        secrets
    };
    let kinds = [
        (
            "aws-accounts",
            with(
                aws("NewAwsAccount"),
                json!({ "account_id": "123456789012", "name": "payments", "default_region": "eu-central-1" }),
            ),
            aws("AwsAccountChange"),
        ),
        (
            "azure-subscriptions",
            with(
                azure("NewAzureSubscription"),
                json!({ "subscription_id": subscription, "tenant_id": uuid, "client_id": uuid, "name": "payments" }),
            ),
            azure("AzureSubscriptionChange"),
        ),
        (
            "gcp-projects",
            with(gcp("NewGcpProject"), json!({ "project_id": "payments-prod", "name": "payments" })),
            gcp("GcpProjectChange"),
        ),
        ("clusters", with(cluster("NewCluster"), json!({ "name": "prod" })), cluster("ClusterChange")),
    ];
    let mut made = Vec::new();
    for (path, new, change) in kinds {
        let own = format!("{path}/{}", id(&stage.post(path, new).await));
        made.push(stage.put(&own, change).await);
    }
    let tested = stage.post(&format!("aws-accounts/{}/test", id(&made[0])), json!({})).await;
    stage.tried(&tested).await;
    json!({ "state_aws_account_id": "123456789012", "azure_subscription_id": subscription,
            "gcp_project_id": "payments-prod", "cluster_id": id(&made[3]) })
}

/// What is refused is not kept either, nor repeated.
pub async fn refusals(stage: &Stage) {
    let lost = |field: &str, what: &str| stage.plant_plain(field, what);
    let broken_config = |core: &str| kubeconfig(core).replace("users:", "users: [\"");
    let executed = |core: &str| {
        kubeconfig(core).replace("token:", "exec: {command: sh, args: [\"-c\", \"\"]}\n    token:")
    };
    let git = |more: Value| {
        let mut new = json!({ "name": "lost", "kind": "ssh_key", "host": "git.plumbline.test", "host_keys": ["SHA256:x"] });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        new
    };
    let cases = [
        (
            "clusters",
            json!({ "name": "a", "kubeconfig": broken_config(&lost("NewCluster.kubeconfig", "not YAML")) }),
        ),
        (
            "clusters",
            json!({ "name": "b", "kubeconfig": executed(&lost("NewCluster.kubeconfig", "with a program")) }),
        ),
        ("clusters", json!({ "name": "c", "kubeconfig": [lost("NewCluster.kubeconfig", "in a list")] })),
        (
            "gcp-projects",
            json!({ "project_id": "other-project", "name": "a",
            "service_account_json": format!("{{\"type\": {}}}", lost("NewGcpProject.service_account_json", "not JSON")) }),
        ),
        (
            "gcp-projects",
            json!({ "project_id": "other-project", "name": "a",
            "service_account_json": json!({ "type": lost("NewGcpProject.service_account_json", "of another type") }).to_string() }),
        ),
        (
            "aws-accounts",
            json!({ "account_id": "210987654321", "name": "a",
            "access_key_id": lost("NewAwsAccount.access_key_id", "in the wrong order") + "/+" }),
        ),
        ("git-credentials", git(json!({ "private_key": lost("NewGitCredential.private_key", "not a key") }))),
        ("git-credentials", git(json!({ "token": lost("NewGitCredential.token", "of the wrong kind") }))),
        (
            "git-credentials",
            git(json!({ "token": { "value": lost("NewGitCredential.token", "in an object") } })),
        ),
        (
            "users",
            json!({ "email": "a@plumbline.test", "password": { "text": lost("NewUser.password", "in an object") } }),
        ),
        (
            "workspaces",
            json!({ "name": "w", "environment": "dev",
            "repo_url": format!("https://robot:{}@git.plumbline.test/infra.git", lost("no field", "a login in an address")) }),
        ),
        (
            "variables",
            json!({ "key": "lost", "is_secret": true, "is_hcl": true,
            "value": format!("{{ a = \"{}\" ", lost("NewVariable.value", "no expression")) }),
        ),
        (
            "auth/token",
            json!({ "email": "a@plumbline.test", "password": [lost("Credentials.password", "in a list")] }),
        ),
    ];
    for (path, body) in cases {
        stage.refused(Method::POST, path, &stage.admin, body).await;
    }
    let hook = lost("NotificationChange.webhook_url", "without encryption");
    let insecure = json!({ "webhook_url": format!("http://hooks.plumbline.test/{hook}") });
    stage.refused(Method::PUT, "integrations/notification", &stage.admin, insecure).await;
}
