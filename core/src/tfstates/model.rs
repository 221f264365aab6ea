//! State as plain data.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::digest::Sha256Digest;
use crate::ids::{QuarantinedStateId, RunId, StateStoreId, StateVersionId, UserId, WorkspaceId};
use crate::workspaces::Locked;

/// The newest accepted version of a workspace's state.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StateHead {
    /// The version.
    pub version_id: StateVersionId,
    /// Its serial.
    pub serial: i64,
    /// Its lineage.
    pub lineage: String,
    /// Its length in bytes.
    pub size_bytes: i64,
    /// Its digest.
    pub sha256: Sha256Digest,
    /// Its MD5, which HTTP clients check.
    pub md5: [u8; 16],
    /// Its name in the object store.
    pub key: String,
    /// Which store; `None` is the platform's own.
    pub store_id: Option<StateStoreId>,
}

/// Who may write a workspace's state.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum StateWrites {
    /// Apply runs.
    RunsOnly,
    /// Apply runs, and people with their own Terraform.
    RunsAndPeople,
}

impl StateWrites {
    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        match word {
            "runs_only" => Some(Self::RunsOnly),
            "runs_and_people" => Some(Self::RunsAndPeople),
            _ => None,
        }
    }
}

/// A workspace whose runs may read the outputs of another one's state.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateConsumer {
    /// Its id.
    pub workspace_id: WorkspaceId,
    /// Its name.
    pub name: String,
}

/// How long the history of a state is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Retention {
    /// So many of the newest versions stay, however old they are.
    pub newest: i64,
    /// And whatever is younger than this, in days; 0 keeps everything.
    pub days: i64,
}

/// A LockInfo as a client sent it: kept and answered byte for byte, because clients put their own fields in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockInfo {
    id: String,
    verbatim: String,
}

/// Why a body is no LockInfo.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum BadLock {
    /// Too long.
    #[error("the lock info is longer than 16 KiB")]
    TooLong,
    /// Not JSON.
    #[error("the lock info is not a JSON object")]
    NotAnObject,
    /// No id.
    #[error("the lock info has no `ID`, or one that is empty or longer than 255 characters")]
    NoId,
}

impl LockInfo {
    const BYTES_MAX: usize = 16 << 10;
    const ID_LENGTH_MAX: usize = 255;

    /// Reads the body of a LOCK or UNLOCK.
    pub fn parse(body: &[u8]) -> Result<Self, BadLock> {
        #[derive(Deserialize)]
        struct Known {
            #[serde(rename = "ID", default)]
            id: String,
        }
        if body.len() > Self::BYTES_MAX {
            return Err(BadLock::TooLong);
        }
        let verbatim = std::str::from_utf8(body).map_err(|_| BadLock::NotAnObject)?;
        if !verbatim.trim_start().starts_with('{') {
            return Err(BadLock::NotAnObject);
        }
        let known: Known = serde_json::from_str(verbatim).map_err(|_| BadLock::NotAnObject)?;
        // NUL is legal in JSON, but no text column can hold it.
        let usable =
            !known.id.is_empty() && known.id.len() <= Self::ID_LENGTH_MAX && !known.id.contains('\0');
        if !usable {
            return Err(BadLock::NoId);
        }
        Ok(Self { id: known.id, verbatim: verbatim.to_owned() })
    }

    /// The same lock, whose holder is told by us: what a run's terraform says about itself leads nobody to the run.
    pub fn told_by_us(&self, who: &str, info: &str) -> Self {
        let mut told: serde_json::Map<String, Value> =
            serde_json::from_str(&self.verbatim).unwrap_or_default();
        told.insert("ID".into(), self.id.as_str().into());
        told.insert("Who".into(), who.into());
        told.insert("Info".into(), info.into());
        Self { id: self.id.clone(), verbatim: Value::Object(told).to_string() }
    }

    /// What names the lock.
    pub fn id(&self) -> &str {
        &self.id
    }

    /// The body as it came.
    pub fn as_str(&self) -> &str {
        &self.verbatim
    }
}

