//! Bodies of any size: begin, upload to the object store, commit; and the sweep over those that were left behind.

use super::writes::{Settled, WriteOutcome, discard_body, judge, settle};
use super::{Author, StateActor, key_of, lock_row};
use crate::Deps;
use crate::access::Actor;

use crate::ids::{StateUploadId, WorkspaceId};
use crate::ports::{self, UploadTerms};
use crate::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use crate::tfstates::store::{self, NewUpload, NewVersion, UploadRow, UploadStatus};
use crate::tfstates::{StateError, Write, WriteFence};

/// Uploads that one sweep looks at between two reads of the list.
const SWEEP_BATCH: i64 = 100;
/// The generation of an upload whose writer does not hold the lock: no lock has it, so the body ends in quarantine.
const NO_GENERATION: i64 = 0;
const FIELD_LENGTH_MAX: usize = 255;

/// Registers a body and says where its bytes go. Begun under a lost lock it is still taken, for quarantine.
pub async fn begin_upload(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    begin: &StateUploadBegin,
) -> Result<StateUploadAnswer, StateError> {
    let by = actor.require_write()?;
    let (md5, size_bytes) = checked(begin)?;
    let author = actor.author();
    let (upload_id, key) = {
        let mut conn = deps.db.conn().await?;
        let tx = conn.begin().await?;
        let row = lock_row(&tx, actor.unit(), workspace_id).await?;
        actor.require_writable(&row)?;
        let holds = row
            .lock_facts()
            .is_some_and(|lock| lock.id == begin.lock_id && lock.by.is_some_and(|holder| holder.lets(by)));
        let id: StateUploadId = deps.ids.mint();
        let key = key_of(&row, id.0);
        let new = NewUpload {
            id,
            generation: if holds { row.generation } else { NO_GENERATION },
            lock_id: &begin.lock_id,
            key: &key,
            serial: begin.serial,
            lineage: &begin.lineage,
            sha256: begin.sha256,
            md5,
            size_bytes,
            terraform_version: begin.terraform_version.as_deref(),
            run_id: author.run_id,
            created_by: author.actor.user_id(),
            url_age_seconds: deps.limits.upload_url_age.as_secs_f64(),
        };
        let begun = store::begin_upload(&tx, &row, &new).await?;
        tx.commit().await?;
        begun
    };
    let terms = UploadTerms {
        size_bytes: begin.size_bytes,
        sha256: begin.sha256,
        content_type: "application/json".into(),
    };
    let request = deps.blobs.presign_put(&key, &terms, deps.limits.upload_url_age).await?;
    Ok(StateUploadAnswer { upload_id, request })
}

/// Makes an uploaded body the head if its lock still holds, else keeps it in quarantine. The same commit once more
/// answers the same.
pub async fn commit_upload(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    upload_id: StateUploadId,
) -> Result<StateUploadCommit, StateError> {
    actor.require_write()?;
    let upload = {
        let conn = deps.db.conn().await?;
        store::find_upload(&conn, actor.unit(), workspace_id, upload_id).await?
    };
    // Another run's upload is as good as none.
    let upload =
        upload.filter(|upload| upload.run_id == actor.run_id()).ok_or(StateError::NotFound("upload"))?;
    match upload.status {
        UploadStatus::Committed => return Ok(StateUploadCommit::Accepted),
        UploadStatus::Quarantined => return Ok(StateUploadCommit::Quarantined),
        UploadStatus::Abandoned => return Err(StateError::UploadClosed),
        UploadStatus::Pending => {}
    }
    if !is_there(deps, &upload).await? {
        return Err(StateError::UploadMissing);
    }
    commit(deps, &actor.author(), &upload).await
}

/// Settles uploads whose URL has expired: what is found becomes the head or goes to quarantine, what never came is
/// given up when its time is over. Safe at any parallelism. Returns how many were settled.
pub async fn sweep_uploads(deps: &Deps) -> Result<usize, StateError> {
    let age = deps.limits.pending_upload_age.as_secs_f64();
    let (mut settled, mut after) = (0, None);
    loop {
        let batch = store::list_expired(&deps.db.conn().await?, SWEEP_BATCH, age, after).await?;
        let Some((last, _)) = batch.last() else { return Ok(settled) };
        after = Some(last.id);
        for (upload, is_over) in &batch {
            if is_there(deps, upload).await? {
                let author = Author { actor: Actor::System, run_id: upload.run_id };
                commit(deps, &author, upload).await?;
                settled += 1;
            } else if *is_over {
                let conn = deps.db.conn().await?;
                let closed = store::close_upload(&conn, upload, UploadStatus::Abandoned).await?;
                settled += usize::from(closed);
            }
        }
    }
}

