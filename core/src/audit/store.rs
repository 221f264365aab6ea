//! SQL of the audit log.

use std::time::Duration;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::Draft;
use super::model::{ChainId, Cursor, Entry, Filter};
use super::rules::{self, Content, Link};
use super::views::{EntryView, HeadView};
use crate::db::{DbError, Query, Row};
use crate::digest::Sha256Digest;

/// One entry as stored, for whoever walks along many: read where it lies, by the places of its columns in [`WALK`].
pub(super) struct EntryRow(Row);

impl EntryRow {
    pub(super) fn link(&self) -> Result<Link<'_>, DbError> {
        Ok(Link {
            sequence: self.0.get(0),
            previous_hash: as_digest(self.0.get(1))?,
            hash: as_digest(self.0.get(2))?,
            canonical: self.0.get(3),
        })
    }

    pub(super) fn created_at(&self) -> DateTime<Utc> {
        self.0.get(4)
    }

    pub(super) fn details(&self) -> Value {
        self.0.get(5)
    }

    /// What its columns say.
    pub(super) fn content<'a>(&'a self, chain: ChainId, details: &'a Value) -> Content<'a> {
        Content {
            chain,
            business_unit_id: self.0.get(6),
            user_id: self.0.get(7),
            action: self.0.get(8),
            resource_type: self.0.get(9),
            resource_id: self.0.get(10),
            workspace_id: self.0.get(11),
            run_id: self.0.get(12),
            details,
        }
    }
}

/// One checkpoint as stored.
pub(super) struct CheckpointRow {
    pub sequence: i64,
    pub body: Vec<u8>,
    pub hash: Sha256Digest,
    pub signature: Vec<u8>,
    pub key_id: String,
    pub public_key: Vec<u8>,
}

fn digest(row: &Row, column: &str) -> Result<Sha256Digest, DbError> {
    as_digest(row.get(column))
}

fn as_digest(bytes: &[u8]) -> Result<Sha256Digest, DbError> {
    Sha256Digest::from_slice(bytes).ok_or_else(|| DbError::Row("a digest is not 32 bytes long".into()))
}

const APPEND: &str = "SELECT audit_append($1, $2, $3, $4)";

pub(super) async fn append(query: &impl Query, draft: &Draft) -> Result<(), DbError> {
    query.execute(APPEND, &[&draft.chain, &draft.before, &draft.middle, &draft.after]).await?;
    Ok(())
}

const SAYS: &str = "
    SELECT 1 FROM audit_entries
    WHERE run_id = $1 AND action = $2 AND user_id IS NOT DISTINCT FROM $3 AND details = $4
      AND created_at > plumbline_now() - make_interval(secs => $5) LIMIT 1";

/// Whether the log says the same about the same run, by the same actor, since `period`.
pub(super) async fn says(query: &impl Query, entry: &Entry, period: Duration) -> Result<bool, DbError> {
    let (action, details) = (entry.action.as_str(), rules::facts(entry));
    let (user, seconds) = (entry.actor.user_id(), period.as_secs_f64());
    let found = query.query_opt(SAYS, &[&entry.run_id, &action, &user, &details, &seconds]).await?;
    Ok(found.is_some())
}

fn view(row: &Row) -> Result<EntryView, DbError> {
    Ok(EntryView {
        sequence: row.get("sequence"),
        chain_id: ChainId(row.get("chain_id")),
        business_unit_id: row.get("business_unit_id"),
        user_id: row.get("user_id"),
        action: row.get("action"),
        resource_type: row.get("resource_type"),
        resource_id: row.get("resource_id"),
        workspace_id: row.get("workspace_id"),
        run_id: row.get("run_id"),
        details: row.get::<_, Value>("details"),
        created_at: row.get("created_at"),
        hash: digest(row, "hash")?,
    })
}

