//! Variables as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};

use crate::ids::{BusinessUnitId, VariableId, VariableSetId, WorkspaceId};

/// A value in clear. Its `Debug` prints none of it.
#[derive(Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
#[serde(transparent)]
pub struct VariableValue(String);

impl VariableValue {
    /// The text.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl From<crate::secrets::SecretText> for VariableValue {
    fn from(text: crate::secrets::SecretText) -> Self {
        Self(text.expose().to_owned())
    }
}

impl From<String> for VariableValue {
    fn from(text: String) -> Self {
        Self(text)
    }
}

impl std::fmt::Debug for VariableValue {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "({} bytes)", self.0.len())
    }
}

impl Drop for VariableValue {
    fn drop(&mut self) {
        zeroize::Zeroize::zeroize(&mut self.0);
    }
}

/// Whose variable it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum VariableScope {
    /// Every workspace of the business unit.
    Global,
    /// The workspaces that its variable set is attached to.
    VariableSet,
    /// One workspace.
    Workspace,
    /// One run.
    Run,
}

/// Where variables are kept, as a path names it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Owner {
    /// The business unit of the request.
    Unit,
    /// A variable set.
    Set(VariableSetId),
    /// A workspace.
    Workspace(WorkspaceId),
}

impl Owner {
    /// What the API calls it.
    pub fn scope(self) -> VariableScope {
        match self {
            Self::Unit => VariableScope::Global,
            Self::Set(_) => VariableScope::VariableSet,
            Self::Workspace(_) => VariableScope::Workspace,
        }
    }
}

/// A new variable.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVariable {
    /// The name without `TF_VAR_`; cannot be changed later.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_]*$", max_length = 255)]
    pub key: String,
    /// At most 64 KiB, without NUL; text in Unicode's composed form (NFC), or with `is_hcl` one HCL expression.
    #[schema(value_type = String, max_length = 65536)]
    pub value: VariableValue,
    /// Whether the value is never shown again.
    #[serde(default)]
    pub is_secret: bool,
    /// Whether the value is an HCL expression; otherwise Terraform gets exactly this text.
    #[serde(default)]
    pub is_hcl: bool,
    /// For people; at most 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub description: Option<String>,
}

/// One variable of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct RunVariable {
    /// The name without `TF_VAR_`.
    #[schema(pattern = "^[A-Za-z_][A-Za-z0-9_]*$", max_length = 255)]
    pub key: String,
    /// At most 64 KiB, without NUL; text in Unicode's composed form (NFC), or with `is_hcl` one HCL expression.
    #[schema(value_type = String, max_length = 65536)]
    pub value: VariableValue,
    /// Whether its value is kept out of logs and answers.
    #[serde(default)]
    pub is_secret: bool,
    /// Whether the value is an HCL expression; otherwise Terraform gets exactly this text.
    #[serde(default)]
    pub is_hcl: bool,
}

/// An edit: what is absent stays as it is.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VariableChange {
    /// A new value.
    #[schema(value_type = Option<String>, max_length = 65536)]
    pub value: Option<VariableValue>,
    /// `false` for a secret needs a new `value` in the same request.
    pub is_secret: Option<bool>,
    /// How the value is read.
    pub is_hcl: Option<bool>,
    /// The empty text removes it.
    #[schema(max_length = 2000)]
    pub description: Option<String>,
}

/// A variable as people see it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Variable {
    /// Its id.
    pub id: VariableId,
    /// The tenant.
    pub business_unit_id: BusinessUnitId,
    /// Whose it is.
    pub scope: VariableScope,
    /// The workspace, if it belongs to one.
    pub workspace_id: Option<WorkspaceId>,
    /// The variable set, if it belongs to one.
    pub variable_set_id: Option<VariableSetId>,
    /// The name without `TF_VAR_`.
    pub key: String,
    /// The value; `null` for a secret.
    #[schema(value_type = Option<String>)]
    pub value: Option<VariableValue>,
    /// The last four characters of a secret that has at least twelve.
    pub masked_tail: Option<String>,
    /// Whether the stored value can be opened. One that cannot must be set anew: runs that need it fail.
    pub is_readable: bool,
    /// Whether the value is never shown.
    pub is_secret: bool,
    /// Whether the value is an HCL expression.
    pub is_hcl: bool,
    /// For people.
    pub description: Option<String>,
    /// Rises at every edit.
    pub version: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was changed last.
    pub updated_at: DateTime<Utc>,
}

