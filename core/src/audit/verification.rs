//! Verification of the whole log in scope, page by page: memory does not grow with the log.

use super::model::ChainId;
use super::rules::{ChainWalk, Content, Fault, Fields, Link, same_json};
use super::store::{self, EntryRow};
use super::views::{Broken, Chains, Export, ExportedEntry, HeadView, Verification};
use super::{AuditError, checkpoints, service, signing};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::db::{DbError, Query};
use crate::page::PageRequest;

/// Entries read at once.
const BATCH: i64 = 1000;

/// Checks every chain of the caller's scope from its first entry, and the checkpoints.
pub async fn verify(deps: &Deps, ctx: &Ctx) -> Result<Verification, AuditError> {
    ctx.require(Permission::ReadAudit)?;
    let scope = service::chain_of(ctx);
    // Before a connection is taken: one of the keys may be asked of a service.
    let trusted = signing::trusted(deps).await?;
    let conn = deps.db.conn().await?;
    let mut found = Verification { ok: true, chains: 0, entries: 0, broken: Vec::new(), checkpoint: None };
    // The head is read before the entries: what is appended meanwhile is not looked at.
    for head in store::heads(&conn, scope).await? {
        found.chains += 1;
        found.entries += walk(&conn, &head, &mut found.broken).await?;
    }
    for chain_id in store::headless(&conn, scope).await? {
        report(&mut found.broken, chain_id, 1, Fault::Head);
    }
    let (checkpoint, broken) = checkpoints::verify(deps, &conn, &trusted, scope).await?;
    for (head, fault) in broken {
        report(&mut found.broken, head.chain_id, head.sequence, fault);
    }
    found.ok = found.broken.is_empty() && checkpoint.as_ref().is_none_or(|checkpoint| checkpoint.ok);
    found.checkpoint = checkpoint;
    Ok(found)
}

/// One page of the entries of one chain with the newest checkpoint, for a verifier that trusts nothing but the public
/// key.
pub async fn export(
    deps: &Deps,
    ctx: &Ctx,
    chain: Option<ChainId>,
    after: i64,
    limit: Option<i64>,
) -> Result<Export, AuditError> {
    ctx.require(Permission::ReadAudit)?;
    let limit = PageRequest::new(limit, None, &deps.limits).limit;
    let own = service::chain_of(ctx);
    // In all units a chain must be named, the platform's being the default; in one unit there is only one.
    let chain = own.or(chain).unwrap_or(ChainId::of(None));
    let conn = deps.db.conn().await?;
    let rows = store::walk(&conn, chain, after, i64::MAX, limit + 1).await?;
    let more = i64::try_from(rows.len()).is_ok_and(|rows| rows > limit);
    let shown = rows.iter().take(usize::try_from(limit).unwrap_or(usize::MAX));
    let items: Vec<ExportedEntry> = shown.map(|row| exported(chain, row)).collect::<Result<_, _>>()?;
    let next_after = items.last().filter(|_| more).map(|last| last.sequence);
    let checkpoint = store::last_checkpoint(&conn).await?.map(|row| signing::export(&row));
    Ok(Export { items, next_after, checkpoint })
}

/// One page of the chains in the caller's scope: where each ends now.
pub async fn chains(
    deps: &Deps,
    ctx: &Ctx,
    after: Option<ChainId>,
    limit: Option<i64>,
) -> Result<Chains, AuditError> {
    ctx.require(Permission::ReadAudit)?;
    let limit = PageRequest::new(limit, None, &deps.limits).limit;
    let conn = deps.db.conn().await?;
    // First: whatever it names is in the chains that are read after it.
    let checkpoint = store::last_checkpoint(&conn).await?.map(|row| signing::export(&row));
    let mut items = store::chains(&conn, service::chain_of(ctx), after, limit + 1).await?;
    let more = i64::try_from(items.len()).is_ok_and(|rows| rows > limit);
    if more {
        items.pop();
    }
    let next_cursor = items.last().filter(|_| more).map(|last| last.chain_id);
    Ok(Chains { items, next_cursor, checkpoint })
}

fn exported(chain_id: ChainId, row: &EntryRow) -> Result<ExportedEntry, DbError> {
    let link = row.link()?;
    Ok(ExportedEntry {
        chain_id,
        sequence: link.sequence,
        previous_hash: link.previous_hash,
        hash: link.hash,
        canonical: String::from_utf8_lossy(link.canonical).into_owned(),
    })
}

/// Walks one chain up to its head. Returns how many entries there were.
async fn walk(query: &impl Query, head: &HeadView, broken: &mut Vec<Broken>) -> Result<i64, AuditError> {
    let mut chain = ChainWalk::new(head.chain_id);
    let mut bytes = String::new();
    let mut entries = 0;
    loop {
        let (after, _) = chain.position();
        let rows = store::walk(query, head.chain_id, after, head.sequence, BATCH).await?;
        for row in &rows {
            entries += 1;
            let link = row.link()?;
            let checked = chain.step(&link).and_then(|()| compare(&chain, &link, row, &mut bytes));
            if let Err(fault) = checked {
                report(broken, head.chain_id, link.sequence, fault);
            }
        }
        if rows.is_empty() {
            break;
        }
    }
    if let Err(fault) = chain.finish(head.sequence, head.hash) {
        report(broken, head.chain_id, head.sequence, fault);
    }
    Ok(entries)
}

fn report(broken: &mut Vec<Broken>, chain_id: ChainId, sequence: i64, fault: Fault) {
    if broken.len() < Verification::BROKEN_MAX {
        broken.push(Broken { chain_id, sequence, reason: fault.to_string() });
    }
}

/// Refuses an entry whose searchable columns say something else than what was hashed. The bytes are made again from the
/// columns, in a buffer that is used again and again; only those that come out differently are read.
fn compare(chain: &ChainWalk, link: &Link<'_>, row: &EntryRow, bytes: &mut String) -> Result<(), Fault> {
    let (details, created_at) = (row.details(), row.created_at());
    let content = row.content(chain.id(), &details);
    content.write(link.sequence, created_at, bytes);
    if bytes.as_bytes() == link.canonical {
        return Ok(());
    }
    let fields = chain.read(link)?;
    let is_same = fields.created_at == created_at && says_the_same(&fields, &content);
    if is_same { Ok(()) } else { Err(Fault::Columns) }
}

/// Whether the columns that people search say what was hashed.
fn says_the_same(fields: &Fields<'_>, columns: &Content<'_>) -> bool {
    fields.action == columns.action
        && fields.resource_type == columns.resource_type
        && fields.resource_id == columns.resource_id
        && fields.business_unit_id == columns.business_unit_id
        && fields.user_id == columns.user_id
        && fields.workspace_id == columns.workspace_id
        && fields.run_id == columns.run_id
        && same_json(&fields.details, columns.details)
}
