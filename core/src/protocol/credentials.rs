//! Cloud credentials of one phase of one run. None of them goes to anything but the calls of that phase which may reach the
//! cloud.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};

/// Keys that sign requests to AWS.
#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwsKeys {
    /// Names the secret; short keys of a session begin with `ASIA`.
    pub access_key_id: String,
    /// The secret.
    pub secret_access_key: String,
    /// With the keys of a session.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_token: Option<String>,
}

impl std::fmt::Debug for AwsKeys {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AwsKeys(..)")
    }
}

/// How the phase gets into an AWS account.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwsCredentials {
    /// Keys of a user; `None`: the executor's own role assumes the role.
    pub keys: Option<AwsKeys>,
    /// The role to assume; `None`: the keys themselves are used.
    pub role: Option<AwsRole>,
    /// Whether the role is assumed with a token of the installation's own issuer, and with no keys.
    #[serde(default)]
    pub web_identity: bool,
    /// Where STS is asked for the role.
    pub sts_region: String,
    /// Where calls go that name no region.
    pub region: String,
    /// A name for the credentials, for configurations that ask for one.
    pub profile: Option<String>,
}

/// A role, and what its session is called and may do.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct AwsRole {
    /// The role.
    pub role_arn: String,
    /// What its trust policy asks for.
    pub external_id: String,
    /// Names the run in the cloud's own log.
    pub session_name: String,
    /// The session's life.
    pub duration_seconds: i32,
    /// Takes rights away from the session.
    pub session_policy: Option<String>,
    /// What policies of the account can ask for.
    pub tags: BTreeMap<String, String>,
}

/// How the phase gets into a Kubernetes cluster.
#[derive(Clone, Serialize, Deserialize)]
pub struct ClusterAccess {
    /// A kubeconfig with one context, as JSON.
    pub kubeconfig: String,
    /// Instead of the kubeconfig's own user: a token for an EKS cluster.
    pub eks: Option<EksAccess>,
}

/// Whose token opens an EKS cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct EksAccess {
    /// The cluster's name at AWS.
    pub cluster_name: String,
    /// Who asks for it.
    pub aws: AwsCredentials,
}
