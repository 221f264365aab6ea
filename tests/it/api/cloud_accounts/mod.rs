//! Cloud accounts over HTTP, and what runs get of them.

mod bundles;
mod clusters;
mod kinds;
mod links;
mod testing;

use http::StatusCode;
use plumbline_core::access::Role;
use plumbline_core::db::Query as _;
use serde_json::{Value, json};

use crate::plane::{Answer, TestPlane};

/// In every secret that these tests plant.
pub(crate) const MARK: &str = "hunter2";
pub(crate) const ACCOUNT: &str = "123456789012";
pub(crate) const SUBSCRIPTION: &str = "0f9619ff-8b86-d011-b42d-00cf4fc964ff";
pub(crate) const PROJECT: &str = "payments-prod";
pub(crate) const SECRET_KEY: &str = "hunter2+hunter2/hunter2+hunter2/0123abcd";

/// One kind of account: its path, a body that registers one, its secret field with another secret, and its table.
pub(crate) struct Kind {
    pub(crate) path: &'static str,
    pub(crate) new: fn() -> Value,
    pub(crate) secret: &'static str,
    pub(crate) replacement: fn() -> Value,
    pub(crate) sealed: (&'static str, &'static str),
    /// What identifies it within the unit.
    pub(crate) identity: &'static str,
    /// The field of a workspace that links it, and whether it is this field's value or the row's id.
    pub(crate) link: &'static str,
    pub(crate) linked_by: &'static str,
    pub(crate) audited: &'static str,
}

pub(crate) const KINDS: [Kind; 4] = [
    Kind {
        path: "aws-accounts",
        new: aws,
        secret: "secret_access_key",
        replacement: || json!({"access_key_id": "AKIAZZZZZZZZZZZZ9999", "secret_access_key": "hunter2-replaced-9876"}),
        sealed: ("aws_accounts", "keys_sealed"),
        identity: "account_id",
        link: "state_aws_account_id",
        linked_by: "account_id",
        audited: "aws_account",
    },
    Kind {
        path: "azure-subscriptions",
        new: azure,
        secret: "client_secret",
        replacement: || json!({"client_secret": "hunter2-replaced-9876"}),
        sealed: ("azure_subscriptions", "client_secret_sealed"),
        identity: "subscription_id",
        link: "azure_subscription_id",
        linked_by: "subscription_id",
        audited: "azure_subscription",
    },
    Kind {
        path: "gcp-projects",
        new: gcp,
        secret: "service_account_json",
        replacement: || json!({"service_account_json": service_account("abcdef019876")}),
        sealed: ("gcp_projects", "service_account_sealed"),
        identity: "project_id",
        link: "gcp_project_id",
        linked_by: "project_id",
        audited: "gcp_project",
    },
    Kind {
        path: "clusters",
        new: cluster,
        secret: "kubeconfig",
        replacement: || json!({"kubeconfig": kubeconfig("token: hunter2-replaced-9876")}),
        sealed: ("clusters", "kubeconfig_sealed"),
        identity: "name",
        link: "cluster_id",
        linked_by: "id",
        audited: "cluster",
    },
];

pub(crate) fn aws() -> Value {
    json!({
        "account_id": ACCOUNT, "name": "payments", "default_region": "eu-central-1",
        "access_key_id": "AKIA0123456789ABCDEF", "secret_access_key": SECRET_KEY,
    })
}

pub(crate) fn azure() -> Value {
    json!({
        "subscription_id": SUBSCRIPTION, "tenant_id": "0f9619ff-8b86-d011-b42d-00cf4fc964fe",
        "client_id": "0f9619ff-8b86-d011-b42d-00cf4fc964fd", "client_secret": "hunter2~azure~abcd", "name": "payments",
    })
}

pub(crate) fn gcp() -> Value {
    json!({ "project_id": PROJECT, "name": "payments", "service_account_json": service_account("0123456789abcd") })
}

pub(crate) fn service_account(key_id: &str) -> String {
    json!({
        "type": "service_account",
        "project_id": PROJECT,
        "private_key_id": key_id,
        "private_key": "-----BEGIN PRIVATE KEY-----\nhunter2gcp0123456789\n-----END PRIVATE KEY-----\n",
        "client_email": "plumbline@payments-prod.iam.gserviceaccount.com",
        "token_uri": "https://oauth2.googleapis.com/token",
    })
    .to_string()
}

pub(crate) fn cluster() -> Value {
    json!({ "name": "prod", "kubeconfig": kubeconfig("token: hunter2-kubernetes-abcd") })
}

/// A kubeconfig whose only user gets in like this.
pub(crate) fn kubeconfig(user: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: c\nclusters:\n- name: k\n  cluster:\n    server: https://k8s.example.com\n\
         contexts:\n- name: c\n  context: {{cluster: k, user: u}}\nusers:\n- name: u\n  user:\n    {user}\n"
    )
}

/// A plane with an admin of the unit `default`.
pub(crate) struct Desk {
    pub(crate) plane: TestPlane,
    pub(crate) admin: String,
}

impl Desk {
    pub(crate) async fn new() -> Self {
        Self::on(TestPlane::start().await).await
    }

    pub(crate) async fn on(plane: TestPlane) -> Self {
        let admin = plane.user(Role::Admin).await;
        Self { plane, admin }
    }

    pub(crate) async fn call(&self, method: &str, path: &str, body: impl Into<Option<Value>>) -> Answer {
        self.call_as(&self.admin, method, path, body).await
    }

    pub(crate) async fn call_as(
        &self,
        token: &str,
        method: &str,
        path: &str,
        body: impl Into<Option<Value>>,
    ) -> Answer {
        let path = format!("/api/v1/{path}");
        self.plane.call_with(method, &path, token, body, &[("if-match", "*")]).await
    }

    /// Registers an account, and gives it.
    pub(crate) async fn register(&self, path: &str, new: Value) -> Value {
        let (status, _, made) = self.call("POST", path, new).await;
        assert_eq!(status, StatusCode::CREATED, "{made}");
        made
    }

    /// A workspace with more fields than it needs.
    pub(crate) async fn workspace(&self, name: &str, more: Value) -> Answer {
        self.workspace_as(&self.admin, name, more).await
    }

    pub(crate) async fn workspace_as(&self, token: &str, name: &str, more: Value) -> Answer {
        let mut new = json!({
            "name": name, "environment": "dev", "repo_url": "https://git.example.com/infra.git", "tf_working_dir": name,
        });
        new.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        self.call_as(token, "POST", "workspaces", new).await
    }

    /// What the whole database holds, as text.
    pub(crate) async fn dump(&self) -> String {
        self.plane.every_row().await.into_values().collect()
    }

    /// Audit entries of one action, newest first.
    pub(crate) async fn entries(&self, action: &str) -> Vec<Value> {
        let (_, _, log) = self.call("GET", &format!("audit?action={action}"), None).await;
        log["items"].as_array().unwrap().clone()
    }

    /// Makes the sealed column of every row unreadable, as another root key would.
    pub(crate) async fn spoil(&self, (table, column): (&str, &str)) {
        let conn = self.plane.db().conn().await.unwrap();
        conn.execute(&format!("UPDATE {table} SET {column} = 'ffffffff:spoiled'"), &[]).await.unwrap();
    }
}
