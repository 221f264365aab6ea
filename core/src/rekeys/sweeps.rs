//! The work: batch by batch, each in a transaction of its own.

use std::time::{Duration, Instant};

use super::model::RekeyStatus;
use super::store::{self, Batch, Running, SealedRow, Turn};
use super::{RekeyError, service};
use crate::Deps;
use crate::access::Actor;
use crate::audit::Action;
use crate::db::{Conn, Tx};
use crate::secrets::{Keyring, SealError};

/// Rows in one transaction. Whoever wants to write one of them waits for the batch at most.
const BATCH: i64 = 100;
/// How long one sweep works; the next one goes on.
const SWEEP_TIME: Duration = Duration::from_secs(20);
/// Passes over the columns in one sweep. What is locked for long is left to the next sweep.
const PASSES: usize = 2;
/// How long after the last new value the last look is. A transaction that read an old value may write it into another row
/// for as long as it lives, and none lives this long.
const SETTLED_AFTER_SECONDS: i64 = 30;

/// Goes on with the job that is under way, if there is one. Returns how many values were sealed again.
pub async fn reseal(deps: &Deps) -> Result<usize, RekeyError> {
    let mut conn = deps.db.conn().await?;
    let Some(job) = store::find_running(&conn).await? else { return Ok(0) };
    if job.key_id != deps.keys.key_id() {
        let why = "the reconciler was not given the current root's keys yet: deploy it with them";
        store::note(&conn, job.id, why).await?;
        return Ok(0);
    }
    store::ensure_columns(&conn, job.id).await?;
    let until = Instant::now() + SWEEP_TIME;
    let mut resealed = 0;
    for _ in 0..PASSES {
        while let Some(done) = step(&mut conn, &deps.keys, &job).await? {
            resealed += done;
            if Instant::now() > until {
                return Ok(resealed);
            }
        }
        if judge(&mut conn, &job).await? {
            break;
        }
    }
    Ok(resealed)
}

/// One batch of one column: how many values were sealed again. `None` if this pass has no more work.
async fn step(conn: &mut Conn, keys: &Keyring, job: &Running) -> Result<Option<usize>, RekeyError> {
    let tx = conn.begin().await?;
    let Some(turn) = store::take_turn(&tx, job.id).await? else { return Ok(None) };
    let rows = store::take_rows(&tx, &turn, &prefix(job), BATCH).await?;
    let batch = reseal_rows(&tx, keys, &turn, &rows).await?;
    store::advance(&tx, job.id, turn.column, &batch).await?;
    tx.commit().await?;
    Ok(Some(usize::try_from(batch.resealed).unwrap_or(usize::MAX)))
}

async fn reseal_rows(
    tx: &Tx<'_>,
    keys: &Keyring,
    turn: &Turn,
    rows: &[SealedRow],
) -> Result<Batch, RekeyError> {
    let (mut ids, mut old, mut new) = (Vec::new(), Vec::new(), Vec::new());
    let mut batch = Batch { last: rows.last().map(|row| row.id), ..Batch::default() };
    batch.is_end = i64::try_from(rows.len()).is_ok_and(|rows| rows < BATCH);
    for row in rows {
        let place = turn.column.place(row.place);
        let fresh = keys
            .open(turn.column.domain, place, &row.sealed)
            .and_then(|opened| keys.seal(turn.column.domain, place, &opened));
        match fresh {
            Ok(sealed) => {
                ids.push(row.id);
                old.push(row.sealed.as_str());
                new.push(sealed);
            }
            // Named in the progress; the others go on.
            Err(SealError::Unreadable(_)) => batch.unreadable.push(row.id),
            Err(error) => return Err(error.into()),
        }
    }
    let written = store::put(tx, turn.column, &ids, &old, &new).await?;
    batch.resealed = i64::try_from(written).unwrap_or(i64::MAX);
    Ok(batch)
}

/// Looks whether everything is done. `false`: another pass has work.
async fn judge(conn: &mut Conn, job: &Running) -> Result<bool, RekeyError> {
    let tx = conn.begin().await?;
    if !store::lock_to_judge(&tx, job.id).await? || store::has_open_columns(&tx, job.id).await? {
        return Ok(true);
    }
    store::count(&tx, job.id, &prefix(job)).await?;
    let is_over = store::begin_again(&tx, job.id).await? == 0;
    if is_over && store::is_settled(&tx, job.id, SETTLED_AFTER_SECONDS).await? {
        end(&tx, job).await?;
    }
    tx.commit().await?;
    Ok(is_over)
}

/// What is left cannot be opened with any key of the ring.
async fn end(tx: &Tx<'_>, job: &Running) -> Result<(), RekeyError> {
    let status =
        if store::has_unreadable(tx, job.id).await? { RekeyStatus::Failed } else { RekeyStatus::Done };
    if store::finish(tx, job.id, status).await? {
        service::record(tx, Actor::System, Action::RekeyEnd, job.id, &job.key_id, status).await?;
    }
    Ok(())
}

/// What values begin with that need no work.
fn prefix(job: &Running) -> String {
    [&job.key_id, ":"].concat()
}
