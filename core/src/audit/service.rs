//! Use cases of the audit log.

use std::time::Duration;

use chrono::{DateTime, Datelike as _, Utc};

use super::model::{ChainId, Cursor, Entry, Filter};
use super::views::EntryPage;
use super::{AuditError, Draft, store};
use crate::Deps;
use crate::access::{Ctx, Permission, Scope};
use crate::db::{DbError, Query};
use crate::page::PageRequest;

pub use super::checkpoints::checkpoint;
pub use super::verification::{chains, export, verify};

/// Appends an entry to its chain. In a transaction, call it last: it locks the chain's head until the transaction ends.
pub async fn record(query: &impl Query, entry: &Entry) -> Result<(), DbError> {
    store::append(query, &Draft::of(entry)).await
}

/// Appends entries to their chains, in the order of the chains' ids, the platform's first: two transactions that write to
/// several chains never wait for each other in a circle.
pub async fn record_all(query: &impl Query, mut entries: Vec<Entry>) -> Result<(), DbError> {
    entries.sort_by_key(|entry| entry.business_unit_id);
    for entry in &entries {
        record(query, entry).await?;
    }
    Ok(())
}

/// Records that somebody reads something of a run, unless the log has said the same of the same reader within `period`:
/// whoever follows a growing log asks each second. Of two at once both may record it.
pub async fn record_read(query: &impl Query, entry: &Entry, period: Duration) -> Result<(), DbError> {
    if store::says(query, entry, period).await? { Ok(()) } else { record(query, entry).await }
}

/// The entries of the caller's scope, newest first: a unit's admin sees the unit's chain, a superadmin in all units
/// sees every chain, the platform's included.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    filter: &Filter,
    cursor: Option<&str>,
    limit: Option<i64>,
) -> Result<EntryPage, AuditError> {
    ctx.require(Permission::ReadAudit)?;
    let before: Option<Cursor> = cursor
        .map(|text| text.parse().map_err(|()| invalid("cursor", "it is not one of this list's")))
        .transpose()?;
    check_times(filter)?;
    let limit = PageRequest::new(limit, None, &deps.limits).limit;
    let conn = deps.db.conn().await?;
    let mut items = store::list(&conn, chain_of(ctx), filter, before, limit + 1).await?;
    let more = i64::try_from(items.len()).is_ok_and(|rows| rows > limit);
    if more {
        items.pop();
    }
    let next_cursor = items.last().filter(|_| more).map(|last| {
        Cursor {
            micros: last.created_at.timestamp_micros(),
            sequence: last.sequence,
            chain_id: last.chain_id,
        }
        .to_string()
    });
    Ok(EntryPage { items, next_cursor })
}

/// Times of the common era: others are typing errors, and some of them Postgres cannot tell.
fn check_times(filter: &Filter) -> Result<(), AuditError> {
    let odd = |at: &DateTime<Utc>| !(1..=9999).contains(&at.year());
    if filter.from.iter().chain(&filter.to).any(odd) {
        return Err(invalid("from", "from and to must lie between the years 1 and 9999"));
    }
    if filter.from.zip(filter.to).is_some_and(|(from, to)| from > to) {
        return Err(invalid("from", "must not be later than to"));
    }
    Ok(())
}

fn invalid(field: &'static str, reason: &'static str) -> AuditError {
    AuditError::Invalid { field, reason }
}

/// `None` is every chain.
pub(super) fn chain_of(ctx: &Ctx) -> Option<ChainId> {
    match ctx.scope {
        Scope::One(unit) => Some(ChainId::of(Some(unit))),
        Scope::All => None,
    }
}
