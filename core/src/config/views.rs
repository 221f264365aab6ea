//! Settings as people see them.

use std::collections::BTreeMap;

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::model::{Setting, Value};
use crate::ids::UserId;

/// All that is told of a secret.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct SecretView {
    /// Whether there is one.
    pub configured: bool,
    /// Its last four characters after `...`; absent if it is shorter than twelve.
    pub masked_tail: Option<String>,
}

/// One tunable of the platform.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct SettingView {
    /// What holds; `null` if nothing does, and for secrets.
    pub value: Option<Value>,
    /// What holds while nobody has set it.
    pub default: Option<Value>,
    /// `bool`, `integer`, `duration`, `word`, `text`, `url` or `secret`.
    #[serde(rename = "type")]
    pub kind: &'static str,
    /// The least number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub min: Option<i64>,
    /// The greatest number.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max: Option<i64>,
    /// The words that it may be.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub words: Option<&'static [&'static str]>,
    /// What it does.
    pub description: String,
    /// Whether somebody has set it.
    pub configured: bool,
    /// Of a secret: its last four characters after `...`, for superadmins.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub masked_tail: Option<String>,
    /// Rises with every change; 0 if there was none. `"v<version>"` is the `ETag` to edit with.
    pub version: i32,
    /// Who changed it last.
    pub updated_by: Option<UserId>,
    /// When.
    pub updated_at: Option<DateTime<Utc>>,
}

/// A field of an integration.
#[derive(Clone, Debug, Serialize)]
#[serde(untagged)]
pub enum FieldView {
    /// What holds; `null` if nothing does.
    Plain(Option<Value>),
    /// A secret.
    Secret(SecretView),
}

/// What a unit has set of an integration.
#[derive(Clone, Debug, Serialize)]
pub struct IntegrationView {
    /// Its fields, by their names on the wire.
    #[serde(flatten)]
    pub fields: BTreeMap<&'static str, FieldView>,
    /// Who changed one of them last.
    pub updated_by: Option<UserId>,
    /// When.
    pub updated_at: Option<DateTime<Utc>>,
    /// Rises with every change; sent as `ETag`.
    #[serde(skip)]
    pub version: i32,
}

/// What was done to a setting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum Changed {
    /// It had no value.
    Set,
    /// It had another one.
    Replaced,
    /// Its value was taken away.
    Deleted,
}

impl Changed {
    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Set => "set",
            Self::Replaced => "replaced",
            Self::Deleted => "deleted",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Set, Self::Replaced, Self::Deleted].into_iter().find(|change| change.as_str() == word)
    }
}

/// One change of a setting.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct HistoryEntry {
    /// Its id.
    pub id: Uuid,
    /// The setting.
    pub key: String,
    /// What was done.
    pub change: Changed,
    /// What it was; absent for secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub old_value: Option<serde_json::Value>,
    /// What it became; absent for secrets.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(value_type = Option<Value>)]
    pub new_value: Option<serde_json::Value>,
    /// The version that it became.
    pub version: i32,
    /// Who did it.
    pub changed_by: Option<UserId>,
    /// When.
    pub changed_at: DateTime<Utc>,
}

/// What the registry says of a setting, without a value.
pub(super) fn describe(setting: &Setting) -> SettingView {
    let bounds = setting.kind.bounds();
    SettingView {
        value: None,
        default: None,
        kind: setting.kind.as_str(),
        min: bounds.map(|(min, _)| min),
        max: bounds.map(|(_, max)| max),
        words: match setting.kind {
            super::Kind::Word(words) => Some(words),
            _ => None,
        },
        description: setting.doc.trim().to_owned(),
        configured: false,
        masked_tail: None,
        version: 0,
        updated_by: None,
        updated_at: None,
    }
}

/// What a test found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct SlackTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
    /// What people call the workspace that the bot belongs to.
    pub team_name: Option<String>,
    /// What the bot is called there.
    pub bot_name: Option<String>,
}

/// What a test found: the result of its task.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct InfracostTest {
    /// Whether all of it works.
    pub ok: bool,
    /// What does not.
    pub detail: Option<String>,
}
