//! Clusters as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::cloud_accounts::MaskedSecret;
use crate::ids::{BusinessUnitId, ClusterId};
use crate::secrets::SecretText;
use crate::workspaces::present;

/// What can be changed of a cluster, the kubeconfig aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterFields {
    /// For people; unique in the business unit.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// The namespace of charts that name none.
    pub default_namespace: String,
    /// A registered AWS account whose credentials a plugin of the kubeconfig uses.
    pub aws_account_id: Option<String>,
    /// Whether the kubeconfig may leave the server's certificate unchecked.
    pub allow_insecure_tls: bool,
}

/// A registered cluster, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct Cluster {
    /// Its id.
    pub id: ClusterId,
    /// Whose it is.
    pub business_unit_id: BusinessUnitId,
    /// Its API server, as the kubeconfig names it.
    pub server_url: String,
    /// What can be changed.
    #[serde(flatten)]
    pub fields: ClusterFields,
    /// How to get in; the tail is that of its token, if it has one.
    pub kubeconfig: MaskedSecret,
    /// Rises at every edit: the value behind `ETag` and `If-Match`.
    pub version: i32,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

/// A cluster to register, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of Cluster")]
pub struct NewCluster {
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    /// If given, it must be the server of the kubeconfig's current context.
    #[serde(default)]
    pub server_url: Option<String>,
    #[serde(default = "default_namespace")]
    pub default_namespace: String,
    #[serde(default)]
    pub aws_account_id: Option<String>,
    #[serde(default)]
    pub allow_insecure_tls: bool,
    /// YAML or JSON. Its current context is kept, and nothing else.
    #[schema(value_type = String, format = Password)]
    pub kubeconfig: SecretText,
}

fn default_namespace() -> String {
    "default".into()
}

impl NewCluster {
    /// Changeable fields, kubeconfig and the server that is expected in it; still to be checked.
    pub(super) fn split(self) -> (ClusterFields, SecretText, Option<String>) {
        let fields = ClusterFields {
            name: self.name,
            description: self.description,
            default_namespace: self.default_namespace,
            aws_account_id: self.aws_account_id,
            allow_insecure_tls: self.allow_insecure_tls,
        };
        (fields, self.kubeconfig, self.server_url)
    }
}

/// An edit: what is absent stays as it is, `null` clears.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of Cluster")]
pub struct ClusterChange {
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    /// If given, it must be the server of the kubeconfig's current context.
    #[serde(default)]
    pub server_url: Option<String>,
    #[serde(default)]
    pub default_namespace: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub aws_account_id: Option<Option<String>>,
    #[serde(default)]
    pub allow_insecure_tls: Option<bool>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub kubeconfig: Option<SecretText>,
}

impl ClusterChange {
    /// What the cluster would be after the edit, and what it names of secrets; still to be checked.
    pub(super) fn over(self, now: ClusterFields) -> (ClusterFields, Option<SecretText>, Option<String>) {
        let fields = ClusterFields {
            name: self.name.unwrap_or(now.name),
            description: self.description.unwrap_or(now.description),
            default_namespace: self.default_namespace.unwrap_or(now.default_namespace),
            aws_account_id: self.aws_account_id.unwrap_or(now.aws_account_id),
            allow_insecure_tls: self.allow_insecure_tls.unwrap_or(now.allow_insecure_tls),
        };
        (fields, self.kubeconfig, self.server_url)
    }
}

/// What a test found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ClusterTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
    /// What the kubeconfig calls it.
    pub context: Option<String>,
    /// What the API server is.
    pub server_version: Option<String>,
}
