//! SQL of `state_versions`.

use super::StateRow;
use crate::audit::Draft;
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, StateStoreId, StateVersionId, UserId, WorkspaceId};
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
    /// `None`: in the platform's own store.
    pub store_id: Option<StateStoreId>,
    pub terraform_version: Option<&'a str>,
    pub opaque: bool,
    pub run_id: Option<RunId>,
    pub created_by: Option<UserId>,
    pub rolled_back_from: Option<StateVersionId>,
    /// `None`: not counted yet, or encrypted.
    pub resource_count: Option<i64>,
}

/// A version and where its body is.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct VersionRow {
    pub view: StateVersionView,
    pub business_unit_id: BusinessUnitId,
    pub md5: [u8; 16],
    pub key: String,
    /// `None`: in the platform's own store.
    pub store_id: Option<StateStoreId>,
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
                &new.resource_count,
                &row.is_emptied_by(new),
                &new.store_id,
            ],
        )
        .await?;
    Ok(accepted.is_some())
}

/// A version with what a row of it does not say.
macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT v.*, v.id = t.head_version_id AS is_current, s.region AS store_region, s.bucket AS store_bucket,
                    s.storage_account AS store_account, s.prefix AS store_prefix
             FROM state_versions v JOIN tfstates t ON t.workspace_id = v.workspace_id
             LEFT JOIN state_stores s ON s.id = v.store_id ",
            $rest
        )
    };
}

const LIST: &str = select!(
    "WHERE v.workspace_id = $2 AND ($1::uuid IS NULL OR v.business_unit_id = $1) AND ($3::uuid IS NULL OR v.id < $3)
      AND v.expired_at IS NULL
    ORDER BY v.id DESC LIMIT $4"
);

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

const FIND: &str =
    select!("WHERE v.id = $2 AND ($1::uuid IS NULL OR v.business_unit_id = $1) AND v.expired_at IS NULL");

pub(in crate::tfstates) async fn find_version(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    id: StateVersionId,
) -> Result<Option<VersionRow>, DbError> {
    query.query_opt(FIND, &[&unit, &id]).await?.as_ref().map(read).transpose()
}

const FIND_BEFORE: &str = select!(
    "WHERE v.workspace_id = $2 AND v.business_unit_id = $1 AND v.id < $3 AND v.expired_at IS NULL
    ORDER BY v.id DESC LIMIT 1"
);

/// The version that was the head until this one came.
pub(in crate::tfstates) async fn find_version_before(
    query: &impl Query,
    (unit, workspace_id): (BusinessUnitId, WorkspaceId),
    id: StateVersionId,
) -> Result<Option<VersionRow>, DbError> {
    query.query_opt(FIND_BEFORE, &[&unit, &workspace_id, &id]).await?.as_ref().map(read).transpose()
}

/// What is found in a version's body after it was accepted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Noted {
    pub(crate) opaque: bool,
    pub(crate) resource_count: Option<i64>,
    pub(crate) emptied: bool,
    pub(crate) contradiction: Option<&'static str>,
}

/// What was known before.
#[derive(Clone, Copy, Debug)]
pub(in crate::tfstates) struct Known {
    emptied: bool,
    contradiction: bool,
}

impl Known {
    /// Whether people should hear of what was found.
    pub(in crate::tfstates) fn lacks(self, noted: &Noted) -> bool {
        (noted.emptied && !self.emptied) || (noted.contradiction.is_some() && !self.contradiction)
    }
}

const NOTE: &str = "
    UPDATE state_versions v SET opaque = v.opaque OR $4, resource_count = $5, emptied = v.emptied OR $6,
        contradiction = coalesce(v.contradiction, $7)
    FROM (SELECT id, emptied, contradiction FROM state_versions WHERE id = $3 FOR UPDATE) old
    WHERE v.id = old.id AND v.workspace_id = $2 AND v.business_unit_id = $1
    RETURNING old.emptied, old.contradiction IS NOT NULL AS contradiction";
// Guarded: a change of the row makes a write that was just judged by it be judged again.
const NOTE_HEAD: &str = "
    UPDATE tfstates SET head_resource_count = $4
    WHERE workspace_id = $2 AND business_unit_id = $1 AND head_version_id = $3
      AND head_resource_count IS DISTINCT FROM $4";

/// Writes it down, and tells what was known before. Of a version that is gone everything is.
pub(in crate::tfstates) async fn note(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    workspace_id: WorkspaceId,
    id: StateVersionId,
    noted: &Noted,
) -> Result<Known, DbError> {
    tx.execute(NOTE_HEAD, &[&unit, &workspace_id, &id, &noted.resource_count]).await?;
    let params: [&dyn crate::db::Param; 7] = [
        &unit,
        &workspace_id,
        &id,
        &noted.opaque,
        &noted.resource_count,
        &noted.emptied,
        &noted.contradiction,
    ];
    let known = tx.query_opt(NOTE, &params).await?;
    Ok(known.map_or(Known { emptied: true, contradiction: true }, |row| Known {
        emptied: row.get("emptied"),
        contradiction: row.get("contradiction"),
    }))
}

fn read(row: &Row) -> Result<VersionRow, DbError> {
    Ok(VersionRow {
        business_unit_id: row.get("business_unit_id"),
        md5: super::md5(row.get("md5"))?,
        key: row.get("key"),
        store_id: row.get("store_id"),
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
            resource_count: row.get("resource_count"),
            emptied: row.get("emptied"),
            contradiction: row.get("contradiction"),
            rolled_back_from: row.get("rolled_back_from"),
            is_current: row.get::<_, Option<bool>>("is_current").unwrap_or(false),
            stored_in: stored_in(row),
            created_at: row.get("created_at"),
        },
    })
}

/// As the tools of its cloud write it.
fn stored_in(row: &Row) -> Option<String> {
    let bucket = row.get::<_, Option<String>>("store_bucket")?;
    let prefix =
        row.get::<_, Option<String>>("store_prefix").map_or(String::new(), |prefix| format!("/{prefix}"));
    Some(match row.get::<_, Option<String>>("store_account") {
        Some(account) => format!("https://{account}.blob.core.windows.net/{bucket}"),
        None if row.get::<_, Option<String>>("store_region").is_some() => format!("s3://{bucket}"),
        None => format!("gs://{bucket}{prefix}"),
    })
}
