//! What the use cases of all kinds share.

use serde_json::Value;
use uuid::Uuid;

use super::{CloudAccountError, MaskedSecret, UsedBy};
use crate::access::{Ctx, Permission};
use crate::audit::{Action, Entry};
use crate::ids::BusinessUnitId;
use crate::secrets::SealError;
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
