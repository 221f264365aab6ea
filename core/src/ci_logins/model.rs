//! Trust rules and sign-ins as plain data.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::access::Capability;
use crate::ids::{BusinessUnitId, TrustRuleId, UserId, WorkspaceId};

/// A rule as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct TrustRuleView {
    /// Its id.
    pub id: TrustRuleId,
    /// Its unit.
    pub business_unit_id: BusinessUnitId,
    /// What it is for.
    pub name: String,
    /// Who must have made the token.
    pub issuer: String,
    /// Whom it must be for.
    pub audience: String,
    /// Whom it must be about; `*` stands for anything without a colon.
    pub subject: String,
    /// More claims that must have exactly these texts.
    pub claims: BTreeMap<String, String>,
    /// How far the key goes.
    pub capability: Capability,
    /// The only workspaces that it reaches; absent for all of the unit.
    pub workspace_ids: Option<Vec<WorkspaceId>>,
    /// How long the key is good, in minutes.
    pub key_minutes: i32,
    /// Who made the rule.
    pub created_by: Option<UserId>,
    /// When.
    pub created_at: DateTime<Utc>,
}

/// A rule to make.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewTrustRule {
    /// What it is for, 1 to 255 characters.
    pub name: String,
    /// Who must have made the token, such as `https://token.actions.githubusercontent.com`.
    pub issuer: String,
    /// Whom it must be for.
    pub audience: String,
    /// Whom it must be about, such as `repo:acme/infra:ref:refs/heads/main`; `*` stands for anything without a colon.
    pub subject: String,
    /// More claims that must have exactly these texts, such as `environment`.
    #[serde(default)]
    pub claims: BTreeMap<String, String>,
    /// How far the key goes; `plan` unless given.
    #[serde(default = "plan")]
    pub capability: Capability,
    /// The only workspaces that it reaches; all of the unit unless given.
    #[serde(default)]
    pub workspace_ids: Option<Vec<WorkspaceId>>,
    /// How long the key is good, 5 to 120 minutes; 15 unless given.
    #[serde(default = "quarter_of_an_hour")]
    pub key_minutes: i32,
}

fn plan() -> Capability {
    Capability::Plan
}

fn quarter_of_an_hour() -> i32 {
    15
}

/// A CI system's wish for a key.
#[derive(Clone, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct CiLogin {
    /// The identity token of the job.
    #[schema(format = Password)]
    pub token: String,
    /// The slug of the unit whose rules are meant. This or `trust_rule_id` is needed: otherwise another unit could make a
    /// rule for the same token, and get what the job sends.
    #[serde(default)]
    pub business_unit: Option<String>,
    /// The rule that is meant, where several of the unit take the token.
    #[serde(default)]
    pub trust_rule_id: Option<TrustRuleId>,
}

impl std::fmt::Debug for CiLogin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CiLogin").field("business_unit", &self.business_unit).finish_non_exhaustive()
    }
}

/// The key that a CI system gets.
#[derive(Clone, Serialize, utoipa::ToSchema)]
pub struct CiKey {
    /// An API key's token, good for some minutes.
    pub token: String,
    /// `bearer`.
    pub token_type: &'static str,
    /// When it ends.
    pub expires_at: DateTime<Utc>,
    /// How far it goes.
    pub capability: Capability,
    /// The unit that it acts in.
    pub business_unit_id: BusinessUnitId,
    /// The rule that gave it.
    pub trust_rule_id: TrustRuleId,
}

impl std::fmt::Debug for CiKey {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("CiKey").field("trust_rule_id", &self.trust_rule_id).finish_non_exhaustive()
    }
}

/// What a token says, once its signature was found good.
#[derive(Clone, Debug, Deserialize)]
pub(super) struct CiClaims {
    pub sub: String,
    #[serde(default)]
    pub aud: Audience,
    pub exp: i64,
    #[serde(default)]
    pub nbf: Option<i64>,
    #[serde(default)]
    pub iat: Option<i64>,
    #[serde(flatten)]
    pub more: BTreeMap<String, serde_json::Value>,
}

/// One audience or several.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(untagged)]
pub(super) enum Audience {
    #[default]
    None,
    One(String),
    Many(Vec<String>),
}

impl Audience {
    pub(super) fn has(&self, wanted: &str) -> bool {
        match self {
            Self::None => false,
            Self::One(one) => one == wanted,
            Self::Many(many) => many.iter().any(|one| one == wanted),
        }
    }
}
