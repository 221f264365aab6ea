//! Variables as people are shown them.

use chrono::{DateTime, Utc};
use serde::Deserialize;

/// A Terraform variable as it is kept.
#[derive(Clone, Debug, Deserialize)]
pub struct Variable {
    pub id: String,
    pub key: String,
    pub value: Option<String>,
    pub masked_tail: Option<String>,
    #[serde(default)]
    pub is_secret: bool,
    #[serde(default)]
    pub is_hcl: bool,
    #[serde(default)]
    pub is_readable: bool,
    pub description: Option<String>,
}

/// A named list of variables.
#[derive(Clone, Debug, Deserialize)]
pub struct VariableSet {
    pub id: String,
    pub name: String,
    pub description: Option<String>,
    #[serde(default)]
    pub priority: i64,
    #[serde(default)]
    pub all_workspaces: bool,
}

/// A workspace that a variable set is attached to.
#[derive(Clone, Debug, Deserialize)]
pub struct Attachment {
    pub workspace_name: String,
}

/// Merged variables.
#[derive(Clone, Debug, Deserialize)]
pub struct Effective {
    pub items: Vec<EffectiveVariable>,
    pub fits: bool,
    pub pinned: Option<bool>,
    pub removed_at: Option<DateTime<Utc>>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
pub struct EffectiveVariable {
    pub key: String,
    pub value: Option<String>,
    pub masked_tail: Option<String>,
    #[serde(default)]
    pub is_secret: bool,
    #[serde(default)]
    pub is_hcl: bool,
    #[serde(default)]
    pub is_readable: bool,
    pub source: VariableSource,
    #[serde(default)]
    pub overrides: Vec<VariableSource>,
}

/// Where a value comes from.
#[derive(Clone, Debug, Deserialize)]
pub struct VariableSource {
    pub scope: String,
    pub name: Option<String>,
}

impl std::fmt::Display for VariableSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match &self.name {
            Some(name) => write!(f, "{} {name}", self.scope),
            None => f.write_str(&self.scope),
        }
    }
}
