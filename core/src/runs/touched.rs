//! What an apply touches, reported while it does, and what of it the state does not have afterwards.

use std::collections::BTreeMap;

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::{RunError, reading, store};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::db::Query;
use crate::executors::ExecutorCaller;
use crate::ids::RunId;
use crate::protocol::{RunPhase, TouchedReport, TouchedResource};
use crate::tfstates;

/// Resources kept of one run.
const KEPT_MAX: i64 = 10_000;
/// Resources in an answer.
const SHOWN_MAX: usize = 1_000;

const REPORT: &str = include_str!("sql/report_touched.sql");

/// Keeps what an apply has begun or done to its resources; the newest word about an address counts. Taken without the
/// lease, too: an apply that was given up goes on changing things, and then it matters most.
pub async fn report(deps: &Deps, caller: &ExecutorCaller, report: &TouchedReport) -> Result<(), RunError> {
    if caller.phase != RunPhase::Apply {
        return Err(RunError::NotFound("apply of this attempt"));
    }
    check(report)?;
    let newest: BTreeMap<&str, &TouchedResource> =
        report.resources.iter().map(|resource| (resource.address.as_str(), resource)).collect();
    let addresses: Vec<&str> = newest.keys().copied().collect();
    let actions: Vec<&str> = newest.values().map(|resource| resource.action.as_str()).collect();
    let ids: Vec<Option<&str>> = newest.values().map(|resource| resource.id.as_deref()).collect();
    let conn = deps.db.conn().await?;
    conn.execute(REPORT, &[&caller.business_unit_id, &caller.run_id, &addresses, &actions, &ids, &KEPT_MAX])
        .await?;
    Ok(())
}

fn check(report: &TouchedReport) -> Result<(), RunError> {
    let invalid = |field: &str, reason: &str| {
        Err(RunError::Invalid { field: field.to_owned(), reason: reason.to_owned() })
    };
    if report.resources.len() > TouchedReport::RESOURCES_MAX {
        return invalid("resources", "at most 500 in one report");
    }
    for resource in &report.resources {
        let texts = [Some(&resource.address), Some(&resource.action), resource.id.as_ref()];
        if resource.address.is_empty()
            || !texts.into_iter().flatten().all(|text| TouchedResource::can_tell(text))
        {
            return invalid("resources", "addresses and ids have 1 to 2,000 characters, and no NUL");
        }
    }
    Ok(())
}

/// A resource that an apply made, or began to make, and that the newest state does not have.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnrecordedResource {
    /// Terraform address.
    pub address: String,
    /// The id that the provider gave. Absent: it was being made, and nobody knows whether it exists.
    pub resource_id: Option<String>,
    /// What records it in the state, for a POSIX shell. Absent without an id.
    pub import_command: Option<String>,
}

/// What the state lacks after an apply.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct UnrecordedResources {
    /// By address; at most 1,000.
    pub items: Vec<UnrecordedResource>,
    /// Whether `items` lacks some.
    pub truncated: bool,
    /// Whether the newest state could be read. If not, because its client encrypts it or it has more than 100,000 resources,
    /// `items` has everything that the apply made.
    pub is_state_readable: bool,
}

const CREATED: &str = "
    SELECT address, resource_id FROM touched_resources WHERE run_id = $1 AND action = 'create' ORDER BY address";

/// What a run's apply made, as far as it could report, and the newest state does not have.
pub async fn unrecorded(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<UnrecordedResources, RunError> {
    ctx.require(Permission::ReadState)?;
    let conn = deps.db.conn().await?;
    let run = store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    reading::record(&conn, &run.run, ctx, json!({ "unrecorded_resources": true })).await?;
    let rows = conn.query(CREATED, &[&id]).await?;
    let created: Vec<(String, Option<String>)> =
        rows.iter().map(|row| (row.get("address"), row.get("resource_id"))).collect();
    let head = tfstates::service::find_head(&conn, run.run.workspace_id).await?;
    drop(conn);
    let recorded = if created.is_empty() {
        Some(tfstates::Addresses::default())
    } else {
        tfstates::service::addresses(deps, head.as_ref()).await?
    };
    let tool = run.run.tool.as_deref().unwrap_or("terraform");
    let mut items: Vec<UnrecordedResource> = created
        .into_iter()
        .filter(|(address, _)| !recorded.as_ref().is_some_and(|recorded| recorded.contains(address)))
        .map(|(address, resource_id)| UnrecordedResource {
            import_command: resource_id.as_deref().map(|id| import_command(tool, &address, id)),
            address,
            resource_id,
        })
        .collect();
    let truncated = items.len() > SHOWN_MAX;
    items.truncate(SHOWN_MAX);
    Ok(UnrecordedResources { items, truncated, is_state_readable: recorded.is_some() })
}

/// Both are a tenant's words: quoted, so that a shell takes them as they are.
fn import_command(tool: &str, address: &str, id: &str) -> String {
    let quoted = |text: &str| format!("'{}'", text.replace('\'', r"'\''"));
    format!("{tool} import {} {}", quoted(address), quoted(id))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shell_takes_an_address_and_an_id_as_they_are() {
        assert_eq!(
            import_command("tofu", r#"aws_s3_bucket.b["a b"]"#, "$(reboot) 'x'"),
            r#"tofu import 'aws_s3_bucket.b["a b"]' '$(reboot) '\''x'\'''"#
        );
    }
}