/// Newest first; up to `limit` rows. Two statements, so that one unit's list follows its own index.
pub(super) async fn list(
    query: &impl Query,
    chain: Option<ChainId>,
    filter: &Filter,
    before: Option<Cursor>,
    limit: i64,
) -> Result<Vec<EntryView>, DbError> {
    let (micros, sequence) = (before.map(|c| c.micros), before.map(|c| c.sequence));
    let action = filter.action.as_deref();
    let (resource_type, resource_id) = (filter.resource_type.as_deref(), filter.resource_id.as_deref());
    let wanted: [&dyn crate::db::Param; 9] = [
        &limit,
        &filter.workspace_id,
        &filter.run_id,
        &action,
        &filter.user_id,
        &resource_type,
        &resource_id,
        &filter.from,
        &filter.to,
    ];
    let rows = match chain {
        Some(chain) => {
            let place: [&dyn crate::db::Param; 2] = [&chain.0, &sequence];
            query.query(include_str!("sql/list_chain.sql"), &[&wanted[..], &place[..]].concat()).await?
        }
        None => {
            let before_chain = before.map(|c| c.chain_id.0);
            let place: [&dyn crate::db::Param; 3] = [&micros, &sequence, &before_chain];
            query.query(include_str!("sql/list_all.sql"), &[&wanted[..], &place[..]].concat()).await?
        }
    };
    rows.iter().map(view).collect()
}

const HEADS: &str = "
    SELECT chain_id, sequence, hash FROM audit_heads
    WHERE ($1::uuid IS NULL OR chain_id = $1) AND sequence > 0
    ORDER BY chain_id";

pub(super) async fn heads(query: &impl Query, chain: Option<ChainId>) -> Result<Vec<HeadView>, DbError> {
    let rows = query.query(HEADS, &[&chain.map(|chain| chain.0)]).await?;
    rows.iter().map(head).collect()
}

fn head(row: &Row) -> Result<HeadView, DbError> {
    Ok(HeadView {
        chain_id: ChainId(row.get("chain_id")),
        sequence: row.get("sequence"),
        hash: digest(row, "hash")?,
    })
}

const CHAINS: &str = "
    SELECT chain_id, sequence, hash FROM audit_heads
    WHERE ($1::uuid IS NULL OR chain_id = $1) AND ($2::uuid IS NULL OR chain_id > $2) AND sequence > 0
    ORDER BY chain_id LIMIT $3";

/// Heads of chains after `after`, ordered by chain.
pub(super) async fn chains(
    query: &impl Query,
    chain: Option<ChainId>,
    after: Option<ChainId>,
    limit: i64,
) -> Result<Vec<HeadView>, DbError> {
    let rows =
        query.query(CHAINS, &[&chain.map(|chain| chain.0), &after.map(|chain| chain.0), &limit]).await?;
    rows.iter().map(head).collect()
}

const WALK: &str = "
    SELECT sequence, previous_hash, hash, canonical, created_at, details, business_unit_id, user_id, action,
           resource_type, resource_id, workspace_id, run_id
    FROM audit_entries WHERE chain_id = $1 AND sequence > $2 AND sequence <= $3 ORDER BY sequence LIMIT $4";

/// Entries of one chain after `after`, up to `last`, oldest first.
pub(super) async fn walk(
    query: &impl Query,
    chain: ChainId,
    after: i64,
    last: i64,
    limit: i64,
) -> Result<Vec<EntryRow>, DbError> {
    let rows = query.query(WALK, &[&chain.0, &after, &last, &limit]).await?;
    Ok(rows.into_iter().map(EntryRow).collect())
}

const STRAYS: &str = "
    SELECT DISTINCT chain_id FROM audit_entries
    WHERE ($1::uuid IS NULL OR chain_id = $1)
      AND NOT EXISTS (SELECT 1 FROM audit_heads WHERE audit_heads.chain_id = audit_entries.chain_id)";

/// Chains that have entries and no head: somebody removed it.
pub(super) async fn headless(query: &impl Query, chain: Option<ChainId>) -> Result<Vec<ChainId>, DbError> {
    let rows = query.query(STRAYS, &[&chain.map(|chain| chain.0)]).await?;
    Ok(rows.iter().map(|row| ChainId(row.get(0))).collect())
}

