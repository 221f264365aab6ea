//! The state of workspaces, and what is in it.

use chrono::{DateTime, Utc};
use serde::Deserialize;
use serde_json::Value;

use super::Locked;

/// Whose runs may read a workspace's outputs.
#[derive(Clone, Debug, Deserialize)]
pub struct StateConsumers {
    pub items: Vec<StateConsumer>,
}

/// One of them.
#[derive(Clone, Debug, Deserialize)]
pub struct StateConsumer {
    pub workspace_id: String,
    #[serde(default)]
    pub name: String,
}

/// An accepted write of a state.
#[derive(Clone, Debug, Deserialize)]
pub struct StateVersion {
    pub id: String,
    #[serde(default)]
    pub workspace_id: String,
    pub serial: i64,
    #[serde(default)]
    pub lineage: String,
    #[serde(default)]
    pub sha256: String,
    #[serde(default)]
    pub size_bytes: i64,
    pub terraform_version: Option<String>,
    pub run_id: Option<String>,
    pub created_by: Option<String>,
    pub rolled_back_from: Option<String>,
    pub resource_count: Option<i64>,
    #[serde(default)]
    pub emptied: bool,
    pub contradiction: Option<String>,
    pub stored_in: Option<String>,
    #[serde(default)]
    pub is_current: bool,
    pub created_at: Option<DateTime<Utc>>,
}

/// How two versions of a state differ.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct StateDiff {
    pub added: Vec<String>,
    pub changed: Vec<String>,
    pub removed: Vec<String>,
    pub outputs_changed: Vec<String>,
    pub truncated: bool,
}

/// The outputs of a state.
#[derive(Clone, Debug, Deserialize)]
pub struct StateOutputs {
    pub serial: Option<i64>,
    #[serde(default)]
    pub items: Vec<StateOutput>,
    #[serde(default)]
    pub truncated: bool,
}

/// One of them.
#[derive(Clone, Deserialize)]
pub struct StateOutput {
    pub name: String,
    #[serde(rename = "type", default)]
    pub kind: Value,
    #[serde(default)]
    pub value: Value,
    pub withheld: Option<String>,
}

/// Without the value, which may be a secret.
impl std::fmt::Debug for StateOutput {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StateOutput").field("name", &self.name).finish_non_exhaustive()
    }
}

/// A resource in the index.
#[derive(Clone, Debug, Deserialize)]
pub struct Resource {
    pub workspace_name: String,
    pub address: String,
    pub resource_id: Option<String>,
    pub arn: Option<String>,
}

/// A write that was not accepted and not dropped.
#[derive(Clone, Debug, Deserialize)]
pub struct QuarantinedState {
    pub id: String,
    pub serial: Option<i64>,
    #[serde(default)]
    pub reason: String,
    #[serde(default)]
    pub size_bytes: i64,
    pub run_id: Option<String>,
    pub created_at: Option<DateTime<Utc>>,
}

/// The lock of a state.
#[derive(Clone, Debug, Deserialize)]
pub struct StateLock {
    pub held: bool,
    pub lock_id: Option<String>,
    pub info: Option<Value>,
    pub run_id: Option<String>,
    pub run_url: Option<String>,
    pub locked_at: Option<DateTime<Utc>>,
    pub workspace_lock: Option<Locked>,
    #[serde(default)]
    pub waiters: Vec<LockWaiter>,
}

/// Somebody who asks for it again and again.
#[derive(Clone, Debug, Deserialize)]
pub struct LockWaiter {
    pub lock_id: String,
    pub who: Option<String>,
    pub operation: Option<String>,
    #[serde(default)]
    pub tries: i32,
    pub first_tried_at: Option<DateTime<Utc>>,
}
