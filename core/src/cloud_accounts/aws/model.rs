//! AWS accounts as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::cloud_accounts::MaskedSecret;
use crate::ids::{AwsAccountId, BusinessUnitId};
use crate::secrets::SecretText;
use crate::workspaces::present;

/// What can be changed of an account, secrets aside.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AwsFields {
    /// For people.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Where calls go that name no region.
    pub default_region: String,
    /// A bucket of the account, where states of its workspaces lie from then on; `None`: in the installation's own store.
    pub state_bucket: Option<String>,
    /// Where that bucket is.
    pub state_bucket_region: String,
    /// The name under which configurations ask for the credentials (`profile` of the provider).
    pub aws_profile_name: Option<String>,
    /// The role that plans act in. With an `apply_role_arn`, or neither.
    pub plan_role_arn: Option<String>,
    /// The role that applies act in.
    pub apply_role_arn: Option<String>,
    /// How long a session of these roles lives.
    pub session_duration_seconds: i32,
    /// An IAM policy that takes rights away from every session.
    #[schema(value_type = Option<Object>)]
    pub session_policy: Option<Value>,
    /// Set where the roles trust tokens of this installation's own issuer: what their provider at AWS is told as the
    /// audience, usually `sts.amazonaws.com`. Then there are roles and no keys.
    pub oidc_audience: Option<String>,
}

/// A registered account, as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AwsAccount {
    /// Its id here.
    pub id: AwsAccountId,
    /// Whose it is.
    pub business_unit_id: BusinessUnitId,
    /// Its number at AWS.
    pub account_id: String,
    /// What can be changed.
    #[serde(flatten)]
    pub fields: AwsFields,
    /// Of a user of the account, or of another one that may assume the roles.
    pub access_key_id: MaskedSecret,
    /// Its other half.
    pub secret_access_key: MaskedSecret,
    /// What the trust policies of the roles must ask for (`sts:ExternalId`); for administrators.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub external_id: Option<String>,
    /// Rises at every edit: the value behind `ETag` and `If-Match`.
    pub version: i32,
    /// When it was registered.
    pub created_at: DateTime<Utc>,
    /// When it was edited last.
    pub updated_at: DateTime<Utc>,
}

/// An account to register, as a caller sends it; nothing is checked yet.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of AwsAccount")]
pub struct NewAwsAccount {
    /// Twelve digits.
    pub account_id: String,
    pub name: String,
    #[serde(default)]
    pub description: Option<String>,
    #[serde(default = "us_east_1")]
    pub default_region: String,
    #[serde(default)]
    pub state_bucket: Option<String>,
    #[serde(default = "us_east_1")]
    pub state_bucket_region: String,
    #[serde(default)]
    pub aws_profile_name: Option<String>,
    /// With a `secret_access_key`. Absent: the executors' own role assumes the roles.
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub access_key_id: Option<SecretText>,
    #[serde(default)]
    #[schema(value_type = Option<String>, format = Password)]
    pub secret_access_key: Option<SecretText>,
    #[serde(default)]
    pub plan_role_arn: Option<String>,
    #[serde(default)]
    pub apply_role_arn: Option<String>,
    /// 900 to 43,200; the roles' own maximum counts, too.
    #[serde(default = "one_hour")]
    pub session_duration_seconds: i32,
    #[serde(default)]
    #[schema(value_type = Option<Object>)]
    pub session_policy: Option<Value>,
    #[serde(default)]
    pub oidc_audience: Option<String>,
}

fn us_east_1() -> String {
    "us-east-1".into()
}

fn one_hour() -> i32 {
    3600
}

/// The keys of a request, unchecked.
pub(super) type WishedKeys = (Option<SecretText>, Option<SecretText>);

impl NewAwsAccount {
    /// Number, changeable fields and keys, still to be checked.
    pub(super) fn split(self) -> (String, AwsFields, WishedKeys) {
        let fields = AwsFields {
            name: self.name,
            description: self.description,
            default_region: self.default_region,
            state_bucket: self.state_bucket,
            state_bucket_region: self.state_bucket_region,
            aws_profile_name: self.aws_profile_name,
            plan_role_arn: self.plan_role_arn,
            apply_role_arn: self.apply_role_arn,
            session_duration_seconds: self.session_duration_seconds,
            session_policy: self.session_policy,
            oidc_audience: self.oidc_audience,
        };
        (self.account_id, fields, (self.access_key_id, self.secret_access_key))
    }
}

/// An edit: what is absent stays as it is, `null` clears. An account's number cannot be changed.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
#[expect(missing_docs, reason = "the fields are those of AwsAccount")]
pub struct AwsAccountChange {
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
    #[serde(default)]
    pub state_bucket_region: Option<String>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub aws_profile_name: Option<Option<String>>,
    /// Both keys at once, or neither. `null` for both removes them.
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = Password)]
    pub access_key_id: Option<Option<SecretText>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>, format = Password)]
    pub secret_access_key: Option<Option<SecretText>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub plan_role_arn: Option<Option<String>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub apply_role_arn: Option<Option<String>>,
    #[serde(default)]
    pub session_duration_seconds: Option<i32>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<Object>)]
    pub session_policy: Option<Option<Value>>,
    #[serde(default, deserialize_with = "present")]
    #[schema(value_type = Option<String>)]
    pub oidc_audience: Option<Option<String>>,
}

impl AwsAccountChange {
    /// What the account would be after the edit, and the keys that it names; still to be checked.
    pub(super) fn over(self, now: AwsFields) -> (AwsFields, Option<WishedKeys>) {
        let keys = match (self.access_key_id, self.secret_access_key) {
            (None, None) => None,
            (id, secret) => Some((id.flatten(), secret.flatten())),
        };
        let fields = AwsFields {
            name: self.name.unwrap_or(now.name),
            description: self.description.unwrap_or(now.description),
            default_region: self.default_region.unwrap_or(now.default_region),
            state_bucket: self.state_bucket.unwrap_or(now.state_bucket),
            state_bucket_region: self.state_bucket_region.unwrap_or(now.state_bucket_region),
            aws_profile_name: self.aws_profile_name.unwrap_or(now.aws_profile_name),
            plan_role_arn: self.plan_role_arn.unwrap_or(now.plan_role_arn),
            apply_role_arn: self.apply_role_arn.unwrap_or(now.apply_role_arn),
            session_duration_seconds: self.session_duration_seconds.unwrap_or(now.session_duration_seconds),
            session_policy: self.session_policy.unwrap_or(now.session_policy),
            oidc_audience: self.oidc_audience.unwrap_or(now.oidc_audience),
        };
        (fields, keys)
    }
}

/// What a test of an account's credentials found: the result of its task. That they do not work is a result, too.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct AwsTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
    /// Who AWS says that the keys are.
    pub caller_arn: Option<String>,
    /// Who it says that plans and applies would be, where roles are assumed.
    pub assumed_arns: Vec<String>,
}