const HASHES_AT: &str = "
    SELECT named.chain_id, named.sequence, entry.hash
    FROM unnest($1::uuid[], $2::bigint[]) AS named (chain_id, sequence)
    LEFT JOIN audit_entries entry USING (chain_id, sequence)
    ORDER BY named.chain_id";

/// The hashes of named entries, ordered by chain; `None` for one that is not there.
pub(super) async fn hashes_at(
    query: &impl Query,
    heads: &[HeadView],
) -> Result<Vec<Option<Sha256Digest>>, DbError> {
    let chains: Vec<uuid::Uuid> = heads.iter().map(|head| head.chain_id.0).collect();
    let sequences: Vec<i64> = heads.iter().map(|head| head.sequence).collect();
    let rows = query.query(HASHES_AT, &[&chains, &sequences]).await?;
    Ok(rows
        .iter()
        .map(|row| row.get::<_, Option<&[u8]>>("hash").and_then(Sha256Digest::from_slice))
        .collect())
}

fn checkpoint(row: &Row) -> Result<CheckpointRow, DbError> {
    Ok(CheckpointRow {
        sequence: row.get("sequence"),
        body: row.get("body"),
        hash: digest(row, "hash")?,
        signature: row.get("signature"),
        key_id: row.get("key_id"),
        public_key: row.get("public_key"),
    })
}

const LAST_CHECKPOINT: &str = "
    SELECT sequence, body, hash, signature, key_id, public_key FROM audit_checkpoints ORDER BY sequence DESC LIMIT 1";

pub(super) async fn last_checkpoint(query: &impl Query) -> Result<Option<CheckpointRow>, DbError> {
    query.query_opt(LAST_CHECKPOINT, &[]).await?.as_ref().map(checkpoint).transpose()
}

const CHECKPOINTS_AFTER: &str = "
    SELECT sequence, body, hash, signature, key_id, public_key FROM audit_checkpoints
    WHERE sequence > $1 ORDER BY sequence LIMIT $2";

pub(super) async fn checkpoints_after(
    query: &impl Query,
    after: i64,
    limit: i64,
) -> Result<Vec<CheckpointRow>, DbError> {
    query.query(CHECKPOINTS_AFTER, &[&after, &limit]).await?.iter().map(checkpoint).collect()
}

// Two sweeps that saw the same last checkpoint make the same number; one of them inserts.
const INSERT_CHECKPOINT: &str = "
    INSERT INTO audit_checkpoints (sequence, body, hash, signature, key_id, public_key) VALUES ($1, $2, $3, $4, $5, $6)
    ON CONFLICT (sequence) DO NOTHING";

pub(super) async fn insert_checkpoint(query: &impl Query, made: &CheckpointRow) -> Result<bool, DbError> {
    let hash = &made.hash.0[..];
    let rows = query
        .execute(
            INSERT_CHECKPOINT,
            &[&made.sequence, &made.body, &hash, &made.signature, &made.key_id, &made.public_key],
        )
        .await?;
    Ok(rows == 1)
}

const UNSTORED: &str = "
    SELECT sequence, body, hash, signature, key_id, public_key FROM audit_checkpoints
    WHERE stored_at IS NULL ORDER BY sequence LIMIT $1";

pub(super) async fn unstored_checkpoints(
    query: &impl Query,
    limit: i64,
) -> Result<Vec<CheckpointRow>, DbError> {
    query.query(UNSTORED, &[&limit]).await?.iter().map(checkpoint).collect()
}

const MARK_STORED: &str = "
    UPDATE audit_checkpoints SET stored_at = plumbline_now() WHERE sequence = $1 AND stored_at IS NULL";

pub(super) async fn mark_stored(query: &impl Query, sequence: i64) -> Result<(), DbError> {
    query.execute(MARK_STORED, &[&sequence]).await?;
    Ok(())
}

const NOW: &str = "SELECT plumbline_now() AS at";

pub(super) async fn now(query: &impl Query) -> Result<DateTime<Utc>, DbError> {
    Ok(query.query_one(NOW, &[]).await?.get("at"))
}
