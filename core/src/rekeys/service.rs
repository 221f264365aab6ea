//! Asking for a rekey, and looking at it.

use serde_json::json;
use uuid::Uuid;

use super::model::{Rekey, RekeyStatus};
use super::{RekeyError, store};
use crate::Deps;
use crate::access::{Actor, Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::db::{Query, Tx};

/// Begins to seal everything under the current root key, or gives the job that does so already. One for an earlier root
/// key ends: its work is done again by the new one.
pub async fn request(tx: &Tx<'_>, deps: &Deps, ctx: &Ctx) -> Result<Rekey, RekeyError> {
    ctx.require(Permission::AdministerPlatform)?;
    let key_id = deps.keys.key_id();
    if let Some(running) = store::lock_running(tx).await? {
        if running.key_id == key_id {
            return latest(tx).await;
        }
        store::finish(tx, running.id, RekeyStatus::Superseded).await?;
        record(tx, ctx.actor.clone(), Action::RekeyEnd, running.id, &running.key_id, RekeyStatus::Superseded)
            .await?;
    }
    let id = deps.ids.mint();
    // Of two at once the second waits here for the first and then finds its job.
    if store::insert(tx, id, key_id, ctx.actor.user_id()).await? {
        store::ensure_columns(tx, id).await?;
        record(tx, ctx.actor.clone(), Action::RekeyBegin, id, key_id, RekeyStatus::Running).await?;
    }
    latest(tx).await
}

/// The newest job, ended or not.
pub async fn get(deps: &Deps, ctx: &Ctx) -> Result<Rekey, RekeyError> {
    ctx.require(Permission::AdministerPlatform)?;
    latest(&deps.db.conn().await?).await
}

/// Refuses to go on where a value is sealed under a root key that is not among these: whoever takes a root away too early
/// learns it from the deploy, not from people.
pub async fn check_roots(query: &impl Query, known: &[&str]) -> Result<(), RekeyError> {
    let strangers = store::list_strangers(query, known).await?;
    if strangers.is_empty() { Ok(()) } else { Err(RekeyError::Strangers(strangers)) }
}

async fn latest(query: &impl Query) -> Result<Rekey, RekeyError> {
    store::find_latest(query).await?.ok_or(RekeyError::NotFound)
}

pub(super) async fn record(
    tx: &Tx<'_>,
    actor: Actor,
    action: Action,
    id: Uuid,
    key_id: &str,
    status: RekeyStatus,
) -> Result<(), RekeyError> {
    let entry = Entry {
        business_unit_id: None,
        actor,
        action,
        resource_type: "rekey",
        resource_id: id.to_string(),
        workspace_id: None,
        run_id: None,
        details: json!({ "key_id": key_id, "status": status }),
    };
    Ok(audit::service::record(tx, &entry).await?)
}
