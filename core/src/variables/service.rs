//! Use cases of variables of units, variable sets and workspaces.

use serde_json::json;
use uuid::Uuid;

use super::model::{NewVariable, Variable, VariableChange, VariableValue};
use super::store::{self, InsertVariable, Of, StoredVariable};
use super::{InvalidVariable, Owner, VariableError, VariableScope, masked_tail, rules, sets, size_of};
use crate::access::{Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::db::{Query, Tx};
use crate::ids::{BusinessUnitId, VariableId};
use crate::page::{Page, PageRequest};
use crate::secrets::{Domain, Place, SealError};
use crate::{Deps, business_units, workspaces};

/// Makes a variable in the caller's transaction, so that an idempotency key can commit with it. Of two writers of one
/// key one makes it, and the other hears that it is there.
pub async fn create(
    tx: &Tx<'_>,
    deps: &Deps,
    ctx: &Ctx,
    owner: Owner,
    new: &NewVariable,
) -> Result<Variable, VariableError> {
    ctx.require(write_permission(owner))?;
    new.check()?;
    let unit = match owner {
        Owner::Unit => ctx.unit()?,
        Owner::Set(_) | Owner::Workspace(_) => unit_of(tx, ctx.scope, owner).await?,
    };
    lock_owner(tx, ctx, owner, unit).await?;
    let length = new.value.as_str().len();
    let (count, bytes) = store::room(tx, id_of(owner, unit)).await?;
    rules::check_room(count + 1, bytes + size_of(&new.key, length))?;
    let id: VariableId = deps.ids.mint();
    let sealed = deps.keys.seal(Domain::Variables, place(id), new.value.as_str())?;
    let insert = InsertVariable {
        id,
        unit,
        set: match owner {
            Owner::Set(set) => Some(set),
            Owner::Unit | Owner::Workspace(_) => None,
        },
        workspace: match owner {
            Owner::Workspace(workspace) => Some(workspace),
            Owner::Unit | Owner::Set(_) => None,
        },
        key: &new.key,
        value_sealed: &sealed,
        value_bytes: i32::try_from(length).unwrap_or(i32::MAX),
        is_secret: new.is_secret,
        is_hcl: new.is_hcl,
        description: new.description.as_deref().filter(|text| !text.is_empty()),
    };
    let made = store::insert(tx, &insert).await?;
    record(tx, ctx, &made, Change::Create, &[]).await?;
    show(deps, made)
}

/// One variable.
pub async fn get(deps: &Deps, ctx: &Ctx, owner: Owner, id: VariableId) -> Result<Variable, VariableError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let of = find_owner(&conn, ctx.scope, owner).await?;
    let found = store::find(&conn, ctx.scope, of, id).await?.ok_or(VariableError::NotFound("variable"))?;
    show(deps, found)
}

/// The variables of an owner, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    owner: Owner,
    page: PageRequest,
) -> Result<Page<Variable>, VariableError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let of = find_owner(&conn, ctx.scope, owner).await?;
    let rows = store::list(&conn, of, page.cursor, page.limit + 1).await?;
    drop(conn);
    let shown = rows.into_iter().map(|row| show(deps, row)).collect::<Result<Vec<_>, _>>()?;
    Ok(Page::from_rows(shown, page.limit, |variable| variable.id.into()))
}

/// Edits a variable. `version` is the one that the caller saw; `None` edits whatever is there.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    owner: Owner,
    id: VariableId,
    version: Option<i32>,
    change: &VariableChange,
) -> Result<Variable, VariableError> {
    ctx.require(write_permission(owner))?;
    let after = deps
        .db
        .transaction(async |tx| {
            let before = lock(tx, ctx, owner, id).await?;
            if version.is_some_and(|seen| seen != before.version) {
                return Err(VariableError::VersionMismatch { actual: before.version });
            }
            let mut after = before.clone();
            apply(deps, &mut after, change)?;
            let (count, bytes) = store::room(tx, id_of(owner, before.unit)).await?;
            if after.value_bytes > before.value_bytes {
                let grows = i64::from(after.value_bytes) - i64::from(before.value_bytes);
                rules::check_room(count, bytes + grows)?;
            }
            let after = store::update(tx, &after).await?;
            record(tx, ctx, &after, Change::Update, &changed_fields(change)).await?;
            Ok::<_, VariableError>(after)
        })
        .await?;
    show(deps, after)
}

