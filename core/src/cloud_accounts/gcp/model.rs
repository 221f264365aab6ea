//! GCP projects as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::cloud_accounts::MaskedSecret;
use crate::ids::{BusinessUnitId, GcpProjectId};
use crate::secrets::SecretText;
use crate::workspaces::present;

/// What can be changed of a project, the key aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GcpFields {
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Where things are made that name no region.
    pub default_region: String,
    /// A bucket, where states of its workspaces lie from then on.
    pub state_bucket: Option<String>,
    /// What the names of objects in it begin with.
    pub state_prefix: Option<String>,
    /// Set where a workload identity pool trusts tokens of this installation's own issuer: its provider, as
    /// `projects/<number>/locations/global/workloadIdentityPools/<pool>/providers/<provider>`. Then there is no key.
    pub workload_identity_provider: Option<String>,
}

/// A registered project, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GcpProject {
    /// Its id here.
    pub id: GcpProjectId,
    /// Whose it is.
    pub business_unit_id: BusinessUnitId,
    /// Its id at GCP.
    pub project_id: String,
    /// The service account that runs act as: as its key names it, or as it was named where there is no key.
    pub client_email: String,
    /// What can be changed.
    #[serde(flatten)]
    pub fields: GcpFields,
    /// The key of the service account; the tail is that of its `private_key_id`.
    pub service_account_json: MaskedSecret,
    /// Rises at every edit: the value behind `ETag` and `If-Match`.
    pub version: i32,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

/// How a caller would have runs get in, beside the pool's provider; nothing is checked yet.
pub(super) struct WishedAccess {
    /// What becomes of the key; `None`: it stays.
    pub key: Option<Option<SecretText>>,
    /// The service account, where a caller names it.
    pub client_email: Option<String>,
}

/// A project to register, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of GcpProject")]
pub struct NewGcpProject {
    pub project_id: String,
    /// The file that GCP gives for a key of a service account, as text.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub service_account_json: Option<SecretText>,
    /// Where there is no key.
    #[serde(default)]
    pub client_email: Option<String>,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default = "us_central1")]
    pub default_region: String,
    #[serde(default)]
    pub state_bucket: Option<String>,
    #[serde(default)]
    pub state_prefix: Option<String>,
    #[serde(default)]
    pub workload_identity_provider: Option<String>,
}

fn us_central1() -> String {
    "us-central1".into()
}

impl NewGcpProject {
    /// Id, changeable fields and way in, still to be checked.
    pub(super) fn split(self) -> (String, GcpFields, WishedAccess) {
        let fields = GcpFields {
            name: self.name,
            description: self.description,
            default_region: self.default_region,
            state_bucket: self.state_bucket,
            state_prefix: self.state_prefix,
            workload_identity_provider: self.workload_identity_provider,
        };
        let access = WishedAccess { key: Some(self.service_account_json), client_email: self.client_email };
        (self.project_id, fields, access)
    }
}

/// An edit: what is absent stays as it is, `null` clears. A project's id cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of GcpProject")]
pub struct GcpProjectChange {
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = Password)]
    pub service_account_json: Option<Option<SecretText>>,
    #[serde(default)]
    pub client_email: Option<String>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    #[serde(default)]
    pub default_region: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub state_bucket: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub state_prefix: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub workload_identity_provider: Option<Option<String>>,
}

impl GcpProjectChange {
    /// What the project would be after the edit, and its way in; still to be checked.
    pub(super) fn over(self, now: GcpFields) -> (GcpFields, WishedAccess) {
        let fields = GcpFields {
            name: self.name.unwrap_or(now.name),
            description: self.description.unwrap_or(now.description),
            default_region: self.default_region.unwrap_or(now.default_region),
            state_bucket: self.state_bucket.unwrap_or(now.state_bucket),
            state_prefix: self.state_prefix.unwrap_or(now.state_prefix),
            workload_identity_provider: self
                .workload_identity_provider
                .unwrap_or(now.workload_identity_provider),
        };
        (fields, WishedAccess { key: self.service_account_json, client_email: self.client_email })
    }
}

/// What a test found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct GcpTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
    /// Whose key it is.
    pub client_email: Option<String>,
}
