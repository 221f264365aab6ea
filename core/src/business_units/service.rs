//! Use cases of business units.

use serde_json::json;

use super::model::{BusinessUnitChange, BusinessUnitView, NewBusinessUnit};
use super::store::Sight;
use super::{BusinessUnitError, rules, store};
use crate::Deps;
use crate::access::{AccessError, Actor, Credential, Ctx, Permission, Scope};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, IdSource};
use crate::page::{Page, PageRequest};
use crate::tfstates;

/// The name of the unique constraint on slugs.
const SLUG_CONSTRAINT: &str = "business_units_slug";

/// Makes a unit, in the caller's transaction, so that an idempotency key can commit with it.
pub async fn create(
    deps: &Deps,
    tx: &Tx<'_>,
    ctx: &Ctx,
    new: &NewBusinessUnit,
) -> Result<BusinessUnitView, BusinessUnitError> {
    ctx.require(Permission::AdministerPlatform)?;
    rules::check_slug(&new.slug)?;
    rules::check_name(&new.name)?;
    let made = store::insert(tx, deps.ids.mint(), &new.slug, &new.name).await.map_err(duplicate)?;
    audit::service::record(tx, &entry(ctx, Action::BusinessUnitCreate, &made)).await?;
    Ok(made)
}

/// Gives a unit another name.
pub async fn rename(
    deps: &Deps,
    ctx: &Ctx,
    id: BusinessUnitId,
    change: &BusinessUnitChange,
) -> Result<BusinessUnitView, BusinessUnitError> {
    ctx.require(Permission::AdministerPlatform)?;
    rules::check_name(&change.name)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, id).await?.ok_or(BusinessUnitError::NotFound)?;
            if before.archived_at.is_some() {
                return Err(BusinessUnitError::Archived);
            }
            let after = store::rename(tx, id, &change.name).await?;
            audit::service::record(tx, &entry(ctx, Action::BusinessUnitUpdate, &after)).await?;
            Ok(after)
        })
        .await
}

/// Takes a unit out of use, or puts it back. Repeating it changes nothing. What was under way there ends by the next
/// sweep.
pub async fn set_archived(
    deps: &Deps,
    ctx: &Ctx,
    id: BusinessUnitId,
    archived: bool,
) -> Result<BusinessUnitView, BusinessUnitError> {
    ctx.require(Permission::AdministerPlatform)?;
    deps.db
        .transaction(async |tx| {
            let before = store::lock(tx, id).await?.ok_or(BusinessUnitError::NotFound)?;
            if before.archived_at.is_some() == archived {
                return Ok(before);
            }
            // Cut off in the middle of an apply of their own, somebody would be left with a state on their disk.
            let locks = tfstates::service::count_locks_of_people(tx, id).await?;
            if archived && locks > 0 {
                return Err(BusinessUnitError::InUse { locks });
            }
            let after = store::set_archived(tx, id, archived).await?;
            let action = if archived { Action::BusinessUnitArchive } else { Action::BusinessUnitUnarchive };
            audit::service::record(tx, &entry(ctx, action, &after)).await?;
            Ok(after)
        })
        .await
}

/// One of the units that the caller sees: their own, or any for a superadmin. The request's scope does not matter.
pub async fn get(deps: &Deps, ctx: &Ctx, id: BusinessUnitId) -> Result<BusinessUnitView, BusinessUnitError> {
    let found = store::find(&deps.db.conn().await?, id, sight(ctx)?).await?;
    found.ok_or(BusinessUnitError::NotFound)
}

/// The units that the caller sees, newest first: those in use, or the archived ones.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    archived: bool,
    page: PageRequest,
) -> Result<Page<BusinessUnitView>, BusinessUnitError> {
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, archived, sight(ctx)?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |unit| unit.id.into()))
}

/// Those of the units that exist, and whether they are archived.
pub async fn find_archived(
    query: &impl Query,
    ids: &[BusinessUnitId],
) -> Result<Vec<(BusinessUnitId, bool)>, DbError> {
    store::find_archived(query, ids).await
}

/// The unit in use that has this slug, if the caller sees it.
pub async fn find_seen(
    query: &impl Query,
    ctx: &Ctx,
    slug: &str,
) -> Result<Option<BusinessUnitId>, BusinessUnitError> {
    Ok(store::find_seen(query, slug, sight(ctx)?).await?)
}

/// Refuses to begin something in an archived unit. Only for those who act in all units at once: in one unit
/// [`Ctx::require`] has refused already, without another question to the database.
pub async fn require_in_use<E>(query: &impl Query, ctx: &Ctx, unit: BusinessUnitId) -> Result<(), E>
where
    E: From<DbError> + From<AccessError>,
{
    let archived = match ctx.scope {
        Scope::One(_) => false,
        Scope::All => store::find_archived(query, &[unit]).await?.iter().any(|(_, archived)| *archived),
    };
    if archived { Err(AccessError::UnitArchived.into()) } else { Ok(()) }
}

/// The unit `default`, made if it is missing.
pub async fn ensure_default(tx: &Tx<'_>, ids: IdSource) -> Result<BusinessUnitId, DbError> {
    match store::find_by_slug(tx, rules::DEFAULT_SLUG).await? {
        Some(id) => Ok(id),
        None => Ok(store::insert(tx, ids.mint(), rules::DEFAULT_SLUG, "Default").await?.id),
    }
}

/// The slug of a unit.
pub async fn find_slug(query: &impl Query, id: BusinessUnitId) -> Result<Option<String>, DbError> {
    Ok(store::find(query, id, Sight::All).await?.map(|unit| unit.slug))
}

/// Locks a unit against others who write what it has few of, until the transaction ends. `false` if there is none.
pub async fn lock(tx: &Tx<'_>, id: BusinessUnitId) -> Result<bool, DbError> {
    Ok(store::lock(tx, id).await?.is_some_and(|unit| unit.archived_at.is_none()))
}

fn sight(ctx: &Ctx) -> Result<Sight, BusinessUnitError> {
    Ok(match ctx.credential {
        Credential::Key { .. } => Sight::Unit(ctx.unit()?),
        Credential::Session(_) if ctx.is_superadmin => Sight::All,
        Credential::Session(_) => Sight::Member(ctx.person()?),
    })
}

fn duplicate(error: DbError) -> BusinessUnitError {
    if error.is_duplicate_of(SLUG_CONSTRAINT) { BusinessUnitError::Duplicate } else { error.into() }
}

fn entry(ctx: &Ctx, action: Action, unit: &BusinessUnitView) -> Entry {
    Entry {
        business_unit_id: None,
        actor: Actor::clone(&ctx.actor),
        action,
        resource_type: "business_unit",
        resource_id: unit.id.to_string(),
        workspace_id: None,
        run_id: None,
        details: json!({ "slug": unit.slug, "name": unit.name }),
    }
}