/// Whether the announced bytes are there. Other ones stay: a repeated upload replaces them.
async fn is_there(deps: &Deps, upload: &UploadRow) -> Result<bool, StateError> {
    let size_bytes = u64::try_from(upload.size_bytes).unwrap_or(0);
    Ok(ports::holds(&*deps.blobs, &upload.key, size_bytes, upload.sha256).await?)
}

async fn commit(deps: &Deps, author: &Author, seen: &UploadRow) -> Result<StateUploadCommit, StateError> {
    let unit = seen.business_unit_id;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, Some(unit), seen.workspace_id).await?;
    let upload = store::lock_upload(&tx, unit, seen.id).await?.ok_or(StateError::NotFound("upload"))?;
    match upload.status {
        UploadStatus::Committed => return Ok(StateUploadCommit::Accepted),
        UploadStatus::Quarantined => return Ok(StateUploadCommit::Quarantined),
        UploadStatus::Abandoned => return Err(StateError::UploadClosed),
        UploadStatus::Pending => {}
    }
    let write = Write {
        fence: WriteFence::Upload { id: &upload.lock_id, generation: upload.generation },
        serial: upload.serial,
        lineage: &upload.lineage,
        sha256: upload.sha256,
    };
    let settled =
        settle(&tx, deps.ids, author, &row, judge(&row, &write), &version_of(deps, &upload)).await?;
    let (answer, status, orphaned) = match settled {
        Settled::Stored(WriteOutcome::Accepted(_)) => {
            (StateUploadCommit::Accepted, UploadStatus::Committed, false)
        }
        Settled::Stored(WriteOutcome::AlreadyStored) => {
            (StateUploadCommit::Accepted, UploadStatus::Committed, true)
        }
        Settled::Quarantined { key, .. } => {
            (StateUploadCommit::Quarantined, UploadStatus::Quarantined, key != upload.key)
        }
    };
    store::close_upload(&tx, &upload, status).await?;
    tx.commit().await?;
    drop(conn);
    if orphaned {
        discard_body(deps, &upload.key).await;
    }
    Ok(answer)
}

fn version_of<'a>(deps: &Deps, upload: &'a UploadRow) -> NewVersion<'a> {
    NewVersion {
        id: deps.ids.mint(),
        serial: upload.serial,
        lineage: &upload.lineage,
        lock_id: Some(&upload.lock_id),
        md5: upload.md5,
        sha256: upload.sha256,
        size_bytes: upload.size_bytes,
        key: &upload.key,
        terraform_version: upload.terraform_version.as_deref(),
        opaque: false,
        run_id: upload.run_id,
        created_by: upload.created_by,
        rolled_back_from: None,
    }
}

fn checked(begin: &StateUploadBegin) -> Result<([u8; 16], i64), StateError> {
    let usable = |text: &str| !text.is_empty() && text.len() <= FIELD_LENGTH_MAX && !text.contains('\0');
    if !usable(&begin.lock_id) || !usable(&begin.lineage) {
        return Err(StateError::Invalid("lock_id and lineage must have 1 to 255 characters"));
    }
    if begin.terraform_version.as_deref().is_some_and(|version| !usable(version)) {
        return Err(StateError::Invalid("terraform_version must have 1 to 255 characters"));
    }
    if begin.serial < 0 {
        return Err(StateError::Invalid("serial must not be negative"));
    }
    let size_bytes = i64::try_from(begin.size_bytes)
        .ok()
        .filter(|size| *size > 0)
        .ok_or(StateError::Invalid("size_bytes must be a positive length"))?;
    let mut md5 = [0; 16];
    hex::decode_to_slice(&begin.md5, &mut md5)
        .map_err(|_| StateError::Invalid("md5 must be 32 hex digits"))?;
    Ok((md5, size_bytes))
}
