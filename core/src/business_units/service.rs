//! Use cases of business units.

use serde_json::json;

use super::model::{BusinessUnitView, NewBusinessUnit};
use super::store::Sight;
use super::{BusinessUnitError, rules, store};
use crate::Deps;
use crate::access::{Actor, Credential, Ctx, Permission};
use crate::audit::{self, Action, Entry};
use crate::db::{DbError, Query, Tx};
use crate::ids::{BusinessUnitId, IdSource};
use crate::page::{Page, PageRequest};

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

/// Renames a unit.
pub async fn update(
    deps: &Deps,
    ctx: &Ctx,
    id: BusinessUnitId,
    new: &NewBusinessUnit,
) -> Result<BusinessUnitView, BusinessUnitError> {
    ctx.require(Permission::AdministerPlatform)?;
    rules::check_slug(&new.slug)?;
    rules::check_name(&new.name)?;
    deps.db
        .transaction(async |tx| {
            let changed = store::update(tx, id, &new.slug, &new.name).await.map_err(duplicate)?;
            let changed = changed.ok_or(BusinessUnitError::NotFound)?;
            audit::service::record(tx, &entry(ctx, Action::BusinessUnitUpdate, &changed)).await?;
            Ok(changed)
        })
        .await
}

/// One of the units that the caller sees: their own, or any for a superadmin. The request's scope does not matter.
pub async fn get(deps: &Deps, ctx: &Ctx, id: BusinessUnitId) -> Result<BusinessUnitView, BusinessUnitError> {
    let found = store::find(&deps.db.conn().await?, id, sight(ctx)?).await?;
    found.ok_or(BusinessUnitError::NotFound)
}

/// The units that the caller sees, newest first.
pub async fn list(
    deps: &Deps,
    ctx: &Ctx,
    page: PageRequest,
) -> Result<Page<BusinessUnitView>, BusinessUnitError> {
    let conn = deps.db.conn().await?;
    let rows = store::list(&conn, sight(ctx)?, page.cursor, page.limit + 1).await?;
    Ok(Page::from_rows(rows, page.limit, |unit| unit.id.into()))
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
