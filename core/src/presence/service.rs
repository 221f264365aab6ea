//! Use cases of presence. None of them is recorded: saying that one is there is no privileged action.

use super::model::{KEPT_FOR, PresenceView, SEEN_FOR};
use super::{PresenceError, store};
use crate::Deps;
use crate::access::{AccessError, Actor, Ctx, Permission};
use crate::business_units;
use crate::db::DbError;
use crate::ids::UserId;
use crate::page::{Page, PageRequest};

/// The caller is there, and looks at the unit with this slug, or at what the request is about.
pub async fn ping(deps: &Deps, ctx: &Ctx, slug: Option<&str>) -> Result<(), PresenceError> {
    ctx.require(Permission::Read)?;
    let user = person(ctx)?;
    let conn = deps.db.conn().await?;
    let unit = match slug {
        None => ctx.scope.unit(),
        Some("all") if ctx.is_superadmin => None,
        Some(slug) => {
            let seen = business_units::service::find_seen(&conn, ctx, slug).await?;
            Some(seen.ok_or(PresenceError::UnitNotFound)?)
        }
    };
    Ok(store::put(&conn, user, unit).await?)
}

/// Who was there within the last minute, in the caller's units; superadmins see everybody.
pub async fn list(deps: &Deps, ctx: &Ctx, page: PageRequest) -> Result<Page<PresenceView>, PresenceError> {
    ctx.require(Permission::Read)?;
    let member = if ctx.is_superadmin { None } else { Some(person(ctx)?) };
    let rows = store::list(&deps.db.conn().await?, SEEN_FOR, member, page).await?;
    Ok(Page::from_rows(rows, page.limit, |seen| seen.user_id.into()))
}

/// Removes rows of those who are long gone. Returns how many went.
pub async fn forget(deps: &Deps) -> Result<u64, DbError> {
    store::forget(&deps.db.conn().await?, KEPT_FOR).await
}

fn person(ctx: &Ctx) -> Result<UserId, AccessError> {
    match &ctx.actor {
        Actor::User { id, .. } => Ok(*id),
        Actor::Key { .. } | Actor::System => Err(AccessError::PersonRequired),
    }
}
