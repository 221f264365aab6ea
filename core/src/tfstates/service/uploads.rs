//! Bodies of any size: begin, upload to the object store, commit; and the sweep over those that were left behind.

use super::bodies::{BodyAt, copy_to};
use super::writes::{Settled, WriteOutcome, discard_body, judge, refused, settle};
use super::{Author, StateActor, key_of, lock_row};
use crate::Deps;
use crate::access::Actor;
use crate::ids::{StateUploadId, WorkspaceId};
use crate::ports::{self, UploadTerms};
use crate::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use crate::state_stores::{self, service::Home};
use crate::tfstates::contents::Beginning;
use crate::tfstates::store::{self, NewUpload, NewVersion, UploadRow, UploadStatus};
use crate::tfstates::{HeldBy, QuarantineReason, SERIAL_MAX, StateError, Verdict, Write, WriteFence};

/// Uploads that one sweep looks at between two reads of the list.
const SWEEP_BATCH: i64 = 100;
/// The generation of an upload whose writer does not hold the lock: no lock has it, so the body ends in quarantine.
const NO_GENERATION: i64 = 0;
/// How much of a body is looked at before it is accepted, in bytes.
const BEGINNING_BYTES: u64 = 64 << 10;
const FIELD_LENGTH_MAX: usize = 255;
/// S3 takes no more in one request.
const SIZE_BYTES_MAX: u64 = 5 << 30;

/// Registers a body and says where its bytes go. Begun under a lost lock it is still taken, for quarantine; what is
/// certain to be refused to a person, as an inline write would be, is refused before they send it.
pub async fn begin_upload(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    begin: &StateUploadBegin,
) -> Result<StateUploadAnswer, StateError> {
    let by = actor.require_write()?;
    let (md5, size_bytes) = checked(begin)?;
    let fence = match (begin.lock_id.as_deref(), by) {
        (Some(id), by) => WriteFence::Lock { id, by },
        (None, HeldBy::Person(_)) => WriteFence::Unlocked,
        (None, HeldBy::Executor(_)) => {
            return Err(StateError::Invalid("an executor writes under its lock: name it in lock_id"));
        }
    };
    let author = actor.author();
    let (upload_id, key) = {
        let mut conn = deps.db.conn().await?;
        let tx = conn.begin().await?;
        let row = lock_row(&tx, actor.unit(), workspace_id).await?;
        actor.require_writable(&row)?;
        actor.require_unit_in_use(&tx, &row).await?;
        actor.require_may_write(fence, &row)?;
        let announced = Write { fence, serial: begin.serial, lineage: &begin.lineage, sha256: begin.sha256 };
        if let Verdict::Refuse(reason) = judge(&row, &announced) {
            return Err(refused(&row, reason));
        }
        let lock_id = begin.lock_id.as_deref();
        let holds = row.lock_facts().zip(lock_id).is_some_and(|(lock, id)| lock.lets(id, by));
        let id: StateUploadId = deps.ids.mint();
        let key = key_of(&row, id.0);
        let new = NewUpload {
            id,
            generation: if holds { row.generation } else { NO_GENERATION },
            lock_id,
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
    let by = actor.require_write()?;
    let upload = {
        let conn = deps.db.conn().await?;
        store::find_upload(&conn, actor.unit(), workspace_id, upload_id).await?
    };
    // Another run's or person's upload is as good as none.
    let author = actor.author();
    let is_own =
        |upload: &UploadRow| upload.run_id == author.run_id && upload.created_by == author.actor.user_id();
    let upload = upload.filter(is_own).ok_or(StateError::NotFound("upload"))?;
    match upload.status {
        UploadStatus::Committed => return Ok(StateUploadCommit::Accepted),
        UploadStatus::Quarantined => return Ok(StateUploadCommit::Quarantined),
        UploadStatus::Abandoned => return Err(StateError::UploadClosed),
        UploadStatus::Pending => {}
    }
    let arrived = arrived(deps, &upload).await?.ok_or(StateError::UploadMissing)?;
    let home = bring_home(deps, &upload).await?;
    commit(deps, Committer::Writer(actor, by), &upload, (arrived, &home)).await
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
            if let Some(arrived) = arrived(deps, upload).await? {
                match bring_home(deps, upload).await {
                    Ok(home) => {
                        commit(deps, Committer::Sweep, upload, (arrived, &home)).await?;
                        settled += 1;
                    }
                    Err(StateError::Db(error)) => return Err(error.into()),
                    // It stays pending, and its bytes where they came. Others do not wait for it.
                    Err(error) => {
                        tracing::warn!(state_upload.id = %upload.id, %error, "an upload waits for its store");
                    }
                }
            } else if *is_over {
                let conn = deps.db.conn().await?;
                let closed =
                    store::close_upload(&conn, upload, UploadStatus::Abandoned, upload.store_id).await?;
                settled += usize::from(closed);
            }
        }
    }
}

