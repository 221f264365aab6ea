//! Checkpoints: signed statements of every chain's head, chained to each other, with copies in the object store.

use bytes::Bytes;
use chrono::SecondsFormat;
use serde_json::json;

use super::rules::{self, Fault, NO_HASH};
use super::signing::Signer;
use super::store::{self, CheckpointRow};
use super::views::{CheckpointBody, CheckpointView, HeadView};
use super::{AuditError, ChainId};
use crate::Deps;
use crate::db::Query;

const FORMAT: u32 = 1;

/// Checkpoints read or copied at once.
const BATCH: i64 = 100;

/// Where a checkpoint's copy lies.
pub(super) fn key(sequence: i64) -> String {
    format!("audit/checkpoints/{sequence}.json")
}

/// Makes a checkpoint if a head moved since the last one, and copies to the object store what is not there yet.
/// Returns whether one was made. Safe at any parallelism: who is second finds the number taken, and a copy is written
/// twice with the same bytes.
pub async fn checkpoint(deps: &Deps) -> Result<bool, AuditError> {
    let signer = Signer::new(&deps.keys)?;
    let made = seal(deps, &signer).await?;
    loop {
        // No connection is held while the object store is written.
        let unstored = store::unstored_checkpoints(&deps.db.conn().await?, BATCH).await?;
        for row in &unstored {
            let text = serde_json::to_vec(&signer.export(row)).expect("a checkpoint is plain data");
            deps.blobs.put(&key(row.sequence), Bytes::from(text), "application/json").await?;
            store::mark_stored(&deps.db.conn().await?, row.sequence).await?;
        }
        if unstored.is_empty() {
            return Ok(made);
        }
    }
}

async fn seal(deps: &Deps, signer: &Signer) -> Result<bool, AuditError> {
    let conn = deps.db.conn().await?;
    // The last checkpoint first: heads read after it are never older than what it states.
    let last = store::last_checkpoint(&conn).await?;
    let heads = store::heads(&conn, None).await?;
    let stated = last.as_ref().and_then(|last| parse(&last.body)).map(|body| body.heads).unwrap_or_default();
    if heads == stated {
        return Ok(false);
    }
    let body = CheckpointBody {
        format: FORMAT,
        sequence: last.as_ref().map_or(1, |last| last.sequence + 1),
        previous_hash: last.as_ref().map_or(NO_HASH, |last| last.hash),
        created_at: store::now(&conn).await?.to_rfc3339_opts(SecondsFormat::Micros, true),
        heads,
    };
    let canonical = rules::canonical_json(&json!(body));
    Ok(store::insert_checkpoint(&conn, &signer.seal(body.sequence, canonical.into_bytes())).await?)
}

fn parse(body: &[u8]) -> Option<CheckpointBody> {
    serde_json::from_slice(body).ok()
}

/// What the checkpoints say about the chains in scope: the newest one, and every place where an entry that it names is
/// gone or different. Without the signing key signatures are not checked, everything else is.
pub(super) async fn verify(
    deps: &Deps,
    query: &impl Query,
    chain: Option<ChainId>,
) -> Result<(Option<CheckpointView>, Vec<(HeadView, Fault)>), AuditError> {
    let signer = Signer::new(&deps.keys).ok();
    let mut walk = Walk { sequence: 0, hash: NO_HASH, heads: Vec::new(), ok: true };
    loop {
        let rows = store::checkpoints_after(query, walk.sequence, BATCH).await?;
        for row in &rows {
            walk.step(row, signer.as_ref());
        }
        if rows.is_empty() {
            break;
        }
    }
    if walk.sequence == 0 {
        return Ok((None, Vec::new()));
    }
    // A copy beyond the last row says that rows were removed.
    if deps.blobs.head(&key(walk.sequence + 1)).await?.is_some()
        && store::checkpoints_after(query, walk.sequence, 1).await?.is_empty()
    {
        walk.ok = false;
    }
    let named: Vec<HeadView> =
        walk.heads.into_iter().filter(|head| chain.is_none_or(|chain| chain == head.chain_id)).collect();
    let there = store::hashes_at(query, &named).await?;
    let broken: Vec<_> = named
        .into_iter()
        .zip(there)
        .filter(|(head, hash)| *hash != Some(head.hash))
        .map(|(head, _)| (head, Fault::Checkpoint))
        .collect();
    let ok = walk.ok && broken.is_empty();
    Ok((Some(CheckpointView { sequence: walk.sequence, ok }), broken))
}

/// A walk along the checkpoints. Only the newest heads are kept: a chain that holds up to them held before.
struct Walk {
    sequence: i64,
    hash: crate::digest::Sha256Digest,
    heads: Vec<HeadView>,
    ok: bool,
}

impl Walk {
    fn step(&mut self, row: &CheckpointRow, signer: Option<&Signer>) {
        let body = parse(&row.body);
        let follows = body.as_ref().is_some_and(|body| {
            body.sequence == row.sequence
                && row.sequence == self.sequence + 1
                && body.previous_hash == self.hash
                && never_back(&self.heads, &body.heads)
        });
        self.ok &= follows && signer.is_none_or(|signer| signer.holds(row));
        (self.sequence, self.hash) = (row.sequence, row.hash);
        if let Some(body) = body {
            self.heads = body.heads;
        }
    }
}

/// Whether every chain is still there and no shorter. Both are ordered by chain.
fn never_back(before: &[HeadView], after: &[HeadView]) -> bool {
    before.iter().all(|old| {
        after
            .binary_search_by_key(&old.chain_id, |head| head.chain_id)
            .is_ok_and(|at| after[at].sequence >= old.sequence)
    })
}
