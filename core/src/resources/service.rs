//! Searching the index.

use super::store;
use super::{ResourceError, ResourceView, Search};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::page::{Page, PageRequest};

/// Resources of all workspaces that the caller sees, those that came into the index last first.
pub async fn search(
    deps: &Deps,
    ctx: &Ctx,
    search: &Search,
    page: PageRequest,
) -> Result<Page<ResourceView>, ResourceError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    let rows = store::search(&conn, ctx.scope.unit(), ctx.workspaces_param(), search, page).await?;
    Ok(Page::from_rows(rows, page.limit, |resource| resource.id.0))
}
