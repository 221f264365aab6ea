//! What people see of a job.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use crate::ids::UserId;

/// How a job stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RekeyStatus {
    /// Sweeps seal values again.
    Running,
    /// No row names another root key: the others can be taken away.
    Done,
    /// Everything was sealed again but for values that no key opens. They must be replaced or deleted.
    Failed,
    /// The root key was replaced once more meanwhile.
    Superseded,
}

impl RekeyStatus {
    /// The word in the database.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Running => "running",
            Self::Done => "done",
            Self::Failed => "failed",
            Self::Superseded => "superseded",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        [Self::Running, Self::Done, Self::Failed, Self::Superseded]
            .into_iter()
            .find(|status| status.as_str() == word)
    }
}

/// One job: everything that is sealed is sealed again under the current root key.
#[derive(Clone, Debug, Serialize, utoipa::ToSchema)]
pub struct Rekey {
    /// Its id.
    pub id: Uuid,
    /// Names the root key under which everything is sealed in the end.
    pub key_id: String,
    /// How it stands.
    pub status: RekeyStatus,
    /// Who asked for it.
    pub requested_by: Option<UserId>,
    /// Why it does not move, as a sentence.
    pub note: Option<String>,
    /// When it was asked for.
    pub created_at: DateTime<Utc>,
    /// When it ended.
    pub finished_at: Option<DateTime<Utc>>,
    /// How far each sealed column is.
    pub columns: Vec<ColumnProgress>,
}

/// Values of one column under a root key that nobody was given.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stranger {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// Names the root key.
    pub key_id: String,
    /// How many.
    pub values: i64,
}

impl std::fmt::Display for Stranger {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Self { table, column, key_id, values } = self;
        write!(f, "{values} in {table}.{column} under {key_id}")
    }
}

/// How far one sealed column is.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, utoipa::ToSchema)]
pub struct ColumnProgress {
    /// The table.
    pub table: String,
    /// The column.
    pub column: String,
    /// Values that were sealed again.
    pub resealed: i64,
    /// Values under other roots when they were last counted; absent until then.
    pub remaining: Option<i64>,
    /// Values that no key opens.
    pub unreadable: i64,
    /// Rows that hold them, the first ones.
    pub unreadable_rows: Vec<Uuid>,
}
