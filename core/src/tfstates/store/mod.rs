//! SQL of the state: the head and the lock here, the other tables in the modules below.

mod consumers;
mod quarantine;
mod retention;
mod uploads;
mod versions;
mod waiters;

use chrono::{DateTime, Utc};
use serde_json::Value;

use super::{HeldBy, Lock, LockInfo, LockView, StateHead, StateWrites};
use crate::audit::Draft;
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{BusinessUnitId, ExecutorId, RunId, UserId, WorkspaceId};
use crate::workspaces::Locked;

pub(super) use consumers::{is_shared, list_consumers, replace_consumers};
pub(super) use quarantine::{
    QuarantinedRow, find_quarantined, insert_quarantined, list_quarantined, resolve_quarantined,
};
pub(super) use retention::{
    Removal, claim_unchecked, expire_quarantined, expire_versions, list_expired_quarantined,
    list_expired_versions, list_settled_uploads, remove_quarantined, remove_uploads, remove_versions,
    set_checked,
};
pub(super) use uploads::{
    NewUpload, UploadRow, UploadStatus, begin_upload, close_upload, find_upload, has_pending_upload,
    list_expired, lock_upload, set_copying,
};
pub(crate) use versions::Noted;
pub(super) use versions::{
    NewVersion, VersionRow, accept, find_version, find_version_before, list_versions, note,
};
pub(super) use waiters::{list_waiters, record_waiter};

/// The head and the lock of one workspace, with what of the workspace decides about them.
#[derive(Clone, Debug)]
pub(super) struct StateRow {
    pub workspace_id: WorkspaceId,
    pub business_unit_id: BusinessUnitId,
    pub state_writes: StateWrites,
    pub generation: i64,
    pub accept_next_lineage: bool,
    pub head: Option<StateHead>,
    /// `None`: there is no head, or its resources were not counted.
    pub head_resource_count: Option<i64>,
    pub lock: Option<LockRow>,
    pub last_lock_id: Option<String>,
    /// The person who keeps runs and other people away from the workspace.
    pub workspace_lock: Option<Locked>,
    /// Whether new bodies may go elsewhere than to the platform's own store; unknown, and so `true`, while the row is locked.
    pub has_home: bool,
    /// What a guarded write must find unchanged: 0 if there was no row; `None` while the row is locked.
    pub version: Option<i64>,
}

/// A lock that is held.
#[derive(Clone, Debug)]
pub(super) struct LockRow {
    pub id: String,
    pub info: String,
    pub run_id: Option<RunId>,
    pub executor_id: Option<ExecutorId>,
    pub user_id: Option<UserId>,
    pub locked_at: Option<DateTime<Utc>>,
    pub age_seconds: Option<i64>,
}

impl LockRow {
    pub(super) fn held_by(&self) -> Option<HeldBy> {
        self.executor_id.map(HeldBy::Executor).or(self.user_id.map(HeldBy::Person))
    }
}

impl StateRow {
    /// The lock as the rules see it.
    pub(super) fn lock_facts(&self) -> Option<Lock> {
        self.lock.as_ref().map(|lock| Lock {
            id: lock.id.clone(),
            generation: self.generation,
            by: lock.held_by(),
        })
    }

    /// Whether a version leaves nothing of what the head manages.
    pub(super) fn is_emptied_by(&self, new: &NewVersion<'_>) -> bool {
        new.resource_count == Some(0) && self.head_resource_count.is_some_and(|count| count > 0)
    }

    pub(super) fn lock_view(&self) -> LockView {
        let lock = self.lock.as_ref();
        let info: Option<Value> = lock.and_then(|lock| serde_json::from_str(&lock.info).ok());
        LockView {
            held: lock.is_some(),
            lock_id: lock.map(|lock| lock.id.clone()),
            generation: self.generation,
            who: said(info.as_ref(), "Who"),
            operation: said(info.as_ref(), "Operation"),
            info,
            run_url: None,
            workspace_lock: self.workspace_lock.clone(),
            waiters: Vec::new(),
            run_id: lock.and_then(|lock| lock.run_id),
            locked_at: lock.and_then(|lock| lock.locked_at),
            age_seconds: lock.and_then(|lock| lock.age_seconds),
        }
    }

