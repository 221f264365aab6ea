//! Named outputs of runs: uploaded by executors straight to the object store. People download them: `downloads`.

use super::{RunError, store};
use crate::Deps;
use crate::db::{DbError, Param, Query};
use crate::digest::Sha256Digest;
use crate::executors::ExecutorCaller;
use crate::ids::{ArtifactId, BlobId, RunId};
use crate::ports::{self, UploadTerms};
use crate::protocol::{ArtifactKind, Presigned, RunPhase, UploadBegin};

const ARTIFACT_BYTES_MAX: u64 = 1 << 30;

/// Which phase may upload a kind.
fn belongs_to(kind: ArtifactKind) -> RunPhase {
    match kind {
        ArtifactKind::PlanFile
        | ArtifactKind::PlanText
        | ArtifactKind::PlanJson
        | ArtifactKind::PlanJsonRedacted
        | ArtifactKind::LockFile => RunPhase::Plan,
        ArtifactKind::Outputs | ArtifactKind::ErroredState => RunPhase::Apply,
    }
}

fn content_type(kind: ArtifactKind) -> &'static str {
    match kind {
        ArtifactKind::PlanFile => "application/octet-stream",
        ArtifactKind::PlanText | ArtifactKind::LockFile => "text/plain; charset=utf-8",
        ArtifactKind::PlanJson
        | ArtifactKind::PlanJsonRedacted
        | ArtifactKind::Outputs
        | ArtifactKind::ErroredState => "application/json",
    }
}

const BEGIN: &str = include_str!("sql/begin_artifact.sql");
const OF_ATTEMPT: &str = "
    SELECT b.id, b.key, b.size_bytes, b.sha256, b.content_type
    FROM artifacts a JOIN blobs b ON b.id = a.blob_id
    WHERE a.run_id = $1 AND a.kind = $2 AND a.lease_token = $3";

/// Asks for a URL to upload an artifact. The same request again gives a fresh URL; other content is refused.
pub async fn begin(
    deps: &Deps,
    caller: &ExecutorCaller,
    upload: &UploadBegin,
) -> Result<Presigned, RunError> {
    let kind = upload.kind.as_str();
    if belongs_to(upload.kind) != caller.phase {
        return Err(RunError::Artifact { kind, reason: "it does not belong to this phase" });
    }
    if upload.size_bytes > ARTIFACT_BYTES_MAX {
        return Err(RunError::Artifact { kind, reason: "it is larger than 1 GiB" });
    }
    let key = format!("runs/{}/{}/{}/{}", caller.business_unit_id, caller.run_id, caller.lease.token, kind);
    let sha256: &[u8] = &upload.sha256.0;
    let size = i64::try_from(upload.size_bytes).unwrap_or(i64::MAX);
    let conn = deps.db.conn().await?;
    let (blob, artifact): (BlobId, ArtifactId) = (deps.ids.mint(), deps.ids.mint());
    let params: [&dyn Param; 12] = [
        &blob,
        &caller.business_unit_id,
        &key,
        &size,
        &sha256,
        &content_type(upload.kind),
        &deps.limits.upload_url_age.as_secs_f64(),
        &artifact,
        &caller.run_id,
        &kind,
        &caller.lease.token,
        &caller.lease.task_id,
    ];
    let row = match conn.query_opt(BEGIN, &params).await {
        // The same request, repeated while the first was under way, waited for it: now it finds what that wrote.
        Err(error) if error.is_duplicate_of("blobs_key") => conn.query_opt(BEGIN, &params).await?,
        first => first?,
    };
    let Some(row) = row else { return Err(RunError::LeaseLost) };
    if row.get::<_, Vec<u8>>("sha256") != sha256 || row.get::<_, i64>("size_bytes") != size {
        return Err(RunError::Artifact { kind, reason: "it was begun with other content in this attempt" });
    }
    drop(conn);
    let terms = UploadTerms {
        size_bytes: upload.size_bytes,
        sha256: upload.sha256,
        content_type: content_type(upload.kind).into(),
    };
    Ok(deps.blobs.presign_put(&key, &terms, deps.limits.upload_url_age).await?)
}

const COMMIT: &str = "UPDATE blobs SET committed_at = coalesce(committed_at, plumbline_now()) WHERE id = $1";

