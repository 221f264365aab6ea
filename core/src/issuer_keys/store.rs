//! SQL of the issuer's keys.

use std::time::Duration;

use chrono::{DateTime, Utc};
use uuid::Uuid;

use super::{IssuerKeyStatus, IssuerKeyView, Jwk, RsaPublicKey};
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::IssuerKeyId;

const PUBLISHED: &str = "
    SELECT id, modulus, exponent FROM issuer_keys
    WHERE published_until IS NULL OR published_until > (SELECT plumbline_now()) ORDER BY id";

/// The public halves of all keys that verifiers should know.
pub(super) async fn published(query: &impl Query) -> Result<Vec<Jwk>, DbError> {
    let jwk = |row: &Row| Jwk {
        kty: "RSA".into(),
        usage: "sig".into(),
        alg: "RS256".into(),
        kid: row.get("id"),
        n: row.get("modulus"),
        e: row.get("exponent"),
    };
    Ok(query.query(PUBLISHED, &[]).await?.iter().map(jwk).collect())
}

/// The key that signs, as it is stored.
pub(super) struct StoredKey {
    pub id: IssuerKeyId,
    pub private_sealed: Option<String>,
    pub kms_key: Option<String>,
}

const FIND_SIGNING: &str = "
    SELECT id, private_sealed, kms_key FROM issuer_keys WHERE signs_since IS NOT NULL AND retired_at IS NULL";

pub(super) async fn find_signing(query: &impl Query) -> Result<Option<StoredKey>, DbError> {
    let row = query.query_opt(FIND_SIGNING, &[]).await?;
    Ok(row.map(|row| StoredKey {
        id: row.get("id"),
        private_sealed: row.get("private_sealed"),
        kms_key: row.get("kms_key"),
    }))
}

const HAS_NEXT: &str = "SELECT 1 FROM issuer_keys WHERE signs_since IS NULL";

pub(super) async fn has_next(query: &impl Query) -> Result<bool, DbError> {
    Ok(query.query_opt(HAS_NEXT, &[]).await?.is_some())
}

/// A key to store.
pub(super) struct NewKey {
    pub id: IssuerKeyId,
    pub public: RsaPublicKey,
    pub private_sealed: Option<String>,
    pub kms_key: Option<String>,
}

const INSERT: &str = "
    INSERT INTO issuer_keys (id, modulus, exponent, private_sealed, kms_key, signs_since)
    VALUES ($1, $2, $3, $4, $5, CASE WHEN $6 THEN plumbline_now() END) ON CONFLICT DO NOTHING";

/// Whether there was none in this place: `signs`, or the next one.
pub(super) async fn insert(tx: &Tx<'_>, new: &NewKey, signs: bool) -> Result<bool, DbError> {
    let RsaPublicKey { modulus, exponent } = &new.public;
    let params: [&dyn crate::db::Param; 6] =
        [&new.id, modulus, exponent, &new.private_sealed, &new.kms_key, &signs];
    Ok(tx.execute(INSERT, &params).await? == 1)
}

const KMS_KEYS: &str = "SELECT kms_key FROM issuer_keys WHERE kms_key IS NOT NULL";

/// Keys of a KMS that were published here at some time.
pub(super) async fn kms_keys(query: &impl Query) -> Result<Vec<String>, DbError> {
    Ok(query.query(KMS_KEYS, &[]).await?.iter().map(|row| row.get("kms_key")).collect())
}

// Whoever waits here sees afterwards what the other rotation did.
const LOCK: &str = "SELECT id FROM issuer_keys WHERE retired_at IS NULL ORDER BY id FOR UPDATE";

/// Keeps other rotations away until the transaction ends. Readers do not wait.
pub(super) async fn lock(tx: &Tx<'_>) -> Result<(), DbError> {
    tx.execute(LOCK, &[]).await?;
    Ok(())
}

macro_rules! shown {
    () => {
        "id, kms_key, created_at, signs_since, retired_at, published_until"
    };
}

fn view(row: &Row) -> IssuerKeyView {
    let (signs_since, retired_at): (Option<DateTime<Utc>>, Option<DateTime<Utc>>) =
        (row.get("signs_since"), row.get("retired_at"));
    let status = match (signs_since, retired_at) {
        (_, Some(_)) => IssuerKeyStatus::Retired,
        (Some(_), None) => IssuerKeyStatus::Signing,
        (None, None) => IssuerKeyStatus::Next,
    };
    IssuerKeyView {
        kid: row.get("id"),
        status,
        kms_key: row.get("kms_key"),
        created_at: row.get("created_at"),
        signs_since,
        retired_at,
        published_until: row.get("published_until"),
    }
}

// Its private half goes: it will never sign again.
const RETIRE: &str = concat!(
    "UPDATE issuer_keys SET retired_at = clock.at, published_until = clock.at + make_interval(secs => $1),
         private_sealed = NULL
     FROM (SELECT plumbline_now() AS at) AS clock WHERE signs_since IS NOT NULL AND retired_at IS NULL RETURNING ",
    shown!()
);

/// Lets the key that signs sign no more.
pub(super) async fn retire_signing(
    tx: &Tx<'_>,
    published_for: Duration,
) -> Result<Option<IssuerKeyView>, DbError> {
    Ok(tx.query_opt(RETIRE, &[&published_for.as_secs_f64()]).await?.as_ref().map(view))
}

const PROMOTE: &str = concat!(
    "UPDATE issuer_keys SET signs_since = plumbline_now() WHERE signs_since IS NULL RETURNING ",
    shown!()
);

/// Lets the next key sign.
pub(super) async fn promote_next(tx: &Tx<'_>) -> Result<Option<IssuerKeyView>, DbError> {
    Ok(tx.query_opt(PROMOTE, &[]).await?.as_ref().map(view))
}

const NEXT_IS_KNOWN: &str = "
    SELECT created_at <= plumbline_now() - make_interval(secs => $1) AS is_known
    FROM issuer_keys WHERE signs_since IS NULL";

/// Whether the next key has been published for so long; `None` if there is none.
pub(super) async fn next_is_known(query: &impl Query, lead: Duration) -> Result<Option<bool>, DbError> {
    let row = query.query_opt(NEXT_IS_KNOWN, &[&lead.as_secs_f64()]).await?;
    Ok(row.map(|row| row.get("is_known")))
}

const LIST: &str = concat!(
    "SELECT ",
    shown!(),
    " FROM issuer_keys WHERE $1::uuid IS NULL OR id < $1 ORDER BY id DESC LIMIT $2"
);

pub(super) async fn list(
    query: &impl Query,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<IssuerKeyView>, DbError> {
    Ok(query.query(LIST, &[&before, &limit]).await?.iter().map(view).collect())
}

// A key of a KMS is remembered, or it would be taken for one that has never signed.
const FORGET: &str = "
    DELETE FROM issuer_keys
    WHERE kms_key IS NULL AND published_until < (SELECT plumbline_now()) - interval '30 days'";

/// Removes those that have long been published no more.
pub(super) async fn forget(query: &impl Query) -> Result<u64, DbError> {
    query.execute(FORGET, &[]).await
}