    fn read(row: &Row) -> Result<Self, DbError> {
        let word: &str = row.get("state_writes");
        let state_writes =
            StateWrites::parse(word).ok_or_else(|| DbError::Row(["unknown state_writes ", word].concat()))?;
        let lock = row.get::<_, Option<String>>("lock_id").map(|id| LockRow {
            id,
            info: row.get("lock_info"),
            run_id: row.get("lock_run_id"),
            executor_id: row.get("lock_executor_id"),
            user_id: row.get("lock_user_id"),
            locked_at: row.get("locked_at"),
            age_seconds: row.get("lock_age_seconds"),
        });
        Ok(Self {
            workspace_id: row.get("workspace_id"),
            business_unit_id: row.get("business_unit_id"),
            state_writes,
            generation: row.get("generation"),
            accept_next_lineage: row.get("accept_next_lineage"),
            head: read_head(row)?,
            head_resource_count: row.get("head_resource_count"),
            lock,
            last_lock_id: row.get("last_lock_id"),
            workspace_lock: row.get::<_, Option<DateTime<Utc>>>("workspace_locked_at").map(|at| Locked {
                at,
                by: row.get("locked_by"),
                who: row.get("locked_who"),
                reason: row.get("locked_reason"),
            }),
            has_home: row.get("has_home"),
            version: row.get("row_version"),
        })
    }
}

/// What a LockInfo says in one of its fields.
fn said(info: Option<&Value>, field: &str) -> Option<String> {
    info?.get(field)?.as_str().filter(|words| !words.is_empty()).map(str::to_owned)
}

fn read_head(row: &Row) -> Result<Option<StateHead>, DbError> {
    let Some(version_id) = row.get("head_version_id") else { return Ok(None) };
    Ok(Some(StateHead {
        version_id,
        serial: row.get("head_serial"),
        lineage: row.get("head_lineage"),
        size_bytes: row.get("head_size_bytes"),
        sha256: sha256(row.get("head_sha256"))?,
        md5: md5(row.get("head_md5"))?,
        key: row.get("head_key"),
        store_id: row.get("head_store_id"),
    }))
}

fn sha256(bytes: &[u8]) -> Result<Sha256Digest, DbError> {
    Sha256Digest::from_slice(bytes).ok_or_else(|| DbError::Row("a SHA-256 has 32 bytes".into()))
}

fn md5(bytes: &[u8]) -> Result<[u8; 16], DbError> {
    bytes.try_into().map_err(|_| DbError::Row("an MD5 has 16 bytes".into()))
}

const FIND: &str = include_str!("../sql/find.sql");

/// The row as it is now, without a lock. `None`: no such workspace in this unit.
pub(super) async fn find(
    query: &impl Query,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
) -> Result<Option<StateRow>, DbError> {
    query.query_opt(FIND, &[&unit, &workspace_id]).await?.as_ref().map(StateRow::read).transpose()
}

const FIND_HEAD: &str = "
    SELECT head_version_id, head_serial, head_lineage, head_key, head_store_id, head_size_bytes, head_md5, head_sha256
    FROM tfstates WHERE workspace_id = $1";

pub(super) async fn find_head(
    query: &impl Query,
    workspace_id: WorkspaceId,
) -> Result<Option<StateHead>, DbError> {
    match query.query_opt(FIND_HEAD, &[&workspace_id]).await? {
        Some(row) => read_head(&row),
        None => Ok(None),
    }
}

const LOCK_ROW: &str = include_str!("../sql/lock_row.sql");

/// The row, locked until the transaction ends; made if it is missing. `None`: no such workspace in this unit.
pub(super) async fn lock_row(
    tx: &Tx<'_>,
    unit: Option<BusinessUnitId>,
    workspace_id: WorkspaceId,
) -> Result<Option<StateRow>, DbError> {
    tx.query_opt(LOCK_ROW, &[&unit, &workspace_id]).await?.as_ref().map(StateRow::read).transpose()
}

const TAKE_LOCK: &str = include_str!("../sql/take_lock.sql");

