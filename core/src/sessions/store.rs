//! SQL of sessions.

use std::time::Duration;

use chrono::{DateTime, Utc};

use super::model::{NamedUnit, Origin, SessionView, Standing};
use super::rules::SessionFacts;
use super::tokens::Presented;
use crate::access::Role;
use crate::db::{DbError, Query, Row, Tx};
use crate::digest::Sha256Digest;
use crate::ids::{SessionId, UserId};
use crate::page::PageRequest;

/// A user, as far as tokens go.
#[derive(Clone)]
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

/// Takes attempts back: they were no guesses.
pub(super) async fn forgive(query: &impl Query, keys: &[String]) -> Result<(), DbError> {
    query.execute(include_str!("sql/forgive.sql"), &[&keys.to_vec()]).await?;
    Ok(())
}

const IS_KNOWN: &str = "
    SELECT EXISTS (
        SELECT 1 FROM users JOIN sessions ON sessions.user_id = users.id
        WHERE users.email = $1 AND sessions.address <<= ($2::text)::inet
          AND sessions.created_at > plumbline_now() - $3 * interval '1 microsecond')";

/// Whether the account was signed in to from the network, not longer ago than the given age.
pub(super) async fn is_known(
    query: &impl Query,
    email: &str,
    network: &str,
    age: Duration,
) -> Result<bool, DbError> {
    Ok(query.query_one(IS_KNOWN, &[&email, &network, &micros(age)]).await?.get(0))
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

/// What somebody proved with who they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum By {
    /// Their password.
    Password,
    /// The identity provider's word.
    Provider,
}

/// Opens a session; `None` if the user changed since they were looked up.
pub(super) async fn open(
    tx: &Tx<'_>,
    id: SessionId,
    person: &Person,
    by: By,
    refresh_token: Sha256Digest,
    age: Duration,
    origin: &Origin,
) -> Result<Option<DateTime<Utc>>, DbError> {
    let token = &refresh_token.0[..];
    let address = origin.address.map(|address| address.to_string());
    let row = tx
        .query_opt(
            include_str!("sql/open.sql"),
            &[
                &id,
                &person.id,
                &person.password_hash,
                &token,
                &micros(age),
                &person.generation,
                &address,
                &origin.user_agent,
                &(by == By::Password),
            ],
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
        must_change_password: row.get("must_change_password"),
        generation: row.get("token_generation"),
        epoch: row.get("epoch"),
        session_live: row.get("session_live"),
        at: row.get("at"),
        unit: row.get::<_, Option<_>>("unit_id").map(|id| NamedUnit {
            id,
            role: row.get::<_, Option<&str>>("unit_role").and_then(Role::parse),
            archived: row.get("unit_archived"),
        }),
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

const END_ALL: &str = "
    UPDATE sessions SET revoked_at = plumbline_now(), revoked_reason = $2
    WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > plumbline_now() AND ($3::uuid IS NULL OR id <> $3)";

/// Ends every session of a person but one. How many there were.
pub(super) async fn end_all(
    tx: &Tx<'_>,
    user: UserId,
    reason: &str,
    but: Option<SessionId>,
) -> Result<u64, DbError> {
    tx.execute(END_ALL, &[&user, &reason, &but]).await
}

const RAISE_GENERATION: &str = "UPDATE users SET token_generation = token_generation + 1 WHERE id = $1";

/// Voids every token of a person, also of sessions that are no rows any more.
pub(super) async fn raise_generation(tx: &Tx<'_>, user: UserId) -> Result<(), DbError> {
    tx.execute(RAISE_GENERATION, &[&user]).await?;
    Ok(())
}

const FIND_OWNED: &str = "
    SELECT 1 FROM sessions
    WHERE id = $1 AND user_id = $2 AND revoked_at IS NULL AND expires_at > plumbline_now()";

/// Whether the person has this session, and it goes on.
pub(super) async fn is_live(tx: &Tx<'_>, id: SessionId, user: UserId) -> Result<bool, DbError> {
    Ok(tx.query_opt(FIND_OWNED, &[&id, &user]).await?.is_some())
}

const LIST: &str = "
    SELECT id, created_at, refreshed_at, expires_at, host(address) AS address, user_agent FROM sessions
    WHERE user_id = $1 AND revoked_at IS NULL AND expires_at > (SELECT plumbline_now())
      AND ($2::uuid IS NULL OR id < $2)
    ORDER BY id DESC LIMIT $3";

/// A person's live sessions, newest first.
pub(super) async fn list(
    query: &impl Query,
    user: UserId,
    current: SessionId,
    page: PageRequest,
) -> Result<Vec<SessionView>, DbError> {
    let rows = query.query(LIST, &[&user, &page.cursor, &(page.limit + 1)]).await?;
    let view = |row: &Row| {
        let id: SessionId = row.get("id");
        SessionView {
            id,
            current: id == current,
            created_at: row.get("created_at"),
            refreshed_at: row.get("refreshed_at"),
            expires_at: row.get("expires_at"),
            address: row.get("address"),
            user_agent: row.get("user_agent"),
        }
    };
    Ok(rows.iter().map(view).collect())
}

// An address is known for as long as a session from there is remembered.
const FORGET: &str = "
    DELETE FROM sessions WHERE expires_at < (SELECT plumbline_now()) - $1 * interval '1 microsecond'";
const FORGET_ATTEMPTS: &str = "
    DELETE FROM login_attempts WHERE window_at < (SELECT plumbline_now()) - interval '1 hour'";

/// Removes what is over for good.
pub(super) async fn forget(query: &impl Query, age: Duration) -> Result<u64, DbError> {
    Ok(query.execute(FORGET, &[&micros(age)]).await? + query.execute(FORGET_ATTEMPTS, &[]).await?)
}