/// Removes a variable.
pub async fn delete(deps: &Deps, ctx: &Ctx, owner: Owner, id: VariableId) -> Result<(), VariableError> {
    ctx.require(write_permission(owner))?;
    deps.db
        .transaction(async |tx| {
            let variable = lock(tx, ctx, owner, id).await?;
            store::delete(tx, id).await?;
            record(tx, ctx, &variable, Change::Delete, &[]).await
        })
        .await
}

/// Puts an edit into a row. A secret stays one unless it gets a new value: what was sealed as a secret is never shown.
fn apply(deps: &Deps, row: &mut StoredVariable, change: &VariableChange) -> Result<(), VariableError> {
    let is_hcl = change.is_hcl.unwrap_or(row.is_hcl);
    if let Some(value) = &change.value {
        rules::check_value(value.as_str(), is_hcl).map_err(|reason| InvalidVariable::new("value", reason))?;
        row.value_sealed = deps.keys.seal(Domain::Variables, place(row.id), value.as_str())?;
        row.value_bytes = i32::try_from(value.as_str().len()).unwrap_or(i32::MAX);
    } else if row.is_secret && change.is_secret == Some(false) {
        let reason = "a secret stays one unless it gets a new value in the same request";
        return Err(InvalidVariable::new("is_secret", reason).into());
    } else if is_hcl != row.is_hcl {
        // Terraform quotes what it cannot read as an expression: a stored secret is not tried.
        let stored = if row.is_secret { None } else { open(deps, row)? };
        let value = stored.ok_or_else(|| InvalidVariable::new("is_hcl", "needs a new value with it"))?;
        rules::check_value(value.as_str(), is_hcl)
            .map_err(|reason| InvalidVariable::new("is_hcl", reason))?;
    }
    rules::check_description(change.description.as_deref())?;
    row.is_hcl = is_hcl;
    row.is_secret = change.is_secret.unwrap_or(row.is_secret);
    if let Some(description) = &change.description {
        row.description = Some(description.clone()).filter(|text| !text.is_empty());
    }
    Ok(())
}

fn changed_fields(change: &VariableChange) -> Vec<&'static str> {
    let fields = [
        ("value", change.value.is_some()),
        ("is_secret", change.is_secret.is_some()),
        ("is_hcl", change.is_hcl.is_some()),
        ("description", change.description.is_some()),
    ];
    fields.into_iter().filter(|(_, is_changed)| *is_changed).map(|(name, _)| name).collect()
}

fn write_permission(owner: Owner) -> Permission {
    match owner {
        Owner::Unit | Owner::Set(_) => Permission::AdministerVariables,
        Owner::Workspace(_) => Permission::WriteWorkspaceVariables,
    }
}

fn id_of(owner: Owner, unit: BusinessUnitId) -> Uuid {
    match owner {
        Owner::Unit => unit.into(),
        Owner::Set(set) => set.into(),
        Owner::Workspace(workspace) => workspace.into(),
    }
}

/// The owner, if the scope has it.
async fn find_owner(query: &impl Query, scope: Scope, owner: Owner) -> Result<Of, VariableError> {
    match (owner, scope) {
        (Owner::Unit, Scope::All) => Ok(Of::AnyUnit),
        (Owner::Unit, Scope::One(unit)) => Ok(Of::Owner(unit.into())),
        (Owner::Set(_) | Owner::Workspace(_), _) => {
            let unit = unit_of(query, scope, owner).await?;
            Ok(Of::Owner(id_of(owner, unit)))
        }
    }
}

/// The unit of a set or a workspace, if the scope has it.
async fn unit_of(query: &impl Query, scope: Scope, owner: Owner) -> Result<BusinessUnitId, VariableError> {
    match owner {
        Owner::Unit => scope.unit().ok_or(VariableError::NotFound("variable")),
        Owner::Set(id) => Ok(sets::find(query, scope, id).await?.business_unit_id),
        Owner::Workspace(id) => {
            let found = workspaces::service::find(query, scope, id).await?;
            Ok(found.ok_or(VariableError::NotFound("workspace"))?.business_unit_id)
        }
    }
}

/// Writers of one owner's variables go one after the other: its limits are exact.
async fn lock_owner(tx: &Tx<'_>, ctx: &Ctx, owner: Owner, unit: BusinessUnitId) -> Result<(), VariableError> {
    business_units::service::require_in_use::<VariableError>(tx, ctx, unit).await?;
    let scope = Scope::One(unit);
    let (is_there, what) = match owner {
        Owner::Unit => (business_units::service::lock(tx, unit).await?, "business unit"),
        Owner::Set(id) => (sets::lock(tx, scope, id).await?.is_some(), "variable set"),
        Owner::Workspace(id) => (workspaces::service::lock(tx, scope, id).await?.is_some(), "workspace"),
    };
    if is_there { Ok(()) } else { Err(VariableError::NotFound(what)) }
}