/// Gives the free lock to a holder, with the audit entry. `false`: the row has changed since it was read,
/// the executor that asks has stopped, or another person has locked the workspace.
pub(super) async fn take_lock(
    query: &impl Query,
    row: &StateRow,
    info: &LockInfo,
    (run_id, by): (Option<RunId>, HeldBy),
    entry: &Draft,
) -> Result<bool, DbError> {
    let (executor_id, user_id) = match by {
        HeldBy::Executor(id) => (Some(id), None),
        HeldBy::Person(id) => (None, Some(id)),
    };
    let taken = query
        .query_opt(
            TAKE_LOCK,
            &[
                &row.business_unit_id,
                &row.workspace_id,
                &info.id(),
                &info.as_str(),
                &run_id,
                &executor_id,
                &user_id,
                &row.version,
                &entry.chain,
                &entry.before,
                &entry.middle,
                &entry.after,
            ],
        )
        .await?;
    Ok(taken.is_some())
}

const RELEASE_LOCK: &str = include_str!("../sql/release_lock.sql");

/// The holder gives the lock back, with the audit entry. `false`: the row has changed since it was read, or an upload
/// of the lock is unresolved.
pub(super) async fn release_lock(query: &impl Query, row: &StateRow, entry: &Draft) -> Result<bool, DbError> {
    let released = query
        .query_opt(
            RELEASE_LOCK,
            &[
                &row.business_unit_id,
                &row.workspace_id,
                &row.version,
                &entry.chain,
                &entry.before,
                &entry.middle,
                &entry.after,
            ],
        )
        .await?;
    Ok(released.is_some())
}

// The generation rises, so that not even the same id taken again lets an old upload in; and a lock that was taken
// away is not remembered: its holder's UNLOCK must fail, not look like a repeated one.
const TAKE_AWAY_LOCK: &str = "
    UPDATE tfstates SET generation = generation + 1, last_lock_id = NULL, last_lock_generation = NULL, lock_id = NULL,
        lock_info = NULL, lock_run_id = NULL, lock_executor_id = NULL, lock_user_id = NULL, locked_at = NULL
    WHERE workspace_id = $2 AND business_unit_id = $1";

/// Somebody else ends the holder's lock.
pub(super) async fn take_away_lock(tx: &Tx<'_>, row: &StateRow) -> Result<(), DbError> {
    tx.execute(TAKE_AWAY_LOCK, &[&row.business_unit_id, &row.workspace_id]).await?;
    Ok(())
}

const FREE_LOCK_OF: &str = "
    UPDATE tfstates SET generation = generation + 1, last_lock_id = NULL, last_lock_generation = NULL, lock_id = NULL,
        lock_info = NULL, lock_run_id = NULL, lock_executor_id = NULL, lock_user_id = NULL, locked_at = NULL
    WHERE lock_executor_id = $1";

/// Ends the lock of an executor. Returns whether it held one.
pub(super) async fn free_lock_of(query: &impl Query, executor_id: ExecutorId) -> Result<bool, DbError> {
    Ok(query.execute(FREE_LOCK_OF, &[&executor_id]).await? > 0)
}

const MAY_LIVE: &str = "SELECT 1 FROM executors WHERE id = $1 AND status <> 'stopped'";

/// Whether an executor may still act: only 'stopped' is proof that it cannot.
pub(super) async fn may_live(query: &impl Query, executor_id: ExecutorId) -> Result<bool, DbError> {
    Ok(query.query_opt(MAY_LIVE, &[&executor_id]).await?.is_some())
}

const COUNT_LOCKS_OF_PEOPLE: &str = "
    SELECT count(*) FROM tfstates WHERE business_unit_id = $1 AND lock_user_id IS NOT NULL";

/// How many states of a unit are locked by people.
pub(super) async fn count_locks_of_people(query: &impl Query, unit: BusinessUnitId) -> Result<i64, DbError> {
    Ok(query.query_one(COUNT_LOCKS_OF_PEOPLE, &[&unit]).await?.get(0))
}

const ACCEPT_NEXT_LINEAGE: &str =
    "UPDATE tfstates SET accept_next_lineage = true WHERE workspace_id = $2 AND business_unit_id = $1";

pub(super) async fn set_accept_next_lineage(tx: &Tx<'_>, row: &StateRow) -> Result<(), DbError> {
    tx.execute(ACCEPT_NEXT_LINEAGE, &[&row.business_unit_id, &row.workspace_id]).await?;
    Ok(())
}
