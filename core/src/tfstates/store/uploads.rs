//! SQL of `state_uploads`.

use super::StateRow;
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, RunId, StateStoreId, StateUploadId, UserId, WorkspaceId};

/// A large body that is about to come.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct NewUpload<'a> {
    pub id: StateUploadId,
    pub generation: i64,
    pub lock_id: Option<&'a str>,
    pub key: &'a str,
    pub serial: i64,
    pub lineage: &'a str,
    pub sha256: Sha256Digest,
    pub md5: [u8; 16],
    pub size_bytes: i64,
    pub terraform_version: Option<&'a str>,
    pub run_id: Option<RunId>,
    pub created_by: Option<UserId>,
    pub url_age_seconds: f64,
}

/// What the column holds for an upload without a lock: no lock has an empty id.
const NO_LOCK: &str = "";

/// Where an upload stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::tfstates) enum UploadStatus {
    Pending,
    Committed,
    Quarantined,
    Abandoned,
}

impl UploadStatus {
    const ALL: [Self; 4] = [Self::Pending, Self::Committed, Self::Quarantined, Self::Abandoned];

    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Committed => "committed",
            Self::Quarantined => "quarantined",
            Self::Abandoned => "abandoned",
        }
    }
}

/// An upload.
#[derive(Clone, Debug)]
pub(in crate::tfstates) struct UploadRow {
    pub id: StateUploadId,
    pub business_unit_id: BusinessUnitId,
    pub workspace_id: WorkspaceId,
    pub generation: i64,
    /// `None`: a person wrote while nobody held the lock.
    pub lock_id: Option<String>,
    pub key: String,
    pub serial: i64,
    pub lineage: String,
    pub sha256: Sha256Digest,
    pub md5: [u8; 16],
    pub size_bytes: i64,
    pub terraform_version: Option<String>,
    pub run_id: Option<RunId>,
    pub created_by: Option<UserId>,
    pub status: UploadStatus,
    /// Where its body was copied to, or is about to be; `None`: it lies where it came.
    pub store_id: Option<StateStoreId>,
}

const BEGIN: &str = include_str!("../sql/begin_upload.sql");

/// Registers an upload, or finds the same one that is under way. Returns its id and key.
pub(in crate::tfstates) async fn begin_upload(
    tx: &Tx<'_>,
    row: &StateRow,
    new: &NewUpload<'_>,
) -> Result<(StateUploadId, String), DbError> {
    let begun = tx
        .query_one(
            BEGIN,
            &[
                &row.business_unit_id,
                &row.workspace_id,
                &new.id,
                &new.generation,
                &new.lock_id.unwrap_or(NO_LOCK),
                &new.key,
                &new.serial,
                &new.lineage,
                &new.sha256.0.as_slice(),
                &new.md5.as_slice(),
                &new.size_bytes,
                &new.terraform_version,
                &new.run_id,
                &new.url_age_seconds,
                &new.created_by,
            ],
        )
        .await?;
    Ok((begun.get("id"), begun.get("key")))
}

const FIND: &str = "
    SELECT * FROM state_uploads
    WHERE id = $2 AND workspace_id = $3 AND ($1::uuid IS NULL OR business_unit_id = $1)";

pub(in crate::tfstates) async fn find_upload(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
    id: StateUploadId,
) -> Result<Option<UploadRow>, DbError> {
    query.query_opt(FIND, &[&unit, &id, &workspace_id]).await?.as_ref().map(read).transpose()
}

const LOCK: &str = "SELECT * FROM state_uploads WHERE id = $2 AND business_unit_id = $1 FOR UPDATE";

/// The upload as it is now, locked until the transaction ends. The tfstates row is locked before.
pub(in crate::tfstates) async fn lock_upload(
    tx: &Tx<'_>,
    unit: BusinessUnitId,
    id: StateUploadId,
) -> Result<Option<UploadRow>, DbError> {
    tx.query_opt(LOCK, &[&unit, &id]).await?.as_ref().map(read).transpose()
}

const CLOSE: &str = "
    UPDATE state_uploads SET status = $3, store_id = $4
    WHERE id = $2 AND business_unit_id = $1 AND status = 'pending'";

/// Ends a pending upload, and says where its body is; `false` if it was not pending any more.
pub(in crate::tfstates) async fn close_upload(
    query: &impl Query,
    upload: &UploadRow,
    status: UploadStatus,
    store_id: Option<StateStoreId>,
) -> Result<bool, DbError> {
    let params: [&dyn crate::db::Param; 4] =
        [&upload.business_unit_id, &upload.id, &status.as_str(), &store_id];
    Ok(query.execute(CLOSE, &params).await? == 1)
}

const COPYING: &str = "
    UPDATE state_uploads SET store_id = $3 WHERE id = $2 AND business_unit_id = $1 AND status = 'pending'";

/// Remembers where a body is about to be copied to, so that what a kill leaves there is found.
pub(in crate::tfstates) async fn set_copying(
    query: &impl Query,
    upload: &UploadRow,
    store_id: StateStoreId,
) -> Result<(), DbError> {
    query.execute(COPYING, &[&upload.business_unit_id, &upload.id, &store_id]).await?;
    Ok(())
}

const HAS_PENDING: &str =
    "SELECT 1 FROM state_uploads WHERE workspace_id = $1 AND lock_id = $2 AND status = 'pending' LIMIT 1";

/// Whether a body that was begun under a lock is neither committed nor given up.
pub(in crate::tfstates) async fn has_pending_upload(
    query: &impl Query,
    row: &StateRow,
    lock_id: &str,
) -> Result<bool, DbError> {
    Ok(query.query_opt(HAS_PENDING, &[&row.workspace_id, &lock_id]).await?.is_some())
}

const LIST_EXPIRED: &str = "
    SELECT *, url_expires_at < (SELECT plumbline_now()) - $2 * interval '1 second' AS is_over
    FROM state_uploads
    WHERE status = 'pending' AND url_expires_at < (SELECT plumbline_now()) AND ($3::uuid IS NULL OR id > $3)
    ORDER BY id LIMIT $1";

/// Pending uploads whose URL has expired, after one of them, each with whether its time is over.
pub(in crate::tfstates) async fn list_expired(
    query: &impl Query,
    batch: i64,
    age_seconds: f64,
    after: Option<StateUploadId>,
) -> Result<Vec<(UploadRow, bool)>, DbError> {
    let rows = query.query(LIST_EXPIRED, &[&batch, &age_seconds, &after]).await?;
    rows.iter().map(|row| Ok((read(row)?, row.get("is_over")))).collect()
}

fn read(row: &Row) -> Result<UploadRow, DbError> {
    let word: &str = row.get("status");
    let status = UploadStatus::ALL.into_iter().find(|status| status.as_str() == word);
    Ok(UploadRow {
        id: row.get("id"),
        business_unit_id: row.get("business_unit_id"),
        workspace_id: row.get("workspace_id"),
        generation: row.get("generation"),
        lock_id: Some(row.get::<_, String>("lock_id")).filter(|id| id != NO_LOCK),
        key: row.get("key"),
        serial: row.get("serial"),
        lineage: row.get("lineage"),
        sha256: super::sha256(row.get("sha256"))?,
        md5: super::md5(row.get("md5"))?,
        size_bytes: row.get("size_bytes"),
        terraform_version: row.get("terraform_version"),
        run_id: row.get("run_id"),
        created_by: row.get("created_by"),
        store_id: row.get("store_id"),
        status: status.ok_or_else(|| DbError::Row(["unknown status of an upload ", word].concat()))?,
    })
}
