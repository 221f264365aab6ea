//! Logs of steps: appended with offsets while they grow, in the object store once the run has ended.

use serde_json::json;

use super::{LogPage, RunError, reading, store};
use crate::Deps;
use crate::access::{Ctx, Permission};
use crate::db::{DbError, Query};
use crate::executors::ExecutorCaller;
use crate::ids::{BlobId, RunId};

/// Longest text of one answer, in bytes.
const PAGE_BYTES_MAX: i64 = 256 << 10;
/// What a log may have beyond its limit: the note about what was cut, and the last chunk.
const SLACK_BYTES: i64 = 1 << 20;

const APPEND: &str = include_str!("sql/append_log.sql");
const LENGTH: &str = "SELECT log_bytes FROM run_steps WHERE run_id = $1 AND position = $2 AND phase = $3";

/// Appends a chunk and returns where the next one begins. A repeated chunk is accepted once; a gap is refused.
pub async fn append(
    deps: &Deps,
    caller: &ExecutorCaller,
    position: i16,
    offset: i64,
    bytes: &[u8],
) -> Result<i64, RunError> {
    if bytes.len() > deps.limits.log_chunk_bytes_max {
        return Err(RunError::Step { position, reason: "the chunk is too long" });
    }
    if !caller.lease_held {
        return Err(RunError::LeaseLost);
    }
    let end = offset.saturating_add(i64::try_from(bytes.len()).unwrap_or(i64::MAX));
    let limit = i64::try_from(deps.limits.step_log_bytes_max).unwrap_or(i64::MAX - SLACK_BYTES) + SLACK_BYTES;
    if end > limit {
        return Err(RunError::Step { position, reason: "the log is too long" });
    }
    let phase = super::tasks::step_phase(caller.phase).as_str();
    let conn = deps.db.conn().await?;
    if bytes.is_empty() {
        return Ok(offset);
    }
    let written = conn
        .query_opt(
            APPEND,
            &[&caller.run_id, &position, &phase, &offset, &bytes, &caller.lease.task_id, &caller.lease.token],
        )
        .await?;
    if let Some(row) = written {
        return Ok(row.get(0));
    }
    let length = conn.query_opt(LENGTH, &[&caller.run_id, &position, &phase]).await?;
    let length: i64 = length.ok_or(RunError::NotFound("step of this phase"))?.get(0);
    if !crate::executors::service::still_holds(&conn, caller).await? {
        return Err(RunError::LeaseLost);
    }
    if end <= length { Ok(length) } else { Err(RunError::LogGap { expected: length }) }
}

const STEP: &str = "
    SELECT s.attempt, s.log_bytes, s.status IN ('succeeded', 'failed', 'skipped') AS closed, b.key
    FROM run_steps s LEFT JOIN blobs b ON b.id = s.log_blob_id
    WHERE s.run_id = $1 AND s.position = $2";
const CHUNKS: &str = "
    SELECT offset_bytes, bytes FROM log_chunks
    WHERE run_id = $1 AND position = $2 AND attempt = $3 AND offset_bytes + length(bytes) > $4
      AND offset_bytes < $5
    ORDER BY offset_bytes";

/// A piece of a step's log from an offset on: only what is new.
pub async fn read(
    deps: &Deps,
    ctx: &Ctx,
    id: RunId,
    position: i16,
    offset: i64,
    limit: Option<i64>,
) -> Result<LogPage, RunError> {
    ctx.require(Permission::ReadLogs)?;
    let conn = deps.db.conn().await?;
    let run = store::find(&conn, ctx.scope.unit(), id).await?.ok_or(RunError::NotFound("run"))?;
    let step = conn.query_opt(STEP, &[&id, &position]).await?.ok_or(RunError::NotFound("step"))?;
    reading::record(&conn, &run.run, ctx, json!({ "log": position })).await?;
    let length: i64 = step.get("log_bytes");
    let closed: bool = step.get("closed");
    let from = offset.clamp(0, length);
    let to = length.min(from + limit.unwrap_or(PAGE_BYTES_MAX).clamp(1, PAGE_BYTES_MAX));
    let bytes = match step.get::<_, Option<String>>("key") {
        Some(key) => {
            drop(conn);
            deps.blobs.get_part(&key, from.unsigned_abs()..to.unsigned_abs()).await?.into()
        }
        None => live(&conn, id, position, step.get("attempt"), from, to).await?,
    };
    let at_end = from + i64::try_from(bytes.len()).unwrap_or(0) >= length && closed;
    let whole = if at_end { bytes.len() } else { end_of_last_character(&bytes) };
    let next_offset = from + i64::try_from(whole).unwrap_or(0);
    Ok(LogPage {
        position,
        offset: from,
        next_offset,
        text: String::from_utf8_lossy(&bytes[..whole]).into_owned(),
        complete: closed && next_offset >= length,
    })
}

