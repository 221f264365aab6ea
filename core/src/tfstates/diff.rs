//! What differs between two states, by resource address. Values are compared but never shown.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// What differs between two states. Every list is sorted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct StateDiff {
    /// Addresses that only the newer one has.
    pub added: Vec<String>,
    /// Addresses whose content differs.
    pub changed: Vec<String>,
    /// Addresses that only the older one has.
    pub removed: Vec<String>,
    /// Names of outputs that were added, changed or removed.
    pub outputs_changed: Vec<String>,
}

/// The addresses of a state's resources.
pub type Addresses = std::collections::BTreeSet<String>;

/// The addresses in a state. `None` if it cannot be read: not a state, or encrypted by the client.
pub(super) fn addresses(body: &[u8]) -> Option<Addresses> {
    Some(Contents::read(body)?.resources.into_keys().collect())
}

/// Compares two states. `None` if one cannot be read: not a state, or encrypted by the client.
pub fn diff(older: &[u8], newer: &[u8]) -> Option<StateDiff> {
    let (older, newer) = (Contents::read(older)?, Contents::read(newer)?);
    let mut diff = StateDiff::default();
    for (address, value) in &newer.resources {
        match older.resources.get(address) {
            None => diff.added.push(address.clone()),
            Some(before) if before != value => diff.changed.push(address.clone()),
            Some(_) => {}
        }
    }
    diff.removed =
        older.resources.keys().filter(|address| !newer.resources.contains_key(*address)).cloned().collect();
    let names: std::collections::BTreeSet<_> = older.outputs.keys().chain(newer.outputs.keys()).collect();
    diff.outputs_changed = names
        .into_iter()
        .filter(|name| older.outputs.get(*name) != newer.outputs.get(*name))
        .cloned()
        .collect();
    Some(diff)
}

struct Contents {
    resources: BTreeMap<String, Vec<Value>>,
    outputs: BTreeMap<String, Value>,
}

#[derive(Deserialize)]
struct Body {
    #[serde(default)]
    encrypted_data: Option<serde::de::IgnoredAny>,
    #[serde(default)]
    outputs: BTreeMap<String, Value>,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
struct Resource {
    #[serde(default)]
    module: Option<String>,
    mode: String,
    #[serde(rename = "type")]
    kind: String,
    name: String,
    #[serde(default)]
    instances: Vec<BTreeMap<String, Value>>,
}

impl Contents {
    fn read(body: &[u8]) -> Option<Self> {
        let body: Body = serde_json::from_slice(body).ok()?;
        if body.encrypted_data.is_some() {
            return None;
        }
        let mut resources: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for resource in &body.resources {
            for instance in &resource.instances {
                resources.entry(resource.address(instance)).or_default().push(comparable(instance));
            }
        }
        Some(Self { resources, outputs: body.outputs })
    }
}

impl Resource {
    fn address(&self, instance: &BTreeMap<String, Value>) -> String {
        let mut address = String::new();
        if let Some(module) = &self.module {
            address.push_str(module);
            address.push('.');
        }
        if self.mode == "data" {
            address.push_str("data.");
        }
        address.push_str(&self.kind);
        address.push('.');
        address.push_str(&self.name);
        // Terraform writes keys of `for_each` as quoted strings: JSON's quoting is the same for what it allows.
        if let Some(key @ (Value::String(_) | Value::Number(_))) = instance.get("index_key") {
            address.push_str(&format!("[{key}]"));
        }
        address
    }
}

/// What of an instance people mean by "changed": not the order in which it is built, nor a provider's notes.
fn comparable(instance: &BTreeMap<String, Value>) -> Value {
    let kept = instance.iter().filter(|(name, _)| !matches!(name.as_str(), "dependencies" | "private"));
    Value::Object(kept.map(|(name, value)| (name.clone(), value.clone())).collect())
}