/// The bytes are uploaded: the object store confirms it.
pub async fn commit(deps: &Deps, caller: &ExecutorCaller, kind: ArtifactKind) -> Result<(), RunError> {
    let missing = RunError::Artifact { kind: kind.as_str(), reason: "it was not uploaded" };
    let conn = deps.db.conn().await?;
    let row = conn.query_opt(OF_ATTEMPT, &[&caller.run_id, &kind.as_str(), &caller.lease.token]).await?;
    drop(conn);
    let Some(row) = row else { return Err(missing) };
    let size_bytes = u64::try_from(row.get::<_, i64>("size_bytes")).unwrap_or(0);
    let sha256 = Sha256Digest::from_slice(row.get("sha256")).ok_or_else(|| DbError::Row("sha256".into()))?;
    if !ports::holds(&*deps.blobs, row.get("key"), size_bytes, sha256).await? {
        return Err(missing);
    }
    deps.db.conn().await?.execute(COMMIT, &[&row.get::<_, BlobId>("id")]).await?;
    Ok(())
}

const COMMITTED: &str = "
    SELECT b.sha256 FROM artifacts a JOIN blobs b ON b.id = a.blob_id
    WHERE a.run_id = $1 AND a.kind = $2 AND a.lease_token = $3 AND b.committed_at IS NOT NULL";

/// Refuses unless this attempt has uploaded the kind, with the given digest if one is given.
pub(super) async fn require_committed(
    query: &impl Query,
    caller: &ExecutorCaller,
    kind: ArtifactKind,
    digest: Option<Sha256Digest>,
) -> Result<(), RunError> {
    let row = query.query_opt(COMMITTED, &[&caller.run_id, &kind.as_str(), &caller.lease.token]).await?;
    let Some(row) = row else {
        return Err(RunError::Artifact { kind: kind.as_str(), reason: "it was not uploaded" });
    };
    let stored = Sha256Digest::from_slice(&row.get::<_, Vec<u8>>(0));
    if digest.is_some_and(|digest| stored != Some(digest)) {
        return Err(RunError::Artifact { kind: kind.as_str(), reason: "its digest is not the reported one" });
    }
    Ok(())
}

const NEWEST: &str = "
    SELECT b.key, b.size_bytes, b.sha256, a.created_at FROM artifacts a JOIN blobs b ON b.id = a.blob_id
    WHERE a.run_id = $1 AND a.kind = $2 AND b.committed_at IS NOT NULL
    ORDER BY a.lease_token DESC LIMIT 1";

/// An artifact of the newest attempt that has one.
pub(super) struct StoredArtifact {
    pub(super) key: String,
    pub(super) size_bytes: u64,
    pub(super) sha256: Option<Sha256Digest>,
}

pub(super) async fn find(
    query: &impl Query,
    run: RunId,
    kind: ArtifactKind,
) -> Result<Option<StoredArtifact>, DbError> {
    let row = query.query_opt(NEWEST, &[&run, &kind.as_str()]).await?;
    Ok(row.map(|row| StoredArtifact {
        key: row.get("key"),
        size_bytes: u64::try_from(row.get::<_, i64>("size_bytes")).unwrap_or(0),
        sha256: Sha256Digest::from_slice(&row.get::<_, Vec<u8>>("sha256")),
    }))
}

pub(super) async fn has(query: &impl Query, run: RunId, kind: ArtifactKind) -> Result<bool, DbError> {
    Ok(find(query, run, kind).await?.is_some())
}

/// A URL for an apply to read the approved plan or its lock file.
pub async fn for_apply(
    deps: &Deps,
    caller: &ExecutorCaller,
    kind: ArtifactKind,
) -> Result<Presigned, RunError> {
    if caller.phase != RunPhase::Apply || !matches!(kind, ArtifactKind::PlanFile | ArtifactKind::LockFile) {
        return Err(RunError::NotFound("artifact for this phase"));
    }
    let conn = deps.db.conn().await?;
    let run = store::find(&conn, Some(caller.business_unit_id), caller.run_id).await?;
    let run = run.ok_or(RunError::NotFound("run"))?;
    let wanted = match kind {
        ArtifactKind::PlanFile => run.plan_sha256,
        _ => run.lock_file_sha256,
    };
    let found = find(&conn, caller.run_id, kind).await?.filter(|found| found.sha256 == wanted);
    drop(conn);
    let found = found.ok_or(RunError::NotFound("artifact"))?;
    Ok(deps.blobs.presign_get(&found.key, deps.limits.download_url_age).await?)
}
