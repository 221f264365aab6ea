//! Which versions go, and how: marked in one statement, then the body, then the row.
//!
//! What is marked is seen by nobody, so a kill at any point leaves either a row whose body is still to go or is gone
//! already, and the next sweep goes on there; never a version that people see without its body, never a body that no row
//! names. Two sweeps at once do the same twice, which changes nothing.

use std::collections::BTreeMap;

use futures::StreamExt as _;
use serde_json::json;

use super::Author;
use crate::Deps;
use crate::access::Actor;
use crate::audit::{self, Action};
use crate::config;
use crate::ids::StateStoreId;
use crate::ports::BlobError;
use crate::state_stores::{self, StateStoreError};
use crate::tfstates::store::{self, Removal};
use crate::tfstates::{Retention, StateError};

/// Workspaces that one sweep looks at.
const WORKSPACES_MAX: usize = 200;
/// Versions of a workspace that one transaction marks.
const MARKED_MAX: i64 = 1_000;
/// Rows between two reads of the list.
const BATCH: i64 = 200;
/// Batches of one kind that one sweep removes.
const BATCHES_MAX: usize = 10;
/// Bodies that are removed at once.
const BODIES_AT_ONCE: usize = 8;
/// How long what became of an upload is remembered, for a commit that is sent again.
const SETTLED_UPLOAD_SECONDS: f64 = 30.0 * 86_400.0;

/// Marks what is too old and removes what is marked. Safe at any parallelism. Returns how many rows were marked or
/// removed.
pub async fn sweep_versions(deps: &Deps) -> Result<usize, StateError> {
    let rule = config::service::state_retention(&deps.db.conn().await?, &deps.limits).await?;
    let mut touched = 0;
    if rule.days > 0 {
        for _ in 0..WORKSPACES_MAX {
            let Some(marked) = expire_next(deps, rule).await? else { break };
            touched += marked;
        }
    }
    Ok(touched
        + remove_versions(deps).await?
        + remove_quarantined(deps).await?
        + remove_uploads(deps).await?)
}

/// Looks at one workspace. `None`: none is due.
async fn expire_next(deps: &Deps, rule: Retention) -> Result<Option<usize>, StateError> {
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let Some((workspace, unit)) = store::claim_unchecked(&tx).await? else { return Ok(None) };
    let versions = store::expire_versions(&tx, workspace, rule, MARKED_MAX).await?;
    let quarantined = store::expire_quarantined(&tx, workspace, rule, MARKED_MAX).await?;
    // What is left over stays due.
    if versions.count < MARKED_MAX && quarantined < MARKED_MAX {
        store::set_checked(&tx, workspace).await?;
    }
    if versions.count + quarantined > 0 {
        let details = json!({
            "versions": versions.count, "serial_min": versions.serial_min, "serial_max": versions.serial_max,
            "bytes": versions.bytes, "quarantined": quarantined, "newest_kept": rule.newest, "days_kept": rule.days,
        });
        let author = Author { actor: Actor::System, run_id: None };
        audit::service::record(&tx, &author.entry_in(unit, workspace, Action::StateExpire, details)).await?;
    }
    tx.commit().await?;
    Ok(Some(usize::try_from(versions.count + quarantined).unwrap_or(usize::MAX)))
}

macro_rules! remove {
    ($name:ident, $list:ident, $remove:ident $(, $age:expr)?) => {
        async fn $name(deps: &Deps) -> Result<usize, StateError> {
            let (mut removed, mut after, mut closed) = (0, None, Vec::new());
            for _ in 0..BATCHES_MAX {
                let batch = store::$list(&deps.db.conn().await?, after, BATCH, &closed $(, $age)?).await?;
                let Some(last) = batch.last() else { break };
                after = Some(last.id);
                let gone = remove_bodies(deps, batch, &mut closed).await;
                removed += store::$remove(&deps.db.conn().await?, &gone).await?;
            }
            Ok(usize::try_from(removed).unwrap_or(usize::MAX))
        }
    };
}

remove!(remove_versions, list_expired_versions, remove_versions);
remove!(remove_quarantined, list_expired_quarantined, remove_quarantined);
remove!(remove_uploads, list_settled_uploads, remove_uploads, SETTLED_UPLOAD_SECONDS);

/// Removes bodies and says whose are gone. One that cannot be removed keeps its row, for the next sweep. Stores that
/// cannot be used are noted, so that they are not tried row by row and keep nobody else's bodies.
async fn remove_bodies<Id>(deps: &Deps, batch: Vec<Removal<Id>>, closed: &mut Vec<StateStoreId>) -> Vec<Id> {
    let mut by_store: BTreeMap<Option<StateStoreId>, Vec<Removal<Id>>> = BTreeMap::new();
    for removal in batch {
        by_store.entry(removal.store_id).or_default().push(removal);
    }
    let mut gone = Vec::new();
    for (store_id, removals) in by_store {
        match remove_from(deps, store_id, removals).await {
            Ok(removed) => gone.extend(removed),
            Err(error) => {
                tracing::warn!(state_store.id = ?store_id, %error, "expired states wait in a store that cannot be used");
                closed.extend(store_id);
            }
        }
    }
    gone
}

async fn remove_from<Id>(
    deps: &Deps,
    store_id: Option<StateStoreId>,
    removals: Vec<Removal<Id>>,
) -> Result<Vec<Id>, StateStoreError> {
    let blobs = state_stores::service::opened(deps, store_id).await?;
    let removed = futures::stream::iter(removals).map(async |removal| {
        let body = if removal.is_shared { Ok(()) } else { blobs.delete(&removal.key).await };
        let staged = if removal.is_staged { deps.blobs.delete(&removal.key).await } else { Ok(()) };
        match body.and(staged) {
            Ok(()) => Ok(Some(removal.id)),
            Err(error @ (BlobError::StoreMissing { .. } | BlobError::Unusable { .. })) => Err(error),
            Err(error) => {
                tracing::warn!(blob.key = removal.key, %error, "the body of an expired state could not be removed");
                Ok(None)
            }
        }
    });
    let mut removed = removed.buffer_unordered(BODIES_AT_ONCE);
    let mut gone = Vec::new();
    while let Some(removed) = removed.next().await {
        gone.extend(removed?);
    }
    Ok(gone)
}