/// A new variable set.
#[derive(Clone, Debug, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields)]
pub struct NewVariableSet {
    /// 1 to 255 characters; unique in the business unit.
    #[schema(min_length = 1, max_length = 255)]
    pub name: String,
    /// For people; at most 2,000 characters.
    #[serde(default)]
    #[schema(max_length = 2000)]
    pub description: Option<String>,
    /// 0 to 1,000: of two sets with the same key the one with the higher priority wins.
    #[serde(default)]
    #[schema(minimum = 0, maximum = 1000)]
    pub priority: i32,
    /// Whether every workspace of the unit gets it, attached or not.
    #[serde(default)]
    pub all_workspaces: bool,
}

/// An edit of a variable set: what is absent stays as it is.
#[derive(Clone, Debug, Default, Deserialize, utoipa::ToSchema)]
#[serde(deny_unknown_fields, default)]
pub struct VariableSetChange {
    /// Another name.
    #[schema(min_length = 1, max_length = 255)]
    pub name: Option<String>,
    /// The empty text removes it.
    #[schema(max_length = 2000)]
    pub description: Option<String>,
    /// Another priority.
    #[schema(minimum = 0, maximum = 1000)]
    pub priority: Option<i32>,
    /// Whether every workspace of the unit gets it.
    pub all_workspaces: Option<bool>,
}

/// A variable set.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct VariableSet {
    /// Its id.
    pub id: VariableSetId,
    /// The tenant.
    pub business_unit_id: BusinessUnitId,
    /// Its name.
    pub name: String,
    /// For people.
    pub description: Option<String>,
    /// Of two sets with the same key the one with the higher priority wins.
    pub priority: i32,
    /// Whether every workspace of the unit gets it.
    pub all_workspaces: bool,
    /// Rises at every edit.
    pub version: i32,
    /// When it was made.
    pub created_at: DateTime<Utc>,
    /// When it was changed last.
    pub updated_at: DateTime<Utc>,
}

/// A workspace that a variable set is attached to.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct Attachment {
    /// The workspace.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub workspace_name: String,
    /// Since when.
    pub created_at: DateTime<Utc>,
}

/// Where a value comes from. Ordered by strength: the greater of two wins. Sets compare by priority, then by name.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(tag = "scope", rename_all = "snake_case")]
pub enum Origin {
    /// The business unit.
    Global,
    /// A variable set.
    VariableSet {
        /// Its priority then.
        priority: i32,
        /// Its name then.
        name: String,
        /// Its id.
        id: VariableSetId,
    },
    /// The workspace.
    Workspace,
    /// The run itself.
    Run,
}

impl std::fmt::Display for Origin {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Global => f.write_str("the business unit"),
            Self::VariableSet { name, .. } => write!(f, "the variable set {name}"),
            Self::Workspace => f.write_str("the workspace"),
            Self::Run => f.write_str("the run"),
        }
    }
}

/// One variable that a run was pinned with, without its value.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Pin {
    /// The name without `TF_VAR_`.
    pub key: String,
    /// Whether the value is never shown.
    pub is_secret: bool,
    /// Whether the value is an HCL expression.
    pub is_hcl: bool,
    /// Where it came from.
    pub source: Origin,
    /// Whose values of the same key it won over, the strongest first.
    pub overrides: Vec<Origin>,
}

/// One variable of the merged view.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveVariable {
    /// The name without `TF_VAR_`.
    pub key: String,
    /// The value; `null` for a secret, for one that cannot be opened, and if all together are too long.
    #[schema(value_type = Option<String>)]
    pub value: Option<VariableValue>,
    /// The last four characters of a secret that has at least twelve.
    pub masked_tail: Option<String>,
    /// Whether the stored value can be opened. A run that needs one that cannot fails.
    pub is_readable: bool,
    /// Whether the value is never shown.
    pub is_secret: bool,
    /// Whether the value is an HCL expression.
    pub is_hcl: bool,
    /// Where it comes from.
    pub source: Origin,
    /// Whose values of the same key it wins over, the strongest first.
    pub overrides: Vec<Origin>,
}

/// What terraform gets, by key.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct EffectiveVariables {
    /// All of them, by key.
    pub items: Vec<EffectiveVariable>,
    /// Keys and values together, in bytes.
    pub total_bytes: i64,
    /// Whether a run may have that many and that much. One that may not is refused.
    pub fits: bool,
    /// Of a run: whether they are pinned. Before it has begun these are its own only.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pinned: Option<bool>,
    /// Of a run that ended long ago: when its values were removed. Keys and sources stay.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub removed_at: Option<DateTime<Utc>>,
}
