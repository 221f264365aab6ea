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
    /// A bucket for states; they lie in the installation's own store as yet.
    pub state_bucket: Option<String>,
    /// What the names of objects in it begin with.
    pub state_prefix: Option<String>,
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
    /// The service account, as its key names it.
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

/// A project to register, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of GcpProject")]
pub struct NewGcpProject {
    pub project_id: String,
    /// The file that GCP gives for a key of a service account, as text.
    #[schema(value_type = String, format = Password)]
    pub service_account_json: SecretText,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default = "us_central1")]
    pub default_region: String,
    #[serde(default)]
    pub state_bucket: Option<String>,
    #[serde(default)]
    pub state_prefix: Option<String>,
}

fn us_central1() -> String {
    "us-central1".into()
}

impl NewGcpProject {
    /// Id, changeable fields and key, still to be checked.
    pub(super) fn split(self) -> (String, GcpFields, SecretText) {
        let fields = GcpFields {
            name: self.name,
            description: self.description,
            default_region: self.default_region,
            state_bucket: self.state_bucket,
            state_prefix: self.state_prefix,
        };
        (self.project_id, fields, self.service_account_json)
    }
}

/// An edit: what is absent stays as it is, `null` clears. A project's id cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of GcpProject")]
pub struct GcpProjectChange {
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub service_account_json: Option<SecretText>,
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
}

impl GcpProjectChange {
    /// What the project would be after the edit, and the key that it names; still to be checked.
    pub(super) fn over(self, now: GcpFields) -> (GcpFields, Option<SecretText>) {
        let fields = GcpFields {
            name: self.name.unwrap_or(now.name),
            description: self.description.unwrap_or(now.description),
            default_region: self.default_region.unwrap_or(now.default_region),
            state_bucket: self.state_bucket.unwrap_or(now.state_bucket),
            state_prefix: self.state_prefix.unwrap_or(now.state_prefix),
        };
        (fields, self.service_account_json)
    }
}
