//! Views of people, keys, credentials and settings.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

/// How people sign in at a server.
#[derive(Clone, Debug, Deserialize)]
pub struct AuthConfig {
    #[serde(default)]
    pub oidc_enabled: bool,
    #[serde(default)]
    pub cli_loopback: bool,
}

/// The signed-in person.
#[derive(Clone, Debug, Deserialize)]
pub struct Me {
    pub email: String,
    #[serde(default)]
    pub display_name: Option<String>,
    #[serde(default)]
    pub is_superadmin: bool,
    #[serde(default)]
    pub must_change_password: bool,
    #[serde(default)]
    pub memberships: Vec<Membership>,
}

/// A person.
#[derive(Clone, Debug, Deserialize)]
pub struct User {
    pub id: String,
    pub email: String,
    pub display_name: Option<String>,
    #[serde(default)]
    pub is_superadmin: bool,
    pub disabled_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub must_change_password: bool,
    pub invite_expires_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub memberships: Vec<Membership>,
}

/// A one-time way in.
#[derive(Clone, Deserialize)]
pub struct Invite {
    pub token: String,
    pub expires_at: Option<DateTime<Utc>>,
}

impl std::fmt::Debug for Invite {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Invite").field("expires_at", &self.expires_at).finish_non_exhaustive()
    }
}

/// A sign-in that goes on.
#[derive(Clone, Debug, Deserialize)]
pub struct Session {
    pub id: String,
    #[serde(default)]
    pub current: bool,
    pub created_at: Option<DateTime<Utc>>,
    pub refreshed_at: Option<DateTime<Utc>>,
    pub address: Option<String>,
    pub user_agent: Option<String>,
}

/// A role in a business unit.
#[derive(Clone, Debug, Deserialize)]
pub struct Membership {
    pub slug: String,
    #[serde(default)]
    pub name: String,
    pub role: String,
}

/// A tenant.
#[derive(Clone, Debug, Deserialize)]
pub struct BusinessUnit {
    pub id: String,
    pub slug: String,
    #[serde(default)]
    pub name: String,
}

/// What lets Git into a unit's repositories.
#[derive(Clone, Debug, Deserialize)]
pub struct GitCredential {
    pub id: String,
    pub name: String,
    pub kind: String,
    pub host: String,
    #[serde(default)]
    pub path_prefix: String,
    pub username: Option<String>,
    pub secret: MaskedSecret,
    pub public_key: Option<String>,
    #[serde(default)]
    pub host_keys: Vec<String>,
    pub app_id: Option<String>,
    pub installation_id: Option<i64>,
    pub api_url: Option<String>,
    pub test_repo_url: Option<String>,
    pub last_used_at: Option<DateTime<Utc>>,
}

/// What may be seen of a secret.
#[derive(Clone, Debug, Deserialize)]
pub struct MaskedSecret {
    pub masked_tail: Option<String>,
}

/// How a test of a Git credential ended.
#[derive(Clone, Debug, Deserialize)]
pub struct GitCredentialTest {
    pub outcome: String,
    pub detail: String,
    pub repo_url: String,
}

/// Which workspaces a Git credential is used for.
#[derive(Clone, Debug, Deserialize)]
pub struct GitCredentialUsage {
    pub workspaces_total: usize,
    pub workspaces: Vec<UsingWorkspace>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
pub struct UsingWorkspace {
    pub id: String,
    pub name: String,
    pub repo_url: String,
}

/// An API key, without its token.
#[derive(Clone, Debug, Deserialize)]
pub struct ApiKey {
    pub id: String,
    pub name: String,
    pub token_prefix: String,
    pub capability: String,
    #[serde(default)]
    pub workspace_ids: Option<Vec<String>>,
    #[serde(default)]
    pub last_used_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub expires_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub revoked_at: Option<DateTime<Utc>>,
    #[serde(default)]
    pub superseded_by_id: Option<String>,
}

/// A rule by which a CI system's tokens are taken.
#[derive(Clone, Debug, Deserialize)]
pub struct CiTrustRule {
    pub id: String,
    pub name: String,
    pub issuer: String,
    pub audience: String,
    pub subject: String,
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    pub capability: String,
    #[serde(default)]
    pub workspace_ids: Option<Vec<String>>,
    pub key_minutes: i64,
}

/// An API key that has just got a token.
#[derive(Clone, Deserialize)]
pub struct MintedApiKey {
    pub id: String,
    pub name: String,
    pub token: String,
}

/// A tunable of the platform.
#[derive(Clone, Debug, Deserialize)]
pub struct Tunable {
    #[serde(default)]
    pub value: Value,
    #[serde(default)]
    pub default: Value,
    #[serde(rename = "type")]
    pub kind: String,
    pub min: Option<i64>,
    pub max: Option<i64>,
    pub words: Option<Vec<String>>,
    #[serde(default)]
    pub description: String,
    #[serde(default)]
    pub configured: bool,
    pub masked_tail: Option<String>,
    pub updated_by: Option<String>,
    pub updated_at: Option<DateTime<Utc>>,
}

/// A change of a setting.
#[derive(Clone, Debug, Deserialize)]
pub struct ConfigChange {
    pub key: String,
    pub change: String,
    #[serde(default)]
    pub old_value: Value,
    #[serde(default)]
    pub new_value: Value,
    pub changed_by: Option<String>,
    pub changed_at: Option<DateTime<Utc>>,
}

/// A secret that access tokens are signed with.
#[derive(Clone, Debug, Deserialize)]
pub struct JwtSecret {
    pub kid: String,
}

/// A key of the installation's own issuer.
#[derive(Clone, Debug, Deserialize)]
pub struct IssuerKey {
    pub kid: String,
    pub status: String,
    pub created_at: Option<DateTime<Utc>>,
    pub published_until: Option<DateTime<Utc>>,
}

/// What a rotation of the issuer's key did.
#[derive(Clone, Debug, Deserialize)]
pub struct RotatedIssuerKey {
    pub signing: Option<IssuerKey>,
}