/// The variable, locked after its owner.
async fn lock(tx: &Tx<'_>, ctx: &Ctx, owner: Owner, id: VariableId) -> Result<StoredVariable, VariableError> {
    let of = find_owner(tx, ctx.scope, owner).await?;
    let missing = VariableError::NotFound("variable");
    let Some(peek) = store::find(tx, ctx.scope, of, id).await? else { return Err(missing) };
    lock_owner(tx, ctx, owner, peek.unit).await?;
    store::lock(tx, ctx.scope, of, id).await?.ok_or(missing)
}

fn place(id: VariableId) -> Place {
    Place { table: "variables", column: "value_sealed", row: id.into() }
}

/// Opens the value that is sealed in a row of this feature.
pub(super) fn open_sealed(deps: &Deps, id: VariableId, sealed: &str) -> Result<VariableValue, SealError> {
    deps.keys.open(Domain::Variables, place(id), sealed).map(VariableValue::from)
}

/// `None` if it is damaged, of another row, or sealed under another root key.
fn open(deps: &Deps, row: &StoredVariable) -> Result<Option<VariableValue>, SealError> {
    readable(open_sealed(deps, row.id, &row.value_sealed))
}

/// Tells a value that nobody can open from a function without the key.
pub(super) fn readable(opened: Result<VariableValue, SealError>) -> Result<Option<VariableValue>, SealError> {
    match opened {
        Ok(value) => Ok(Some(value)),
        Err(SealError::Unreadable(_)) => Ok(None),
        Err(error @ SealError::Key(_)) => Err(error),
    }
}

/// A variable as people see it: nothing of a secret but its tail.
fn show(deps: &Deps, row: StoredVariable) -> Result<Variable, VariableError> {
    let opened = open(deps, &row)?;
    let is_readable = opened.is_some();
    let tail = opened.as_ref().filter(|_| row.is_secret).and_then(|value| masked_tail(value.as_str()));
    Ok(Variable {
        id: row.id,
        business_unit_id: row.unit,
        scope: owner_of(&row).scope(),
        workspace_id: row.workspace,
        variable_set_id: row.set,
        key: row.key,
        value: opened.filter(|_| !row.is_secret),
        masked_tail: tail,
        is_readable,
        is_secret: row.is_secret,
        is_hcl: row.is_hcl,
        description: row.description,
        version: row.version,
        created_at: row.created_at,
        updated_at: row.updated_at,
    })
}

fn owner_of(row: &StoredVariable) -> Owner {
    match (row.workspace, row.set) {
        (Some(workspace), _) => Owner::Workspace(workspace),
        (None, Some(set)) => Owner::Set(set),
        (None, None) => Owner::Unit,
    }
}

#[derive(Clone, Copy)]
enum Change {
    Create,
    Update,
    Delete,
}

/// Records who did what to which variable; never its value.
async fn record(
    tx: &Tx<'_>,
    ctx: &Ctx,
    row: &StoredVariable,
    change: Change,
    fields: &[&str],
) -> Result<(), VariableError> {
    let scope = owner_of(row).scope();
    let (action, resource_type) = match (scope, change) {
        (VariableScope::Workspace, Change::Create) => (Action::WorkspaceVariableCreate, "workspace_variable"),
        (VariableScope::Workspace, Change::Update) => (Action::WorkspaceVariableUpdate, "workspace_variable"),
        (VariableScope::Workspace, Change::Delete) => (Action::WorkspaceVariableDelete, "workspace_variable"),
        (_, Change::Create) => (Action::VariableCreate, "variable"),
        (_, Change::Update) => (Action::VariableUpdate, "variable"),
        (_, Change::Delete) => (Action::VariableDelete, "variable"),
    };
    let entry = Entry {
        business_unit_id: Some(row.unit),
        actor: ctx.actor.clone(),
        action,
        resource_type,
        resource_id: row.id.to_string(),
        workspace_id: row.workspace,
        run_id: None,
        details: json!({
            "key": row.key,
            "scope": scope,
            "variable_set_id": row.set,
            "is_secret": row.is_secret,
            "is_hcl": row.is_hcl,
            "changed": fields,
        }),
    };
    audit::service::record(tx, &entry).await?;
    Ok(())
}