async fn live(
    query: &impl Query,
    id: RunId,
    position: i16,
    attempt: i32,
    from: i64,
    to: i64,
) -> Result<Vec<u8>, DbError> {
    let mut out = Vec::new();
    for row in query.query(CHUNKS, &[&id, &position, &attempt, &from, &to]).await? {
        let bytes: Vec<u8> = row.get("bytes");
        out.extend_from_slice(slice(&bytes, row.get("offset_bytes"), from, to));
    }
    Ok(out)
}

/// The part of `bytes`, which begin at `start` of the log, that lies in `from..to`.
fn slice(bytes: &[u8], start: i64, from: i64, to: i64) -> &[u8] {
    let index = |at: i64| usize::try_from(at - start).unwrap_or(0).min(bytes.len());
    let (from, to) = (index(from), index(to));
    &bytes[from.min(to)..to]
}

/// Where a page must end so that no character is cut in two: a character has at most four bytes.
fn end_of_last_character(bytes: &[u8]) -> usize {
    for back in 1..=bytes.len().min(3) {
        let byte = bytes[bytes.len() - back];
        let width = match byte {
            0xc0..=0xdf => 2,
            0xe0..=0xef => 3,
            0xf0..=0xf7 => 4,
            0x80..=0xbf => continue,
            _ => 1,
        };
        return if width > back { bytes.len() - back } else { bytes.len() };
    }
    bytes.len()
}

const TO_COMPACT: &str = "
    SELECT s.run_id, s.position, s.attempt, s.log_bytes, s.business_unit_id
    FROM run_steps s JOIN runs r ON r.id = s.run_id
    WHERE s.log_bytes > 0 AND s.log_blob_id IS NULL AND r.completed_at IS NOT NULL
    ORDER BY r.completed_at LIMIT $1";
const NEXT_CHUNKS: &str = "
    SELECT bytes FROM log_chunks
    WHERE run_id = $1 AND position = $2 AND attempt = $3 AND offset_bytes >= $4 ORDER BY offset_bytes LIMIT 16";
const MOVED: &str = include_str!("sql/log_moved.sql");

/// Moves logs of ended runs into the object store and drops their chunks. Returns how many were moved.
pub async fn compact(deps: &Deps, batch: i64) -> Result<usize, RunError> {
    let conn = deps.db.conn().await?;
    let due = conn.query(TO_COMPACT, &[&batch]).await?;
    let mut moved = 0;
    for step in &due {
        let (run, position, attempt): (RunId, i16, i32) =
            (step.get("run_id"), step.get("position"), step.get("attempt"));
        let unit: crate::ids::BusinessUnitId = step.get("business_unit_id");
        let log = whole(&conn, run, position, attempt).await?;
        // Another sweep was faster, and has removed the chunks that we were reading.
        if i64::try_from(log.len()).unwrap_or(i64::MAX) != step.get::<_, i64>("log_bytes") {
            continue;
        }
        let key = format!("runs/{unit}/{run}/logs/{position}-{attempt}");
        let sha256 = crate::digest::Sha256Digest::of(&log);
        let size = i64::try_from(log.len()).unwrap_or(i64::MAX);
        // Two sweeps at once write the same bytes under the same key: the second write changes nothing.
        deps.blobs.put(&key, log.into(), "text/plain; charset=utf-8").await?;
        let digest: &[u8] = &sha256.0;
        let id: BlobId = deps.ids.mint();
        let done =
            conn.execute(MOVED, &[&run, &position, &attempt, &id, &unit, &key, &size, &digest]).await?;
        moved += usize::from(done > 0);
    }
    Ok(moved)
}

/// All chunks of a log, read a few at a time: a log is long enough without a second copy of it.
async fn whole(query: &impl Query, run: RunId, position: i16, attempt: i32) -> Result<Vec<u8>, DbError> {
    let mut log = Vec::new();
    loop {
        let next = i64::try_from(log.len()).unwrap_or(i64::MAX);
        let rows = query.query(NEXT_CHUNKS, &[&run, &position, &attempt, &next]).await?;
        if rows.is_empty() {
            return Ok(log);
        }
        rows.iter().for_each(|row| log.extend_from_slice(row.get(0)));
    }
}
