use super::Workspace;
use crate::{
    access::Scope,
    db::{DbError, Query, Tx},
    ids::*,
};
pub async fn lock(_tx: &Tx<'_>, _s: Scope, _id: WorkspaceId) -> Result<Option<Workspace>, DbError> {
    todo!()
}
pub async fn find(_tx: &impl Query, _s: Scope, _id: WorkspaceId) -> Result<Option<Workspace>, DbError> {
    todo!()
}
pub async fn set_active_run(_tx: &Tx<'_>, _id: WorkspaceId, _r: Option<RunId>) -> Result<(), DbError> {
    todo!()
}
pub async fn block(_tx: &Tx<'_>, _id: WorkspaceId, _r: RunId, _w: &str) -> Result<(), DbError> {
    todo!()
}