/// The lock of a workspace's state.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LockView {
    /// Whether somebody holds it.
    pub held: bool,
    /// The holder's id of it.
    pub lock_id: Option<String>,
    /// Rises whenever the lock changes hands.
    pub generation: i64,
    /// What the holder said about itself.
    #[schema(value_type = Option<Object>)]
    pub info: Option<Value>,
    /// The run that holds it.
    pub run_id: Option<RunId>,
    /// Since when.
    pub locked_at: Option<DateTime<Utc>>,
    /// For how long.
    pub age_seconds: Option<i64>,
    /// Who the holder says it is.
    pub who: Option<String>,
    /// What the holder says it does.
    pub operation: Option<String>,
    /// The run that holds it, at this server.
    pub run_url: Option<String>,
    /// The person who keeps runs and other people away from the whole workspace.
    pub workspace_lock: Option<Locked>,
    /// Who has asked for it more than once, and lately: with `-lock-timeout`. The longest first.
    pub waiters: Vec<LockWaiter>,
}

/// Somebody who waits for the lock.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct LockWaiter {
    /// The id of the lock that they want.
    pub lock_id: String,
    /// Who they say they are.
    pub who: Option<String>,
    /// What they say they are about to do.
    pub operation: Option<String>,
    /// How often they asked.
    pub tries: i32,
    /// Since when.
    pub first_tried_at: DateTime<Utc>,
    /// When they asked last.
    pub last_tried_at: DateTime<Utc>,
}

/// One accepted version of a workspace's state.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateVersionView {
    /// Its id.
    pub id: StateVersionId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Rises with every version.
    pub serial: i64,
    /// The same for all versions of one state.
    pub lineage: String,
    /// MD5 in hex.
    pub md5: String,
    /// SHA-256.
    pub sha256: Sha256Digest,
    /// Length in bytes.
    pub size_bytes: i64,
    /// What wrote it.
    pub terraform_version: Option<String>,
    /// Encrypted by the client: Plumbline cannot look into it.
    pub opaque: bool,
    /// The run that wrote it.
    pub run_id: Option<RunId>,
    /// The person who wrote it.
    pub created_by: Option<UserId>,
    /// Objects that it manages, without what data sources read. Absent if they were not counted yet, as after a large
    /// upload, or cannot be: the state is encrypted.
    pub resource_count: Option<i64>,
    /// It manages nothing, and the version before it did: somebody may have destroyed everything, or lost the state.
    pub emptied: bool,
    /// Why the body cannot be what its writer announced; found after it was accepted.
    pub contradiction: Option<String>,
    /// The version whose content this is once more.
    pub rolled_back_from: Option<StateVersionId>,
    /// Whether it is the newest.
    pub is_current: bool,
    /// Where its body lies: a bucket or container of an account. Absent: in the installation's own store.
    pub stored_in: Option<String>,
    /// When it was accepted.
    pub created_at: DateTime<Utc>,
}

/// A state body that was not accepted and waits for a person.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct QuarantinedStateView {
    /// Its id.
    pub id: QuarantinedStateId,
    /// Its workspace.
    pub workspace_id: WorkspaceId,
    /// Why it was not accepted, as one word.
    pub reason: String,
    /// Its serial.
    pub serial: Option<i64>,
    /// Its lineage.
    pub lineage: Option<String>,
    /// The lock that it came with.
    pub lock_id: Option<String>,
    /// SHA-256.
    pub sha256: Sha256Digest,
    /// Length in bytes.
    pub size_bytes: i64,
    /// The run that wrote it.
    pub run_id: Option<RunId>,
    /// The person who wrote it.
    pub created_by: Option<UserId>,
    /// When it came.
    pub created_at: DateTime<Utc>,
    /// When a person decided.
    pub resolved_at: Option<DateTime<Utc>>,
    /// Who did.
    pub resolved_by: Option<UserId>,
    /// What they decided: `promoted` or `discarded`.
    pub resolution: Option<String>,
}