/// Looks whether the announced bytes are there, and into the first of them: what their writer said of them is what the head
/// will be judged by. `None`: not there. Other ones stay: a repeated upload replaces them.
async fn arrived(deps: &Deps, upload: &UploadRow) -> Result<Option<Beginning>, StateError> {
    let size_bytes = u64::try_from(upload.size_bytes).unwrap_or(0);
    if !ports::holds(&*deps.blobs, &upload.key, size_bytes, upload.sha256).await? {
        return Ok(None);
    }
    let beginning = deps.blobs.get_part(&upload.key, 0..size_bytes.min(BEGINNING_BYTES)).await?;
    let is_whole = size_bytes <= BEGINNING_BYTES;
    Ok(Some(Beginning::read(&beginning, is_whole, upload.serial, &upload.lineage)))
}

/// Copies an arrived body to where the workspace's state lies, under the same key: done again it finds what it did. Until the
/// row that names the copy is there, the bytes also stay where they came.
async fn bring_home(deps: &Deps, upload: &UploadRow) -> Result<Home, StateError> {
    let home = state_stores::service::home_of(deps, upload.workspace_id).await?;
    let Some(store_id) = home.store_id else { return Ok(home) };
    if upload.store_id != Some(store_id) {
        store::set_copying(&deps.db.conn().await?, upload, store_id).await?;
    }
    let body = BodyAt::open(deps, None, &upload.key, upload.size_bytes).await?;
    copy_to(&body, &*home.blobs, upload.sha256).await?;
    Ok(home)
}

/// Removes the bytes where they came, once they lie somewhere else.
async fn discard_staged(deps: &Deps, home: &Home, key: &str) {
    if home.store_id.is_some() {
        discard_body(&*deps.blobs, key).await;
    }
}

/// Who wants an upload to be settled.
#[derive(Clone, Copy)]
enum Committer<'a> {
    /// Who began it, and waits for the answer.
    Writer(&'a StateActor<'a>, HeldBy),
    /// Nobody may have the bytes but we.
    Sweep,
}

impl Committer<'_> {
    fn author(self, upload: &UploadRow) -> Author {
        match self {
            Self::Writer(actor, _) => actor.author(),
            Self::Sweep => Author { actor: Actor::System, run_id: upload.run_id },
        }
    }

    /// What was begun without a lock is only settled for whoever asks: long after, it would come as a surprise.
    fn fence(self, upload: &UploadRow) -> WriteFence<'_> {
        let by = match self {
            Self::Writer(_, by) => Some(by),
            Self::Sweep => None,
        };
        match (&upload.lock_id, by) {
            (None, Some(_)) => WriteFence::Unlocked,
            (lock_id, by) => {
                let id = lock_id.as_deref().unwrap_or_default();
                WriteFence::Upload { id, generation: upload.generation, by }
            }
        }
    }
}

