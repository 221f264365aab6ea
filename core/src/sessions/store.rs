//! SQL of sessions.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::model::Standing;
use super::rules::SessionFacts;
use super::tokens::Presented;
use crate::access::Role;
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{SessionId, UserId};

/// A user, as far as tokens go.
pub(super) struct Person {
    pub id: UserId,
    pub email: String,
    pub display_name: Option<String>,
    pub is_superadmin: bool,
    pub disabled: bool,
    pub password_hash: Option<String>,
    pub generation: i32,
    pub epoch: i32,
    /// The role in the first unit; viewer without one.
    pub role: Role,
}

fn micros(duration: Duration) -> i64 {
    i64::try_from(duration.as_micros()).unwrap_or(i64::MAX)
}

/// Counts an attempt under each key. Gives for each how many there were in its minute and how many seconds of it are
/// left.
pub(super) async fn count_attempt(query: &impl Query, keys: &[String]) -> Result<Vec<(i32, i64)>, DbError> {
    let rows = query.query(include_str!("sql/count_attempt.sql"), &[&keys.to_vec()]).await?;
    Ok(rows.iter().map(|row| (row.get("attempts"), row.get("seconds"))).collect())
}

fn person(row: &Row) -> Person {
    Person {
        id: row.get("id"),
        email: row.get("email"),
        display_name: row.get("display_name"),
        is_superadmin: row.get("is_superadmin"),
        disabled: row.get("disabled"),
        password_hash: row.get("password_hash"),
        generation: row.get("token_generation"),
        epoch: row.get("epoch"),
        role: row.get::<_, Option<&str>>("role").and_then(Role::parse).unwrap_or(Role::Viewer),
    }
}

const FIND_PERSON: &str = "
    SELECT users.id, email, display_name, is_superadmin, disabled_at IS NOT NULL AS disabled, password_hash,
           token_generation, installation.epoch,
           (SELECT role FROM memberships JOIN business_units unit ON unit.id = business_unit_id
            WHERE user_id = users.id AND unit.archived_at IS NULL ORDER BY unit.slug LIMIT 1) AS role
    FROM users JOIN installation ON installation.id = 1 WHERE users.email = $1 OR users.id = $2";

pub(super) async fn find_by_email(query: &impl Query, email: &str) -> Result<Option<Person>, DbError> {
    Ok(query.query_opt(FIND_PERSON, &[&email, &None::<UserId>]).await?.as_ref().map(person))
}

pub(super) async fn find_by_id(query: &impl Query, id: UserId) -> Result<Option<Person>, DbError> {
    Ok(query.query_opt(FIND_PERSON, &[&None::<String>, &Some(id)]).await?.as_ref().map(person))
}

/// Opens a session; `None` if the user changed since they were looked up.
pub(super) async fn open(
    tx: &Tx<'_>,
    id: SessionId,
    person: &Person,
    refresh_token: Sha256Digest,
    age: Duration,
) -> Result<Option<DateTime<Utc>>, DbError> {
    let token = &refresh_token.0[..];
    let row = tx
        .query_opt(
            include_str!("sql/open.sql"),
            &[&id, &person.id, &person.password_hash, &token, &micros(age), &person.generation],
        )
        .await?;
    Ok(row.map(|row| row.get("at")))
}

/// What the database says about an access token.
pub(super) struct Known {
    /// The secret that it names, as it is stored.
    pub sealed: String,
    /// Whether tokens of that secret are accepted.
    pub secret_accepted: bool,
    /// `None`: no such session.
    pub standing: Option<Standing>,
}

/// What the database says about a token's secret, its session's bearer and a unit, in one round trip. `None`: no such
/// secret.
pub(super) async fn known(
    query: &impl Query,
    token: &Presented,
    slug: Option<&str>,
) -> Result<Option<Known>, DbError> {
    let Presented { secret, session, user } = token;
    let row = query.query_opt(include_str!("sql/standing.sql"), &[session, user, &slug, secret]).await?;
    Ok(row.map(|row| Known {
        sealed: row.get("sealed"),
        secret_accepted: row.get("secret_accepted"),
        standing: row.get::<_, Option<String>>("email").map(|email| standing(&row, email)),
    }))
}

fn standing(row: &Row, email: String) -> Standing {
    Standing {
        email,
        is_superadmin: row.get("is_superadmin"),
        disabled: row.get("disabled"),
        generation: row.get("token_generation"),
        epoch: row.get("epoch"),
        session_live: row.get("session_live"),
        at: row.get("at"),
        unit: row
            .get::<_, Option<_>>("unit_id")
            .map(|unit| (unit, row.get::<_, Option<&str>>("unit_role").and_then(Role::parse))),
    }
}

// Two refreshes with one token meet at this lock: the second one sees what the first did.
const LOCK: &str = "
    SELECT user_id, refresh_token_hash = $2 AS current, refresh_sequence, refreshed_at, plumbline_now() AS at,
           revoked_at IS NULL AND expires_at > plumbline_now() AS live
    FROM sessions WHERE id = $1 FOR UPDATE";

pub(super) async fn lock(
    tx: &Tx<'_>,
    id: SessionId,
    presented: Sha256Digest,
) -> Result<Option<(UserId, SessionFacts)>, DbError> {
    let row = tx.query_opt(LOCK, &[&id, &&presented.0[..]]).await?;
    Ok(row.map(|row| {
        let facts = SessionFacts {
            live: row.get("live"),
            current: row.get("current"),
            sequence: row.get("refresh_sequence"),
            refreshed_at: row.get("refreshed_at"),
            at: row.get("at"),
        };
        (row.get("user_id"), facts)
    }))
}

const ROTATE: &str = "
    UPDATE sessions SET refresh_token_hash = $2, refresh_sequence = refresh_sequence + 1,
        refreshed_at = plumbline_now(), expires_at = plumbline_now() + $3 * interval '1 microsecond'
    WHERE id = $1";

/// Replaces the refresh token of a locked session.
pub(super) async fn rotate(
    tx: &Tx<'_>,
    id: SessionId,
    refresh_token: Sha256Digest,
    age: Duration,
) -> Result<(), DbError> {
    tx.execute(ROTATE, &[&id, &&refresh_token.0[..], &micros(age)]).await?;
    Ok(())
}

const END: &str = "
    UPDATE sessions SET revoked_at = plumbline_now(), revoked_reason = $2 WHERE id = $1 AND revoked_at IS NULL";

/// Ends a session. Whether it had not been ended before.
pub(super) async fn end(tx: &Tx<'_>, id: SessionId, reason: &str) -> Result<bool, DbError> {
    Ok(tx.execute(END, &[&id, &reason]).await? == 1)
}

const FORGET: &str = "
    DELETE FROM sessions WHERE expires_at < (SELECT plumbline_now()) - interval '7 days'";
const FORGET_ATTEMPTS: &str = "
    DELETE FROM login_attempts WHERE window_at < (SELECT plumbline_now()) - interval '1 hour'";

/// Removes what is over for good.
pub(super) async fn forget(query: &impl Query) -> Result<u64, DbError> {
    Ok(query.execute(FORGET, &[]).await? + query.execute(FORGET_ATTEMPTS, &[]).await?)
}
