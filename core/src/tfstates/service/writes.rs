//! Writes that carry the body in the request, and what every kind of write shares.

use base64::Engine as _;
use bytes::Bytes;
use md5::Digest as _;
use serde_json::{Value, json};

use super::{Author, StateActor, find_row, key_of, lock_row};
use crate::Deps;
use crate::audit::{self, Action, Draft};
use crate::db::Tx;
use crate::digest::Sha256Digest;
use crate::ids::{IdSource, QuarantinedStateId, StateVersionId, WorkspaceId};
use crate::ports::BlobStore;
use crate::state_stores::{self, service::Home};
use crate::tfstates::store::{self, NewVersion, StateRow};
use crate::tfstates::{QuarantineReason, StateError, Verdict, Write, WriteFence, judge_write, parse_state};

const LOCK_ID_LENGTH_MAX: usize = 255;

/// A write as it came.
#[derive(Clone, Debug)]
pub struct InlineWrite<'a> {
    /// `?ID=`.
    pub lock_id: Option<&'a str>,
    /// The header `Content-MD5`, in base64.
    pub content_md5: Option<&'a str>,
    /// The state.
    pub body: Bytes,
}

/// What became of a write that did not fail.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WriteOutcome {
    /// It is the head now.
    Accepted(StateVersionId),
    /// It was the head already.
    AlreadyStored,
}

/// What became of a judged write inside the transaction.
#[derive(Clone, Debug)]
pub(super) enum Settled {
    /// It is the head now, or was already.
    Stored(WriteOutcome),
    /// It is kept for a person, under this key.
    Quarantined { id: QuarantinedStateId, reason: QuarantineReason, key: String },
}

/// Writes a state that fits into one request. A quarantined one is kept, and still an error: the writer must know
/// that it is not the head.
pub async fn write_inline(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    write: &InlineWrite<'_>,
) -> Result<WriteOutcome, StateError> {
    let by = actor.require_write()?;
    let max_bytes = deps.limits.inline_state_bytes_max;
    if write.body.len() > max_bytes {
        return Err(StateError::TooLarge { max_bytes });
    }
    if write.lock_id.is_some_and(|id| id.len() > LOCK_ID_LENGTH_MAX || id.contains('\0')) {
        return Err(StateError::Invalid("ID must have 1 to 255 characters"));
    }
    let md5 = checked_md5(write)?;
    let facts = parse_state(&write.body)?;
    let fence = match (write.lock_id, actor) {
        (Some(id), _) => WriteFence::Lock { id, by },
        (None, StateActor::Person(_)) => WriteFence::Unlocked,
        (None, StateActor::Executor { .. }) => {
            return Err(StateError::Invalid("an executor writes under its lock: name it in ?ID="));
        }
    };
    let judged =
        Write { fence, serial: facts.serial, lineage: &facts.lineage, sha256: Sha256Digest::of(&write.body) };
    // A first look, so that what is certain to be refused never reaches the object store.
    let conn = deps.db.conn().await?;
    let early = find_row(&conn, actor.unit(), workspace_id).await?;
    actor.require_writable(&early)?;
    actor.require_unit_in_use(&conn, &early).await?;
    drop(conn);
    actor.require_may_write(fence, &early)?;
    let verdict = judge(&early, &judged);
    match verdict {
        Verdict::Refuse(reason) => return Err(refused(&early, reason)),
        Verdict::AlreadyStored => return Ok(WriteOutcome::AlreadyStored),
        Verdict::Accept | Verdict::Quarantine(_) => {}
    }

    let home = home_of(deps, &early).await?;
    let author = actor.author();
    let id: StateVersionId = deps.ids.mint();
    let key = key_of(&early, id.0);
    home.blobs.put(&key, write.body.clone(), "application/json").await?;
    let new = NewVersion {
        id,
        serial: facts.serial,
        lineage: &facts.lineage,
        lock_id: write.lock_id,
        md5,
        sha256: judged.sha256,
        size_bytes: i64::try_from(write.body.len()).unwrap_or(i64::MAX),
        key: &key,
        store_id: home.store_id,
        terraform_version: facts.terraform_version.as_deref(),
        opaque: facts.opaque,
        run_id: author.run_id,
        created_by: author.actor.user_id(),
        rolled_back_from: None,
        resource_count: facts.resource_count.and_then(|count| i64::try_from(count).ok()),
    };
    if verdict == Verdict::Accept {
        // Accepted at once if the row is still the one that was judged; else judged again under its lock, below. After
        // a database error the row may stand: the body stays.
        let entry = Draft::of(&author.entry(&early, Action::StateWrite, accepted_facts(&early, &new)));
        if store::accept(&deps.db.conn().await?, &early, &new, &entry).await? {
            return Ok(WriteOutcome::Accepted(id));
        }
    }
    let settled = commit(deps, actor, workspace_id, &judged, &new).await;
    let used = match &settled {
        Ok(Settled::Stored(WriteOutcome::Accepted(_))) => true,
        Ok(Settled::Stored(WriteOutcome::AlreadyStored)) => false,
        Ok(Settled::Quarantined { key: kept, .. }) => *kept == key,
        // The commit's answer may be lost while its row stands: a body too many is better than one too few.
        Err(StateError::Db(_)) => true,
        Err(_) => false,
    };
    if !used {
        discard_body(&*home.blobs, &key).await;
    }
    match settled? {
        Settled::Stored(outcome) => Ok(outcome),
        Settled::Quarantined { id, reason, .. } => Err(StateError::Quarantined { id, reason }),
    }
}

