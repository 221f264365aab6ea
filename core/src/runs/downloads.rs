//! What people find of a run and take with them: its artifacts, and the logs of its steps.
//!
//! Bytes come from the object store by a signed URL. A log is moved there when its run has ended; until then a short one
//! is answered as it is.

use serde_json::json;

use super::{ArtifactName, ArtifactView, RunError, artifacts, ending, reading, store};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::audit::{self, Action};
use crate::db::{DbError, Query};
use crate::digest::Sha256Digest;
use crate::ids::RunId;
use crate::protocol::{ArtifactKind, Presigned};

/// Longest log that is answered as it is, in bytes. The answer of a function has room for six megabytes, and a byte of
/// a log may take six in it.
pub const LIVE_LOG_BYTES_MAX: i64 = 768 << 10;

/// Where the bytes are.
#[derive(Debug)]
pub enum Download {
    /// In the object store.
    Elsewhere(Presigned),
    /// Here: a log that still grows.
    Log(Vec<u8>),
}

/// What a person needs to download a kind; `None`: nobody may.
fn needed_to_read(kind: ArtifactKind) -> Option<Permission> {
    match kind {
        // Holds every secret of the plan; only the apply phase reads it.
        ArtifactKind::PlanFile => None,
        ArtifactKind::PlanText | ArtifactKind::PlanJsonRedacted | ArtifactKind::LockFile => {
            Some(Permission::ReadLogs)
        }
        ArtifactKind::PlanJson | ArtifactKind::Outputs | ArtifactKind::ErroredState => {
            Some(Permission::ReadState)
        }
    }
}

const LIST: &str = include_str!("sql/list_artifacts.sql");

/// What a run has produced: artifacts by kind, then the steps' logs in order.
pub async fn list(deps: &Deps, ctx: &Ctx, id: RunId) -> Result<Vec<ArtifactView>, RunError> {
    ctx.require(Permission::Read)?;
    let conn = deps.db.conn().await?;
    store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let mut views = Vec::new();
    for row in conn.query(LIST, &[&id]).await? {
        let word: String = row.get("name");
        let kind = ArtifactName::parse(&word)
            .ok_or_else(|| DbError::Row(format!("an artifact has the unknown name {word:?}")))?;
        let sha256: Option<Vec<u8>> = row.get("sha256");
        views.push(ArtifactView {
            kind,
            size_bytes: row.get("size_bytes"),
            sha256: sha256.and_then(|bytes| Sha256Digest::from_slice(&bytes)),
            created_at: row.get("created_at"),
        });
    }
    Ok(views)
}

/// The bytes of an artifact or a log, for a person.
pub async fn get(deps: &Deps, ctx: &Ctx, id: RunId, name: ArtifactName) -> Result<Download, RunError> {
    match name {
        ArtifactName::Kind(kind) => artifact(deps, ctx, id, kind).await.map(Download::Elsewhere),
        ArtifactName::Log(position) => log(deps, ctx, id, position).await,
    }
}

async fn artifact(deps: &Deps, ctx: &Ctx, id: RunId, kind: ArtifactKind) -> Result<Presigned, RunError> {
    ctx.require(needed_to_read(kind).ok_or(RunError::NotFound("artifact for people"))?)?;
    let mut conn = deps.db.conn().await?;
    let tx = conn.begin().await?;
    let run = store::find(&tx, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let found = artifacts::find(&tx, id, kind).await?.ok_or(RunError::NotFound("artifact"))?;
    let details = json!({ "artifact": kind });
    audit::service::record(&tx, &ending::entry(&run.run, ctx.actor.clone(), Action::RunRead, details))
        .await?;
    tx.commit().await?;
    Ok(deps.blobs.presign_get(&found.key, deps.limits.download_url_age).await?)
}

const LOG: &str = include_str!("sql/whole_log.sql");

async fn log(deps: &Deps, ctx: &Ctx, id: RunId, position: i16) -> Result<Download, RunError> {
    ctx.require(Permission::ReadLogs)?;
    let conn = deps.db.conn().await?;
    let run = store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let step = conn.query_opt(LOG, &[&id, &position, &LIVE_LOG_BYTES_MAX]).await?;
    let step = step.ok_or(RunError::NotFound("log"))?;
    reading::record(&conn, &run.run, ctx, json!({ "log": position })).await?;
    drop(conn);
    if let Some(key) = step.get::<_, Option<String>>("key") {
        return Ok(Download::Elsewhere(deps.blobs.presign_get(&key, deps.limits.download_url_age).await?));
    }
    let length: i64 = step.get("log_bytes");
    if length > LIVE_LOG_BYTES_MAX {
        return Err(RunError::LogNotStored { bytes: length });
    }
    Ok(Download::Log(step.get::<_, Option<Vec<u8>>>("bytes").unwrap_or_default()))
}
