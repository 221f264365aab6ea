//! Azure subscriptions as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::cloud_accounts::MaskedSecret;
use crate::ids::{AzureSubscriptionId, BusinessUnitId};
use crate::secrets::SecretText;
use crate::workspaces::present;

/// What can be changed of a subscription, the secret aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AzureFields {
    /// The directory that the service principal belongs to.
    pub tenant_id: String,
    /// The service principal.
    pub client_id: String,
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Where things are made that name no location.
    pub default_location: String,
    /// A storage account, where states of its workspaces lie from then on, with a container.
    pub state_storage_account: Option<String>,
    /// A container in it.
    pub state_container: Option<String>,
    /// Set where the service principal trusts tokens of this installation's own issuer: the audience of its federated
    /// credentials, usually `api://AzureADTokenExchange`. Then it has no secret here.
    pub oidc_audience: Option<String>,
}

/// A registered subscription, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AzureSubscription {
    /// Its id here.
    pub id: AzureSubscriptionId,
    /// Whose it is.
    pub business_unit_id: BusinessUnitId,
    /// Its id at Azure.
    pub subscription_id: String,
    /// What can be changed.
    #[serde(flatten)]
    pub fields: AzureFields,
    /// The service principal's secret.
    pub client_secret: MaskedSecret,
    /// Rises at every edit: the value behind `ETag` and `If-Match`.
    pub version: i32,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

/// A subscription to register, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of AzureSubscription")]
pub struct NewAzureSubscription {
    pub subscription_id: String,
    pub tenant_id: String,
    pub client_id: String,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub client_secret: Option<SecretText>,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default = "eastus")]
    pub default_location: String,
    #[serde(default)]
    pub state_storage_account: Option<String>,
    #[serde(default)]
    pub state_container: Option<String>,
    #[serde(default)]
    pub oidc_audience: Option<String>,
}

fn eastus() -> String {
    "eastus".into()
}

impl NewAzureSubscription {
    /// Id, changeable fields and secret, still to be checked.
    pub(super) fn split(self) -> (String, AzureFields, Option<SecretText>) {
        let fields = AzureFields {
            tenant_id: self.tenant_id,
            client_id: self.client_id,
            name: self.name,
            description: self.description,
            default_location: self.default_location,
            state_storage_account: self.state_storage_account,
            state_container: self.state_container,
            oidc_audience: self.oidc_audience,
        };
        (self.subscription_id, fields, self.client_secret)
    }
}

/// An edit: what is absent stays as it is, `null` clears. A subscription's id cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of AzureSubscription")]
pub struct AzureSubscriptionChange {
    #[serde(default)]
    pub tenant_id: Option<String>,
    #[serde(default)]
    pub client_id: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = Password)]
    pub client_secret: Option<Option<SecretText>>,
    #[serde(default)]
    pub name: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub description: Option<Option<String>>,
    #[serde(default)]
    pub default_location: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub state_storage_account: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub state_container: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub oidc_audience: Option<Option<String>>,
}

impl AzureSubscriptionChange {
    /// What the subscription would be after the edit, and what becomes of its secret; still to be checked.
    pub(super) fn over(self, now: AzureFields) -> (AzureFields, Option<Option<SecretText>>) {
        let fields = AzureFields {
            tenant_id: self.tenant_id.unwrap_or(now.tenant_id),
            client_id: self.client_id.unwrap_or(now.client_id),
            name: self.name.unwrap_or(now.name),
            description: self.description.unwrap_or(now.description),
            default_location: self.default_location.unwrap_or(now.default_location),
            state_storage_account: self.state_storage_account.unwrap_or(now.state_storage_account),
            state_container: self.state_container.unwrap_or(now.state_container),
            oidc_audience: self.oidc_audience.unwrap_or(now.oidc_audience),
        };
        (fields, self.client_secret)
    }
}

/// What a test found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AzureTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
    /// What Azure calls the subscription.
    pub subscription_name: Option<String>,
}