/// Where new bodies go. Only where an account has something to say it is asked.
pub(super) async fn home_of(deps: &Deps, row: &StateRow) -> Result<Home, StateError> {
    if row.has_home {
        Ok(state_stores::service::home_of(deps, row.workspace_id).await?)
    } else {
        Ok(Home::platform(deps))
    }
}

async fn commit(
    deps: &Deps,
    actor: &StateActor<'_>,
    workspace_id: WorkspaceId,
    judged: &Write<'_>,
    new: &NewVersion<'_>,
) -> Result<Settled, StateError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let row = lock_row(&tx, actor.unit(), workspace_id).await?;
    actor.require_writable(&row)?;
    actor.require_may_write(judged.fence, &row)?;
    // Versions are listed by their ids, and another one may have been accepted since this id was made.
    let new = NewVersion { id: deps.ids.mint(), ..new.clone() };
    let settled = settle(&tx, deps.ids, &actor.author(), &row, judge(&row, judged), &new).await?;
    tx.commit().await?;
    Ok(settled)
}

pub(super) fn judge(row: &StateRow, write: &Write<'_>) -> Verdict {
    judge_write(row.head.as_ref(), row.lock_facts().as_ref(), row.accept_next_lineage, write)
}

/// Does what was judged, with its audit entry, in the transaction that holds the row's lock.
pub(super) async fn settle(
    tx: &Tx<'_>,
    ids: IdSource,
    author: &Author,
    row: &StateRow,
    verdict: Verdict,
    new: &NewVersion<'_>,
) -> Result<Settled, StateError> {
    match verdict {
        Verdict::Accept => {
            let entry = Draft::of(&author.entry(row, Action::StateWrite, accepted_facts(row, new)));
            accept(tx, row, new, &entry).await?;
            Ok(Settled::Stored(WriteOutcome::Accepted(new.id)))
        }
        Verdict::AlreadyStored => Ok(Settled::Stored(WriteOutcome::AlreadyStored)),
        Verdict::Quarantine(reason) => {
            let (id, key) = store::insert_quarantined(tx, row, ids.mint(), reason, new).await?;
            let details = facts(new, json!({ "quarantined_id": id, "reason": reason.as_str() }));
            audit::service::record(tx, &author.entry(row, Action::StateQuarantine, details)).await?;
            Ok(Settled::Quarantined { id, reason, key })
        }
        Verdict::Refuse(reason) => Err(refused(row, reason)),
    }
}

/// Makes a body the head while the row is locked: then only a workspace that is gone can stand in the way.
pub(super) async fn accept(
    tx: &Tx<'_>,
    row: &StateRow,
    new: &NewVersion<'_>,
    entry: &Draft,
) -> Result<(), StateError> {
    if store::accept(tx, row, new, entry).await? { Ok(()) } else { Err(StateError::NotFound("workspace")) }
}

fn accepted_facts(row: &StateRow, new: &NewVersion<'_>) -> Value {
    let emptied = row.is_emptied_by(new);
    facts(new, json!({ "version_id": new.id, "resource_count": new.resource_count, "emptied": emptied }))
}

/// What the audit log says of a write.
fn facts(new: &NewVersion<'_>, more: Value) -> Value {
    let mut facts = json!({
        "serial": new.serial, "lineage": new.lineage, "sha256": new.sha256, "size_bytes": new.size_bytes,
        "lock_id": new.lock_id,
    });
    if let (Some(facts), Value::Object(more)) = (facts.as_object_mut(), more) {
        facts.extend(more);
    }
    facts
}

pub(super) fn refused(row: &StateRow, reason: crate::tfstates::RefuseReason) -> StateError {
    match (&row.lock, reason) {
        (Some(lock), crate::tfstates::RefuseReason::Locked) => {
            StateError::Locked { holder: lock.info.clone() }
        }
        _ => StateError::Refused(reason),
    }
}

/// Removes a body that no row names. Best effort: an orphan costs a little space.
pub(super) async fn discard_body(blobs: &dyn BlobStore, key: &str) {
    if let Err(error) = blobs.delete(key).await {
        tracing::warn!(blob.key = key, error = %error, "a body that no row names could not be removed");
    }
}

fn checked_md5(write: &InlineWrite<'_>) -> Result<[u8; 16], StateError> {
    let actual: [u8; 16] = md5::Md5::digest(&write.body).into();
    if let Some(sent) = write.content_md5 {
        let sent = base64::engine::general_purpose::STANDARD.decode(sent.trim()).unwrap_or_default();
        if sent != actual {
            return Err(StateError::DigestMismatch);
        }
    }
    Ok(actual)
}