async fn commit(
    deps: &Deps,
    committer: Committer<'_>,
    seen: &UploadRow,
    (arrived, home): (Beginning, &Home),
) -> Result<StateUploadCommit, StateError> {
    let unit = seen.business_unit_id;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, Some(unit), seen.workspace_id).await?;
    if let Committer::Writer(actor, _) = committer {
        actor.require_writable(&row)?;
        actor.require_unit_in_use(&tx, &row).await?;
    }
    let upload = store::lock_upload(&tx, unit, seen.id).await?.ok_or(StateError::NotFound("upload"))?;
    match upload.status {
        UploadStatus::Committed => return Ok(StateUploadCommit::Accepted),
        UploadStatus::Quarantined => return Ok(StateUploadCommit::Quarantined),
        UploadStatus::Abandoned => return Err(StateError::UploadClosed),
        UploadStatus::Pending => {}
    }
    let write = Write {
        fence: committer.fence(&upload),
        serial: upload.serial,
        lineage: &upload.lineage,
        sha256: upload.sha256,
    };
    if let Committer::Writer(actor, _) = committer {
        actor.require_may_write(write.fence, &row)?;
    }
    let verdict = match (judge(&row, &write), arrived.contradiction) {
        (Verdict::Accept, Some(_)) => Verdict::Quarantine(QuarantineReason::Contradiction),
        (verdict, _) => verdict,
    };
    if let Verdict::Refuse(reason) = verdict {
        // The head moved while the bytes came. Their writer still has them.
        store::close_upload(&tx, &upload, UploadStatus::Abandoned, home.store_id).await?;
        tx.commit().await?;
        drop(conn);
        discard_body(&*home.blobs, &upload.key).await;
        discard_staged(deps, home, &upload.key).await;
        return Err(refused(&row, reason));
    }
    let author = committer.author(&upload);
    let new = version_of(deps, &upload, &arrived, home);
    let settled = settle(&tx, deps.ids, &author, &row, verdict, &new).await?;
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
    store::close_upload(&tx, &upload, status, home.store_id).await?;
    tx.commit().await?;
    drop(conn);
    if orphaned {
        discard_body(&*home.blobs, &upload.key).await;
    }
    discard_staged(deps, home, &upload.key).await;
    Ok(answer)
}

fn version_of<'a>(deps: &Deps, upload: &'a UploadRow, arrived: &Beginning, home: &Home) -> NewVersion<'a> {
    NewVersion {
        id: deps.ids.mint(),
        serial: upload.serial,
        lineage: &upload.lineage,
        lock_id: upload.lock_id.as_deref(),
        md5: upload.md5,
        sha256: upload.sha256,
        size_bytes: upload.size_bytes,
        key: &upload.key,
        store_id: home.store_id,
        terraform_version: upload.terraform_version.as_deref(),
        opaque: arrived.is_opaque,
        run_id: upload.run_id,
        created_by: upload.created_by,
        rolled_back_from: None,
        resource_count: arrived.resource_count,
    }
}

fn checked(begin: &StateUploadBegin) -> Result<([u8; 16], i64), StateError> {
    let usable =
        |text: &str| !text.is_empty() && text.len() <= FIELD_LENGTH_MAX && !text.contains(char::is_control);
    if !begin.lock_id.as_deref().is_none_or(usable) || !usable(&begin.lineage) {
        return Err(StateError::Invalid("lock_id and lineage must have 1 to 255 characters"));
    }
    if begin.terraform_version.as_deref().is_some_and(|version| !usable(version)) {
        return Err(StateError::Invalid("terraform_version must have 1 to 255 characters"));
    }
    if !(0..=SERIAL_MAX).contains(&begin.serial) {
        return Err(StateError::Invalid("serial must be from 0 to 2^53 - 1"));
    }
    let size_bytes = i64::try_from(begin.size_bytes)
        .ok()
        .filter(|size| *size > 0 && begin.size_bytes <= SIZE_BYTES_MAX)
        .ok_or(StateError::Invalid("size_bytes must be a length of 1 byte to 5 GiB"))?;
    let mut md5 = [0; 16];
    hex::decode_to_slice(&begin.md5, &mut md5)
        .map_err(|_| StateError::Invalid("md5 must be 32 hex digits"))?;
    Ok((md5, size_bytes))
}
