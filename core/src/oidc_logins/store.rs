//! SQL of returns from the provider and of the codes that follow from them.

use std::time::Duration;

use super::rules::CodeFacts;
use crate::db::{DbError, Query, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{SessionId, UserId};

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

// The same return twice meets here: the second finds the row of the first.
const CLAIM: &str = "INSERT INTO oidc_sign_ins (state_hash) VALUES ($1) ON CONFLICT (state_hash) DO NOTHING";

/// Marks a state as used. `false` if it was.
pub(super) async fn claim(query: &impl Query, state: Sha256Digest) -> Result<bool, DbError> {
    Ok(query.execute(CLAIM, &[&&state.0[..]]).await? == 1)
}

/// What a code is bound to.
#[derive(Clone, Copy, Debug)]
pub(super) struct NewCode {
    pub state: Sha256Digest,
    pub user: UserId,
    pub generation: i32,
    pub code: Sha256Digest,
    pub challenge: Option<Sha256Digest>,
    pub age: Duration,
}

const SET_CODE: &str = "
    UPDATE oidc_sign_ins SET user_id = $2, generation = $3, code_hash = $4, cli_challenge = $5,
        code_expires_at = plumbline_now() + $6 * interval '1 microsecond'
    WHERE state_hash = $1 AND code_hash IS NULL";

/// Writes the code of a claimed return. `false` if it has one.
pub(super) async fn set_code(tx: &Tx<'_>, new: &NewCode) -> Result<bool, DbError> {
    let challenge = new.challenge.map(|challenge| challenge.0.to_vec());
    let NewCode { state, user, generation, code, age, .. } = new;
    let written = tx
        .execute(
            SET_CODE,
            &[&&state.0[..], user, generation, &&code.0[..], &challenge.as_deref(), &micros(*age)],
        )
        .await?;
    Ok(written == 1)
}

const FIND_OWNER: &str = "SELECT user_id FROM oidc_sign_ins WHERE code_hash = $1";
// Users come before sign-ins in the order of locks; opening a session asks for this one anyway.
const LOCK_OWNER: &str = "SELECT 1 FROM users WHERE id = $1 FOR KEY SHARE";

/// Whose code it is. They are locked, so that they are there until the transaction ends.
pub(super) async fn lock_owner(tx: &Tx<'_>, code: Sha256Digest) -> Result<Option<UserId>, DbError> {
    let Some(row) = tx.query_opt(FIND_OWNER, &[&&code.0[..]]).await? else { return Ok(None) };
    let owner: UserId = row.get(0);
    Ok(tx.query_opt(LOCK_OWNER, &[&owner]).await?.map(|_| owner))
}

/// A locked code.
#[derive(Clone, Copy, Debug)]
pub(super) struct Code {
    pub generation: i32,
    pub session: Option<SessionId>,
    pub facts: CodeFacts,
}

// Two trades of one code meet at this lock: the second one sees what the first did.
const LOCK_CODE: &str = "
    SELECT generation, session_id, cli_challenge, traded_at IS NOT NULL AS traded,
           code_expires_at <= plumbline_now() AS expired
    FROM oidc_sign_ins WHERE code_hash = $1 FOR UPDATE";

pub(super) async fn lock_code(tx: &Tx<'_>, code: Sha256Digest) -> Result<Option<Code>, DbError> {
    let row = tx.query_opt(LOCK_CODE, &[&&code.0[..]]).await?;
    Ok(row.map(|row| {
        let challenge = row.get::<_, Option<&[u8]>>("cli_challenge").and_then(Sha256Digest::from_slice);
        let facts = CodeFacts { challenge, expired: row.get("expired"), traded: row.get("traded") };
        Code { generation: row.get("generation"), session: row.get("session_id"), facts }
    }))
}

const TRADED: &str = "
    UPDATE oidc_sign_ins SET traded_at = plumbline_now(), session_id = $2 WHERE code_hash = $1";

pub(super) async fn traded(tx: &Tx<'_>, code: Sha256Digest, session: SessionId) -> Result<(), DbError> {
    tx.execute(TRADED, &[&&code.0[..], &session]).await?;
    Ok(())
}

// Kept for as long as the session that came of it may live, so that a second use of its code still ends it; and longer
// than any cookie that a return could be repeated with.
const FORGET: &str = "
    DELETE FROM oidc_sign_ins WHERE created_at < (SELECT plumbline_now()) - $1 * interval '1 microsecond'";

/// Removes what is over for good.
pub(super) async fn forget(query: &impl Query, age: Duration) -> Result<u64, DbError> {
    query.execute(FORGET, &[&micros(age)]).await
}
