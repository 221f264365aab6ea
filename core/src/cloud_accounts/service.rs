//! What the use cases of all kinds share.

use serde_json::Value;
use uuid::Uuid;

use super::{CloudAccountError, MaskedSecret, UsedBy};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{Action, Entry};
use crate::business_units;
use crate::db::{DbError, Tx};
use crate::ids::{BusinessUnitId, TaskId};
use crate::issuer_keys::{self, IssuerOff};
use crate::secrets::SealError;
use crate::state_stores::{self, StoreAccount};
use crate::tasks::{self, NewTask, TaskKind};
use crate::workspaces::InvalidField;

/// A field that names what the unit has not registered, or what only another unit has: one answer for both.
pub(crate) fn unregistered(field: &'static str) -> InvalidField {
    InvalidField::new(field, "is not registered in this business unit")
}

/// Whether the caller sees what only an administrator needs.
pub(super) fn administers(ctx: &Ctx) -> bool {
    ctx.require(Permission::AdministerCloudAccounts).is_ok()
}

/// Compares the version that was edited with the one that is there.
pub(super) fn check_version(seen: Option<i32>, actual: i32) -> Result<(), CloudAccountError> {
    match seen {
        Some(seen) if seen != actual => Err(CloudAccountError::VersionMismatch { actual }),
        _ => Ok(()),
    }
}

/// What is shown of a secret that was opened, or could not be. A key that this function lacks is a defect.
pub(super) fn masked<T>(
    opened: Result<T, SealError>,
    mask: impl FnOnce(&T) -> MaskedSecret,
) -> Result<MaskedSecret, SealError> {
    match opened {
        Ok(secret) => Ok(mask(&secret)),
        Err(SealError::Unreadable(_)) => Ok(MaskedSecret::unreadable()),
        Err(error @ SealError::Key(_)) => Err(error),
    }
}

/// The same, and whose states lie in its places.
pub(super) async fn and_states(tx: &Tx<'_>, used: UsedBy, account: StoreAccount) -> Result<UsedBy, DbError> {
    Ok(UsedBy { states: state_stores::service::holders(tx, account).await?, ..used })
}

/// Refuses while somebody uses it. The caller has locked the account's row against new references.
pub(super) fn require_unused(used: UsedBy) -> Result<(), CloudAccountError> {
    if used.is_nobody() { Ok(()) } else { Err(CloudAccountError::InUse(used)) }
}

/// An audit entry about an account.
pub(super) fn entry(
    ctx: &Ctx,
    unit: BusinessUnitId,
    action: Action,
    resource_type: &'static str,
    id: impl Into<Uuid>,
    details: Value,
) -> Entry {
    Entry {
        business_unit_id: Some(unit),
        actor: ctx.actor.clone(),
        action,
        resource_type,
        resource_id: id.into().to_string(),
        workspace_id: None,
        run_id: None,
        details,
    }
}

/// The names of the fields that differ; their values may be long.
pub(super) fn changed_fields(before: &Value, after: &Value) -> Vec<String> {
    let fields = before.as_object().into_iter().flatten();
    fields.filter(|(name, value)| after[name.as_str()] != **value).map(|(name, _)| name.clone()).collect()
}

/// Queues the task that tries an account's credentials. The entry that records it is the caller's.
pub(super) async fn enqueue_test(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    kind: TaskKind,
    (unit, id): (BusinessUnitId, Uuid),
) -> Result<TaskId, CloudAccountError> {
    business_units::service::require_in_use::<CloudAccountError>(tx, ctx, unit).await?;
    let asked_by = ctx.person()?;
    // Only who asked may read the result, so two people's requests are two tasks.
    let key = format!("{}:{id}:{asked_by}", kind.as_str());
    let mut task = NewTask::new(kind, unit, id, key);
    task.traceparent = ctx.traceparent.clone();
    task.requested_by = Some(asked_by);
    Ok(tasks::service::enqueue(tx, deps.ids, &task).await?.task_id())
}

/// Refuses to trust tokens that nobody makes.
pub(super) fn require_issuer(
    deps: &Deps,
    field: &'static str,
    trusting: Option<&str>,
) -> Result<(), InvalidField> {
    if trusting.is_none() {
        return Ok(());
    }
    let off = |off: IssuerOff| InvalidField::new(field, format!("cannot be used here: {off}"));
    issuer_keys::service::issuer(deps).map(drop).map_err(off)
}
