//! What a queued task does for the index. It runs in the worker: it reads tenants' states and calls nobody but the object
//! store, so it must not run where code calls addresses that tenants chose.

use serde_json::{Value, json};
use tokio::sync::Semaphore;

use super::store;
use crate::Deps;
use crate::db::{DbError, Tx};
use crate::ids::{BusinessUnitId, IdSource, WorkspaceId};
use crate::tasks::{self, ClaimedTask, FailedAttempt, NewTask, TaskKind};
use crate::tfstates::{self, StateError};

/// How often one attempt starts again because the state was written meanwhile. After that the next task goes on.
const ROUNDS_MAX: usize = 3;

/// States are read one at a time in a process: each may take some ten megabytes.
static READING: Semaphore = Semaphore::const_new(1);

/// Asks for the workspace's newest state to be indexed, unless that is waiting already.
pub async fn enqueue(
    tx: &Tx<'_>,
    ids: IdSource,
    unit: BusinessUnitId,
    workspace_id: WorkspaceId,
) -> Result<(), DbError> {
    // The version is not part of the key: whichever is the newest when the task begins is the one that it is about.
    let key = format!("{}:{workspace_id}", TaskKind::StateIndex.as_str());
    tasks::service::enqueue(tx, ids, &NewTask::new(TaskKind::StateIndex, unit, workspace_id, key)).await?;
    Ok(())
}

/// Brings the index of a workspace to the newest version of its state.
pub async fn index(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let place = (task.business_unit_id, WorkspaceId(task.subject_id));
    let Ok(_one) = READING.acquire().await else {
        return Err(FailedAttempt::Retry("the function is ending".into()));
    };
    for _ in 0..ROUNDS_MAX {
        if let Some(done) = index_head(deps, place).await.map_err(|error| failed(&error))? {
            return Ok(done);
        }
    }
    // The sweep sees that the head is not in the index.
    Ok(json!({ "indexed": false, "reason": "the state is being written" }))
}

/// `None`: the head moved while it was read.
async fn index_head(
    deps: &Deps,
    (unit, workspace_id): (BusinessUnitId, WorkspaceId),
) -> Result<Option<Value>, StateError> {
    let (head, indexed) = {
        let conn = deps.db.conn().await?;
        let head = tfstates::service::find_head(&conn, workspace_id).await?;
        (head, store::find_indexed(&conn, unit, workspace_id).await?)
    };
    let Some(head) = head else {
        return Ok(Some(json!({ "indexed": false, "reason": "there is no state" })));
    };
    if indexed == Some(head.version_id) {
        return Ok(Some(json!({ "indexed": true, "version_id": head.version_id })));
    }
    let seen = tfstates::service::look_into(deps, (unit, workspace_id), &head).await?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    if !store::lock_index(&tx, unit, workspace_id).await? {
        return Ok(Some(json!({ "indexed": false, "reason": "the workspace is gone" })));
    }
    // Under the lock: a task that read an older version finds here that there is a newer one, whichever is first.
    let now = tfstates::service::find_head(&tx, workspace_id).await?;
    if now.as_ref().map(|now| now.version_id) != Some(head.version_id) {
        return Ok(None);
    }
    let (resources, truncated) = (seen.resources.len(), seen.truncated);
    let unreadable = seen.unreadable.map(|why| why.to_string());
    store::replace(&tx, deps.ids, (unit, workspace_id), seen.resources).await?;
    store::set_indexed(&tx, (unit, workspace_id), head.version_id, truncated, unreadable.as_deref()).await?;
    tfstates::service::note(&tx, (unit, workspace_id), &head, &seen.noted).await?;
    tx.commit().await?;
    Ok(Some(json!({
        "indexed": true, "version_id": head.version_id, "resources": resources, "truncated": truncated,
        "unreadable": unreadable,
    })))
}

fn failed(error: &StateError) -> FailedAttempt {
    tracing::warn!(%error, "a state was not indexed");
    // What the store or the database said is for the log.
    FailedAttempt::Retry(
        "the state could not be read from the object store, or the index not be written".into(),
    )
}

/// The attempts are spent: this version is not tried again.
pub async fn dead_lettered(tx: &Tx<'_>, task: &ClaimedTask) -> Result<(), DbError> {
    store::set_failed(tx, task.business_unit_id, WorkspaceId(task.subject_id)).await
}
