//! Reading Terraform's plan JSON. Unknown keys are ignored; what cannot be understood is never counted as nothing.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::Value;

/// Counts of a plan. Source: `resource_changes`, `output_changes` and friends of `terraform show -json`.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanSummary {
    /// Resources to create; a replacement counts here and in `destroy`.
    pub add: u32,
    /// Resources to change in place.
    pub change: u32,
    /// Resources to destroy.
    pub destroy: u32,
    /// How many of the former are replacements.
    pub replace: u32,
    /// Resources to import.
    pub import: u32,
    /// Resources whose address changes.
    #[serde(rename = "move")]
    pub moved: u32,
    /// Resources to forget without destroying them.
    pub forget: u32,
    /// Data sources to read.
    pub read: u32,
    /// Resources that stay as they are.
    pub no_op: u32,
    /// Outputs that change.
    pub outputs: u32,
    /// Resources that differ from the state before the plan (reported, not changed).
    pub drift: u32,
    /// Changes that Terraform put off.
    pub deferred: u32,
    /// Changes with an action that we do not know.
    pub unknown: u32,
    /// Whether planning ended with an error.
    pub errored: bool,
    /// Whether applying this plan gives all that the configuration asks for.
    pub complete: bool,
}

/// Why a plan could not be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PlanUnreadable {
    /// Not JSON, or not the JSON of a plan.
    #[error("this is not the JSON of a Terraform plan: {0}")]
    NotAPlan(String),
    /// A format that we do not know.
    #[error("plan format {0} is not supported; formats 0.1 to 1.x are")]
    Format(String),
}

#[derive(Deserialize)]
struct PlanJson {
    format_version: String,
    #[serde(default)]
    resource_changes: Vec<ChangeJson>,
    #[serde(default)]
    resource_drift: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    deferred_changes: Vec<serde::de::IgnoredAny>,
    #[serde(default)]
    output_changes: BTreeMap<String, ActionsJson>,
    #[serde(default)]
    errored: bool,
    complete: Option<bool>,
}

#[derive(Deserialize)]
struct ChangeJson {
    address: String,
    module_address: Option<String>,
    previous_address: Option<String>,
    mode: Option<String>,
    change: ActionsJson,
}

#[derive(Deserialize)]
struct ActionsJson {
    actions: Vec<String>,
    #[serde(default)]
    importing: Option<Value>,
}

/// One changed resource, without its values.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct ResourceChange {
    /// Terraform address.
    pub address: String,
    /// What happens to it, in Terraform's words.
    pub actions: Vec<String>,
    /// The module that it lives in.
    pub module: Option<String>,
    /// Where it was before, if it moves.
    pub previous_address: Option<String>,
    /// Whether it is imported.
    pub importing: bool,
}

fn parse(json: &[u8]) -> Result<PlanJson, PlanUnreadable> {
    let plan: PlanJson =
        serde_json::from_slice(json).map_err(|error| PlanUnreadable::NotAPlan(error.to_string()))?;
    let major = plan.format_version.split('.').next().unwrap_or_default();
    if !matches!(major, "0" | "1") {
        return Err(PlanUnreadable::Format(plan.format_version));
    }
    Ok(plan)
}

/// Counts a plan's changes.
pub fn summarise(json: &[u8]) -> Result<PlanSummary, PlanUnreadable> {
    let plan = parse(json)?;
    let mut summary = PlanSummary {
        errored: plan.errored,
        // Older formats do not say; then the plan is all there is.
        complete: plan.complete.unwrap_or(!plan.errored),
        drift: count(plan.resource_drift.len()),
        deferred: count(plan.deferred_changes.len()),
        ..PlanSummary::default()
    };
    for resource in &plan.resource_changes {
        summary.count_resource(resource);
    }
    let changed = |output: &&ActionsJson| output.actions.iter().any(|action| action != "no-op");
    summary.outputs = count(plan.output_changes.values().filter(changed).count());
    Ok(summary)
}

/// The changed resources, in the plan's order. Resources that stay as they are are left out.
pub fn read_changes(json: &[u8]) -> Result<Vec<ResourceChange>, PlanUnreadable> {
    let changes = parse(json)?.resource_changes.into_iter().map(|resource| ResourceChange {
        importing: resource.change.importing.is_some_and(|value| !value.is_null()),
        address: resource.address,
        actions: resource.change.actions,
        module: resource.module_address,
        previous_address: resource.previous_address,
    });
    let stays = |change: &ResourceChange| {
        change.actions == ["no-op"] && !change.importing && change.previous_address.is_none()
    };
    Ok(changes.filter(|change| !stays(change)).collect())
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}

impl PlanSummary {
    fn count_resource(&mut self, resource: &ChangeJson) {
        if resource.change.importing.as_ref().is_some_and(|value| !value.is_null()) {
            self.import += 1;
        }
        if resource.previous_address.is_some() {
            self.moved += 1;
        }
        let actions: Vec<&str> = resource.change.actions.iter().map(String::as_str).collect();
        match actions[..] {
            ["no-op"] => self.no_op += 1,
            ["read"] => self.read += 1,
            ["create"] => self.add += 1,
            ["update"] => self.change += 1,
            ["delete"] => self.destroy += 1,
            ["delete", "create"] | ["create", "delete"] => {
                self.add += 1;
                self.destroy += 1;
                self.replace += 1;
            }
            ["forget"] => self.forget += 1,
            ["create", "forget"] | ["forget", "create"] => {
                self.add += 1;
                self.forget += 1;
            }
            _ if resource.mode.as_deref() == Some("data") && actions.is_empty() => self.read += 1,
            _ => self.unknown += 1,
        }
    }
}
