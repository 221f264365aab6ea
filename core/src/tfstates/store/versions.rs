//! SQL of `state_versions`.

use super::StateRow;
use crate::audit::Draft;
use crate::db::{DbError, Query, Row};
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, StateVersionId, UserId, WorkspaceId};
use crate::page::PageRequest;
use crate::tfstates::StateVersionView;

/// A body that becomes the head.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct NewVersion<'a> {
    pub id: StateVersionId,
    pub serial: i64,
    pub lineage: &'a str,
    pub lock_id: Option<&'a str>,
    pub md5: [u8; 16],
    pub sha256: Sha256Digest,
    pub size_bytes: i64,
    pub key: &'a str,
    pub terraform_version: Option<&'a str>,
    pub opaque: bool,
    pub run_id: Option<RunId>,
    pub created_by: Option<UserId>,
    pub rolled_back_from: Option<StateVersionId>,
}

/// A version and where its body is.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct VersionRow {
    pub view: StateVersionView,
    pub business_unit_id: BusinessUnitId,
    pub md5: [u8; 16],
    pub key: String,
}

const ACCEPT: &str = include_str!("../sql/accept.sql");

/// Adds a version and makes it the head, with the audit entry. `false`: the row has changed since it was read.
pub(in crate::tfstates) async fn accept(
    query: &impl Query,
    row: &StateRow,
    new: &NewVersion<'_>,
    entry: &Draft,
) -> Result<bool, DbError> {
    let accepted = query
        .query_opt(
            ACCEPT,
            &[
                &row.business_unit_id,
                &row.workspace_id,
                &new.id,
                &new.serial,
                &new.lineage,
                &new.lock_id,
                &new.md5.as_slice(),
                &new.sha256.0.as_slice(),
                &new.size_bytes,
                &new.key,
                &new.terraform_version,
                &new.opaque,
                &new.run_id,
                &new.created_by,
                &new.rolled_back_from,
                &row.version,
                &entry.chain,
                &entry.before,
                &entry.middle,
                &entry.after,
            ],
        )
        .await?;
    Ok(accepted.is_some())
}

const LIST: &str = "
    SELECT v.*, v.id = t.head_version_id AS is_current
    FROM state_versions v JOIN tfstates t ON t.workspace_id = v.workspace_id
    WHERE v.workspace_id = $2 AND ($1::uuid IS NULL OR v.business_unit_id = $1) AND ($3::uuid IS NULL OR v.id < $3)
    ORDER BY v.id DESC LIMIT $4";

/// Newest first; one more than a page holds, if there is one.
pub(in crate::tfstates) async fn list_versions(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
    page: PageRequest,
) -> Result<Vec<StateVersionView>, DbError> {
    let rows = query.query(LIST, &[&unit, &workspace_id, &page.cursor, &(page.limit + 1)]).await?;
    rows.iter().map(|row| Ok(read(row)?.view)).collect()
}

const FIND: &str = "
    SELECT v.*, v.id = t.head_version_id AS is_current
    FROM state_versions v JOIN tfstates t ON t.workspace_id = v.workspace_id
    WHERE v.id = $2 AND ($1::uuid IS NULL OR v.business_unit_id = $1)";

pub(in crate::tfstates) async fn find_version(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: StateVersionId,
) -> Result<Option<VersionRow>, DbError> {
    query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(read).transpose()
}

const FIND_BEFORE: &str = "
    SELECT v.*, false AS is_current FROM state_versions v
    WHERE v.workspace_id = $2 AND v.business_unit_id = $1 AND v.id < $3 ORDER BY v.id DESC LIMIT 1";

/// The version that was the head until this one came.
pub(in crate::tfstates) async fn find_version_before(
    query: &impl Query,
    version: &VersionRow,
) -> Result<Option<VersionRow>, DbError> {
    query
        .query_opt(FIND_BEFORE, &[&version.business_unit_id, &version.view.workspace_id, &version.view.id])
        .await?
        .as_ref()
        .map(read)
        .transpose()
}

fn read(row: &Row) -> Result<VersionRow, DbError> {
    Ok(VersionRow {
        business_unit_id: row.get("business_unit_id"),
        md5: super::md5(row.get("md5"))?,
        key: row.get("key"),
        view: StateVersionView {
            id: row.get("id"),
            workspace_id: row.get("workspace_id"),
            serial: row.get("serial"),
            lineage: row.get("lineage"),
            md5: hex::encode(row.get::<_, &[u8]>("md5")),
            sha256: super::sha256(row.get("sha256"))?,
            size_bytes: row.get("size_bytes"),
            terraform_version: row.get("terraform_version"),
            opaque: row.get("opaque"),
            run_id: row.get("run_id"),
            created_by: row.get("created_by"),
            rolled_back_from: row.get("rolled_back_from"),
            is_current: row.get::<_, Option<bool>>("is_current").unwrap_or(false),
            created_at: row.get("created_at"),
        },
    })
}
