//! What reaches a workspace, merged: as people look at it, and as a run is measured before it is taken.

use std::collections::HashMap;

use super::service::{open_sealed, readable};
use super::{
    EffectiveVariable, EffectiveVariables, Merged, Origin, RunVariable, VariableError, VariableValue,
    check_total, masked_tail, merge, size_of, store,
};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::db::Query;
use crate::ids::{BusinessUnitId, WorkspaceId};
use crate::workspaces;

/// What the next run of a workspace would get if it had no variables of its own.
pub async fn of_workspace(
    deps: &Deps,
    ctx: &Ctx,
    id: WorkspaceId,
) -> Result<EffectiveVariables, VariableError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let workspace = workspaces::service::find(&conn, ctx.scope, id).await?;
    let workspace = workspace.ok_or(VariableError::NotFound("workspace"))?;
    let unit = workspace.business_unit_id;
    let merged = merge(store::of_workspace(&conn, unit, id).await?);
    let total_bytes = total(&merged, |value| usize::try_from(value.value_bytes).unwrap_or(0));
    let fits = check_total(merged.len(), total_bytes).is_ok();
    // Values that no run may have would be too long for this answer as well.
    let sealed = if fits {
        store::sealed_values(&conn, unit, merged.iter().map(|one| one.value.id)).await?
    } else {
        HashMap::new()
    };
    drop(conn);
    let mut items = Vec::with_capacity(merged.len());
    for one in merged {
        let opened = match sealed.get(&one.value.id) {
            Some(sealed) => readable(open_sealed(deps, one.value.id, sealed))?,
            None => None,
        };
        let is_readable = opened.is_some() || !fits;
        let (is_secret, is_hcl) = (one.value.is_secret, one.value.is_hcl);
        let merged = Merged { key: one.key, source: one.source, value: opened, overrides: one.overrides };
        items.push(shown(merged, is_readable, is_secret, is_hcl));
    }
    Ok(EffectiveVariables { items, total_bytes, fits, pinned: None, removed_at: None })
}

/// One merged variable as people see it.
pub(super) fn shown(
    merged: Merged<Option<VariableValue>>,
    is_readable: bool,
    is_secret: bool,
    is_hcl: bool,
) -> EffectiveVariable {
    let tail = merged.value.as_ref().filter(|_| is_secret).and_then(|value| masked_tail(value.as_str()));
    EffectiveVariable {
        key: merged.key,
        value: merged.value.filter(|_| !is_secret),
        masked_tail: tail,
        is_readable,
        is_secret,
        is_hcl,
        source: merged.source,
        overrides: merged.overrides,
    }
}

/// Keys and values together, in bytes.
pub(super) fn total<T>(merged: &[Merged<T>], length: impl Fn(&T) -> usize) -> i64 {
    merged.iter().map(|one| size_of(&one.key, length(&one.value))).sum()
}

/// Refuses variables of a run with which it would get more than a run may have.
pub async fn measure(
    query: &impl Query,
    unit: BusinessUnitId,
    workspace: WorkspaceId,
    own: &[RunVariable],
) -> Result<(), VariableError> {
    let others = store::of_workspace(query, unit, workspace).await?;
    let others = others
        .into_iter()
        .map(|(origin, key, value)| (origin, key, usize::try_from(value.value_bytes).unwrap_or(0)));
    let own = own.iter().map(|one| (Origin::Run, one.key.clone(), one.value.as_str().len()));
    let merged = merge(others.chain(own));
    check_total(merged.len(), total(&merged, |length| *length)).map_err(VariableError::TooMuch)
}
