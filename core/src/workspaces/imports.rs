//! Storing what an import found, many workspaces at once.

use serde_json::json;

use super::Settings;
use super::store::{self, Import};
use crate::access::Actor;
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, WorkspaceId};
use crate::tasks::{self, Lease, TaskError};

/// Workspaces that one transaction stores at most.
pub const BATCH_MAX: usize = 100;

/// Who imports what.
#[derive(Clone, Debug)]
pub struct Batch<'a> {
    /// Into which unit.
    pub unit: BusinessUnitId,
    /// Who asked for it.
    pub actor: &'a Actor,
    /// The attempt that does it.
    pub lease: Lease,
    /// The workspaces, with ids that a repeated attempt gives them again. All of one repository and one branch.
    pub workspaces: &'a [(WorkspaceId, Settings)],
}

/// Stores those that are not there, each with its audit entry. Returns the ids of those that this import made, now
/// or in an earlier attempt; the others exist already.
pub async fn import(tx: &Tx<'_>, batch: &Batch<'_>) -> Result<Vec<WorkspaceId>, ImportError> {
    let Some((_, first)) = batch.workspaces.first() else { return Ok(Vec::new()) };
    let shared = Import {
        unit: batch.unit,
        created_by: batch.actor.user_id(),
        repo_url: first.repo_url(),
        repo_ref: first.repo_ref(),
    };
    let made = store::import(tx, &shared, batch.workspaces).await?;
    // An attempt that lost its lease must not store beside its successor.
    tasks::service::lock_held(tx, batch.lease).await?;
    let ids: Vec<WorkspaceId> = batch.workspaces.iter().map(|(id, _)| *id).collect();
    let ours = store::existing(tx, batch.unit, ids).await?;
    for (id, settings) in batch.workspaces.iter().filter(|(id, _)| made.contains(id)) {
        audit::service::record(tx, &entry(batch, *id, settings)).await?;
    }
    Ok(ours)
}

/// Account, region, environment and directory of each workspace of a repository.
pub async fn places(
    query: &impl Query,
    unit: BusinessUnitId,
    repo_url: &str,
) -> Result<Vec<(String, String, String, String)>, DbError> {
    store::places(query, unit, repo_url).await
}

/// Why a batch was not stored.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// Another attempt owns the task.
    #[error(transparent)]
    Task(#[from] TaskError),
    /// The database.
    #[error(transparent)]
    Db(#[from] DbError),
}

fn entry(batch: &Batch<'_>, id: WorkspaceId, settings: &Settings) -> Entry {
    Entry {
        business_unit_id: Some(batch.unit),
        actor: batch.actor.clone(),
        action: Action::WorkspaceImport,
        resource_type: "workspace",
        resource_id: id.to_string(),
        workspace_id: Some(id),
        run_id: None,
        details: json!({
            "name": settings.name(),
            "aws_account_id": settings.aws_account_id(),
            "region": settings.region(),
            "environment": settings.environment(),
            "repo_url": settings.repo_url(),
            "tf_working_dir": settings.tf_working_dir(),
            "task_id": batch.lease.task_id,
        }),
    }
}
