//! SQL of `quarantined_states`.

use super::StateRow;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, QuarantinedStateId, StateStoreId, UserId, WorkspaceId};
use crate::page::PageRequest;
use crate::tfstates::{QuarantineReason, QuarantinedStateView};

/// A quarantined body and where it is.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct QuarantinedRow {
    pub view: QuarantinedStateView,
    pub business_unit_id: BusinessUnitId,
    pub md5: [u8; 16],
    pub key: String,
    /// `None`: in the platform's own store.
    pub store_id: Option<StateStoreId>,
}

const INSERT: &str = include_str!("../sql/quarantine.sql");

/// Keeps a body that is not the head. Returns its id, and the key of the copy that is kept: another one than
/// `new.key` if the same body was kept before.
pub(in crate::tfstates) async fn insert_quarantined(
    tx: &Tx<'_>,
    row: &StateRow,
    id: QuarantinedStateId,
    reason: QuarantineReason,
    new: &super::NewVersion<'_>,
) -> Result<(QuarantinedStateId, String), DbError> {
    let kept = tx
        .query_one(
            INSERT,
            &[
                &row.business_unit_id,
                &row.workspace_id,
                &id,
                &reason.as_str(),
                &new.serial,
                &new.lineage,
                &new.lock_id,
                &new.md5.as_slice(),
                &new.sha256.0.as_slice(),
                &new.size_bytes,
                &new.key,
                &new.run_id,
                &new.created_by,
                &new.store_id,
            ],
        )
        .await?;
    Ok((kept.get("id"), kept.get("key")))
}

const LIST: &str = "
    SELECT * FROM quarantined_states
    WHERE workspace_id = $2 AND ($1::uuid IS NULL OR business_unit_id = $1) AND ($3::uuid IS NULL OR id < $3)
      AND expired_at IS NULL
    ORDER BY id DESC LIMIT $4";

/// Newest first, decided ones included; one more than a page holds, if there is one.
pub(in crate::tfstates) async fn list_quarantined(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
    page: PageRequest,
) -> Result<Vec<QuarantinedStateView>, DbError> {
    let rows = query.query(LIST, &[&unit, &workspace_id, &page.cursor, &(page.limit + 1)]).await?;
    rows.iter().map(|row| Ok(read(row)?.view)).collect()
}

const FIND: &str = "
    SELECT * FROM quarantined_states
    WHERE id = $2 AND ($1::uuid IS NULL OR business_unit_id = $1) AND expired_at IS NULL";

pub(in crate::tfstates) async fn find_quarantined(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: QuarantinedStateId,
) -> Result<Option<QuarantinedRow>, DbError> {
    query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(read).transpose()
}

const RESOLVE: &str = "
    UPDATE quarantined_states SET resolved_at = plumbline_now(), resolved_by = $3, resolution = $4
    WHERE id = $2 AND business_unit_id = $1 AND resolved_at IS NULL";

/// Records a person's decision. Returns whether it was still open.
pub(in crate::tfstates) async fn resolve_quarantined(
    tx: &Tx<'_>,
    quarantined: &QuarantinedRow,
    by: Option<UserId>,
    resolution: &str,
) -> Result<bool, DbError> {
    let params: [&dyn crate::db::Param; 4] =
        [&quarantined.business_unit_id, &quarantined.view.id, &by, &resolution];
    Ok(tx.execute(RESOLVE, &params).await? > 0)
}

fn read(row: &Row) -> Result<QuarantinedRow, DbError> {
    Ok(QuarantinedRow {
        business_unit_id: row.get("business_unit_id"),
        md5: super::md5(row.get("md5"))?,
        key: row.get("key"),
        store_id: row.get("store_id"),
        view: QuarantinedStateView {
            id: row.get("id"),
            workspace_id: row.get("workspace_id"),
            reason: row.get("reason"),
            serial: row.get("serial"),
            lineage: row.get("lineage"),
            lock_id: row.get("lock_id"),
            sha256: super::sha256(row.get("sha256"))?,
            size_bytes: row.get("size_bytes"),
            run_id: row.get("run_id"),
            created_by: row.get("created_by"),
            created_at: row.get("created_at"),
            resolved_at: row.get("resolved_at"),
            resolved_by: row.get("resolved_by"),
            resolution: row.get("resolution"),
        },
    })
}
