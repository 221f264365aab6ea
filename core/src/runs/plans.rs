//! The plan as people read it.

use serde::{Deserialize, Serialize};
use serde_json::json;

use super::artifacts::StoredArtifact;
use super::{PlanSummary, ResourceChange, RunError, artifacts, plan, reading, store};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::ids::RunId;
use crate::protocol::ArtifactKind;

/// Longest plan text in an answer, in bytes; longer ones are downloaded as an artifact.
const TEXT_BYTES_MAX: u64 = 512 << 10;
/// Longest plan JSON that is read for an answer, in bytes; longer ones are downloaded as an artifact, too.
const JSON_BYTES_MAX: u64 = 32 << 20;
/// Changes in an answer.
const CHANGES_MAX: usize = 2_000;

/// A plan.
#[derive(Clone, Debug, Serialize, Deserialize, utoipa::ToSchema)]
pub struct PlanView {
    /// Counts; absent if the plan could not be read.
    pub summary: Option<PlanSummary>,
    /// What changes, in the plan's order, without values; at most 2,000, and none of a plan larger than 32 MiB.
    pub resource_changes: Vec<ResourceChange>,
    /// Whether `resource_changes` lacks some.
    pub truncated: bool,
    /// The plan as Terraform prints it; absent if it is long or the caller may not read logs.
    pub text: Option<String>,
}

/// The plan of a run, from its redacted JSON.
pub async fn get(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<PlanView, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let run = store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let json = artifacts::find(&conn, id, ArtifactKind::PlanJsonRedacted).await?;
    let text = artifacts::find(&conn, id, ArtifactKind::PlanText).await?;
    let json = json.filter(|_| run.plan_sha256.is_some()).ok_or(RunError::NotFound("plan"))?;
    let shows = |text: &StoredArtifact| {
        text.size_bytes <= TEXT_BYTES_MAX && ctx.require(Permission::ReadLogs).is_ok()
    };
    let text = text.filter(shows);
    if text.is_some() {
        reading::record(&conn, &run.run, ctx, json!({ "artifact": ArtifactKind::PlanText })).await?;
    }
    drop(conn);
    let is_readable = json.size_bytes <= JSON_BYTES_MAX;
    let mut changes = if is_readable {
        plan::read_changes(&deps.blobs.get(&json.key).await?).unwrap_or_default()
    } else {
        Vec::new()
    };
    let truncated = !is_readable || changes.len() > CHANGES_MAX;
    changes.truncate(CHANGES_MAX);
    let text = match text {
        Some(text) => Some(deps.blobs.get(&text.key).await?),
        None => None,
    };
    Ok(PlanView {
        summary: run.run.plan_summary,
        resource_changes: changes,
        truncated,
        text: text.map(|bytes| String::from_utf8_lossy(&bytes).into_owned()),
    })
}
