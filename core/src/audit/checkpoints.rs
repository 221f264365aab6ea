//! Checkpoints: signed statements of every chain's head, chained to each other, with copies in the object store.

use bytes::Bytes;
use chrono::SecondsFormat;
use serde_json::json;

use super::checkpoint_walk::{CheckpointFault, CheckpointLink, CheckpointWalk, body_of};
use super::keys;
use super::rules::{self, Fault, NO_HASH};
use super::signing;
use super::store::{self, CheckpointRow};
use super::views::{BrokenCheckpoint, CheckpointBody, CheckpointView, HeadView};
use super::{AuditError, ChainId};
use crate::Deps;
use crate::db::Query;
use crate::digest::Sha256Digest;
use crate::ports::CheckpointSigner;

const FORMAT: u32 = 1;

/// Checkpoints read or copied at once.
const BATCH: i64 = 100;

/// Where a checkpoint's copy lies.
pub(super) fn key(sequence: i64) -> String {
    format!("audit/checkpoints/{sequence}.json")
}

/// Makes a checkpoint if a head moved since the last one or another key signs now, and copies to the object store what is
/// not there yet. Returns whether one was made. Safe at any parallelism: who is second finds the number taken, and a copy
/// is written twice with the same bytes.
pub async fn checkpoint(deps: &Deps) -> Result<bool, AuditError> {
    let made = seal(deps, &*signing::signer(deps)?).await?;
    loop {
        // No connection is held while the object store is written.
        let unstored = store::unstored_checkpoints(&deps.db.conn().await?, BATCH).await?;
        for row in &unstored {
            let text = serde_json::to_vec(&signing::export(row)).expect("a checkpoint is plain data");
            deps.blobs.put(&key(row.sequence), Bytes::from(text), "application/json").await?;
            store::mark_stored(&deps.db.conn().await?, row.sequence).await?;
        }
        if unstored.is_empty() {
            return Ok(made);
        }
    }
}

async fn seal(deps: &Deps, signer: &dyn CheckpointSigner) -> Result<bool, AuditError> {
    // Asked and signed while no connection is held: it may be a service.
    let public_key = signer.public_key().await?;
    let Some(body) = next(deps, &public_key).await? else { return Ok(false) };
    let canonical = rules::canonical_json(&json!(body)).into_bytes();
    let signature = signer.sign(&canonical).await?;
    let row = CheckpointRow {
        sequence: body.sequence,
        hash: Sha256Digest::of(&canonical),
        body: canonical,
        signature,
        key_id: body.key_id,
        public_key: public_key.spki().to_vec(),
    };
    Ok(store::insert_checkpoint(&deps.db.conn().await?, &row).await?)
}

/// What the next checkpoint states; `None` if that is nothing new.
async fn next(deps: &Deps, public_key: &keys::PublicKey) -> Result<Option<CheckpointBody>, AuditError> {
    let conn = deps.db.conn().await?;
    // The last checkpoint first: heads read after it are never older than what it states.
    let last = store::last_checkpoint(&conn).await?;
    let heads = store::heads(&conn, None).await?;
    let stated = last.as_ref().and_then(|last| body_of(&last.body)).map(|body| body.heads);
    // A new key vouches for all that earlier ones have signed: then those may be forgotten.
    let same_key = last.as_ref().is_none_or(|last| last.key_id == public_key.key_id());
    if same_key && heads == stated.unwrap_or_default() {
        return Ok(None);
    }
    Ok(Some(CheckpointBody {
        format: FORMAT,
        algorithm: public_key.algorithm(),
        key_id: public_key.key_id(),
        sequence: last.as_ref().map_or(1, |last| last.sequence + 1),
        previous_hash: last.as_ref().map_or(NO_HASH, |last| last.hash),
        created_at: store::now(&conn).await?.to_rfc3339_opts(SecondsFormat::Micros, true),
        heads,
    }))
}

/// What the checkpoints say about the chains in scope: the newest one, and every place where an entry that it names is
/// gone or different.
pub(super) async fn verify(
    deps: &Deps,
    query: &impl Query,
    trusted: &[keys::PublicKey],
    chain: Option<ChainId>,
) -> Result<(Option<CheckpointView>, Vec<(HeadView, Fault)>), AuditError> {
    let mut walk = CheckpointWalk::default();
    let mut faults = Vec::new();
    loop {
        let rows = store::checkpoints_after(query, walk.sequence(), BATCH).await?;
        for row in &rows {
            let link = CheckpointLink {
                sequence: row.sequence,
                hash: row.hash,
                body: &row.body,
                signed: keys::judge(trusted, &row.key_id, &row.body, &row.signature),
            };
            faults.extend(walk.step(&link).err().map(|fault| named(row.sequence, fault)));
        }
        if rows.is_empty() {
            break;
        }
    }
    faults.extend(walk.finish().map(|(sequence, fault)| named(sequence, fault)));
    let next = walk.sequence() + 1;
    // A copy beyond the last row says that rows were removed.
    if deps.blobs.head(&key(next)).await?.is_some()
        && store::checkpoints_after(query, walk.sequence(), 1).await?.is_empty()
    {
        faults.push(named(next, CheckpointFault::Lost));
    }
    if walk.sequence() == 0 && faults.is_empty() {
        return Ok((None, Vec::new()));
    }
    let sequence = walk.sequence();
    let heads: Vec<HeadView> = walk
        .into_heads()
        .into_iter()
        .filter(|head| chain.is_none_or(|chain| chain == head.chain_id))
        .collect();
    let there = store::hashes_at(query, &heads).await?;
    let broken: Vec<_> = heads
        .into_iter()
        .zip(there)
        .filter(|(head, hash)| *hash != Some(head.hash))
        .map(|(head, _)| (head, Fault::Checkpoint))
        .collect();
    faults.truncate(CheckpointView::FAULTS_MAX);
    let ok = faults.is_empty() && broken.is_empty();
    Ok((Some(CheckpointView { sequence, ok, faults }), broken))
}

fn named(sequence: i64, fault: CheckpointFault) -> BrokenCheckpoint {
    BrokenCheckpoint { sequence, reason: fault.to_string() }
}
