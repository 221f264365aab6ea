//! SQL of Git credentials.

use serde_json::json;
use uuid::Uuid;

use super::model::{GitCredential, GitCredentialKind, MaskedSecret};
use super::rules::Settings;
use crate::access::Scope;
use crate::db::{DbError, Query, Row, Tx};
use crate::ids::{BusinessUnitId, GitCredentialId, UserId};
use crate::workspaces::Transport;

/// A credential with its sealed secret.
pub(super) struct Stored {
    pub shown: GitCredential,
    pub secret_sealed: String,
}

macro_rules! select {
    ($rest:literal) => {
        concat!(
            "SELECT id, business_unit_id, name, kind, host, path_prefix, username, public_key, host_keys, app_id,
                    installation_id, api_url, secret_sealed, masked_tail, test_repo_url, last_used_at, version,
                    created_at, updated_at
             FROM git_credentials ",
            $rest
        )
    };
}

fn stored(row: &Row) -> Result<Stored, DbError> {
    let unknown = |column: &str| DbError::Row(format!("git_credentials.{column} has an unknown value"));
    Ok(Stored {
        shown: GitCredential {
            id: row.get("id"),
            business_unit_id: row.get("business_unit_id"),
            name: row.get("name"),
            kind: GitCredentialKind::parse(row.get("kind")).ok_or_else(|| unknown("kind"))?,
            host: row.get("host"),
            path_prefix: row.get("path_prefix"),
            username: row.get("username"),
            secret: MaskedSecret { configured: true, masked_tail: row.get("masked_tail") },
            public_key: row.get("public_key"),
            host_keys: serde_json::from_value(row.get("host_keys")).map_err(|_| unknown("host_keys"))?,
            app_id: row.get("app_id"),
            installation_id: row.get("installation_id"),
            api_url: row.get("api_url"),
            test_repo_url: row.get("test_repo_url"),
            last_used_at: row.get("last_used_at"),
            version: row.get("version"),
            created_at: row.get("created_at"),
            updated_at: row.get("updated_at"),
        },
        secret_sealed: row.get("secret_sealed"),
    })
}

/// The word for a transport in the database.
fn word(transport: Transport) -> &'static str {
    match transport {
        Transport::Ssh => "ssh",
        // A path on this machine has no credential: no row says so.
        Transport::Http | Transport::Local => "https",
    }
}

const FIND: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2)");

pub(super) async fn find(
    query: &impl Query,
    scope: Scope,
    id: GitCredentialId,
) -> Result<Option<Stored>, DbError> {
    query.query_opt(FIND, &[&id, &scope.unit()]).await?.as_ref().map(stored).transpose()
}

const LOCK: &str = select!("WHERE id = $1 AND ($2::uuid IS NULL OR business_unit_id = $2) FOR NO KEY UPDATE");

pub(super) async fn lock(tx: &Tx<'_>, scope: Scope, id: GitCredentialId) -> Result<Option<Stored>, DbError> {
    tx.query_opt(LOCK, &[&id, &scope.unit()]).await?.as_ref().map(stored).transpose()
}

const LIST: &str = select!(
    "WHERE ($1::uuid IS NULL OR business_unit_id = $1) AND ($2::uuid IS NULL OR id < $2)
     ORDER BY id DESC LIMIT $3"
);

pub(super) async fn list(
    query: &impl Query,
    scope: Scope,
    before: Option<Uuid>,
    limit: i64,
) -> Result<Vec<GitCredential>, DbError> {
    let rows = query.query(LIST, &[&scope.unit(), &before, &limit]).await?;
    rows.iter().map(|row| Ok(stored(row)?.shown)).collect()
}

// Never all units: a credential is for its own alone.
const OF_HOST: &str = select!(
    "WHERE business_unit_id = $1 AND transport = $2 AND host = $3 ORDER BY length(path_prefix) DESC, id LIMIT $4"
);

/// The credentials of one unit for one host, longest prefix first.
pub(super) async fn of_host(
    query: &impl Query,
    unit: BusinessUnitId,
    transport: Transport,
    host: &str,
    limit: i64,
) -> Result<Vec<Stored>, DbError> {
    let rows = query.query(OF_HOST, &[&unit, &word(transport), &host, &limit]).await?;
    rows.iter().map(stored).collect()
}

pub(super) async fn insert(
    tx: &Tx<'_>,
    id: GitCredentialId,
    unit: BusinessUnitId,
    created_by: Option<UserId>,
    settings: &Settings,
    secret_sealed: &str,
) -> Result<(), DbError> {
    let tail = settings.secret.as_ref().and_then(|secret| secret.masked_tail.clone());
    tx.execute(
        include_str!("sql/insert.sql"),
        &[
            &id,
            &unit,
            &settings.name,
            &settings.kind.as_str(),
            &word(settings.kind.transport()),
            &settings.host,
            &settings.path_prefix,
            &settings.username,
            &settings.public_key,
            &json!(settings.host_keys),
            &settings.app_id,
            &settings.installation_id,
            &settings.api_url,
            &secret_sealed,
            &tail,
            &created_by,
        ],
    )
    .await?;
    Ok(())
}

/// Stores an edit. `secret_sealed` is `None` where the secret stays.
pub(super) async fn update(
    tx: &Tx<'_>,
    id: GitCredentialId,
    settings: &Settings,
    secret_sealed: Option<String>,
) -> Result<(), DbError> {
    let tail = settings.secret.as_ref().and_then(|secret| secret.masked_tail.clone());
    tx.execute(
        include_str!("sql/update.sql"),
        &[
            &id,
            &settings.name,
            &settings.path_prefix,
            &settings.username,
            &settings.public_key,
            &json!(settings.host_keys),
            &settings.app_id,
            &settings.installation_id,
            &settings.api_url,
            &secret_sealed,
            &tail,
        ],
    )
    .await?;
    Ok(())
}

const DELETE: &str = "DELETE FROM git_credentials WHERE id = $1";

pub(super) async fn delete(tx: &Tx<'_>, id: GitCredentialId) -> Result<(), DbError> {
    tx.execute(DELETE, &[&id]).await?;
    Ok(())
}

const REMEMBER: &str = "UPDATE git_credentials SET test_repo_url = $2 WHERE id = $1";

pub(super) async fn remember_test(tx: &Tx<'_>, id: GitCredentialId, repo_url: &str) -> Result<(), DbError> {
    tx.execute(REMEMBER, &[&id, &repo_url]).await?;
    Ok(())
}

// Once a minute at most: a hundred runs that begin together must not wait for one row.
const USED: &str = "
    UPDATE git_credentials SET last_used_at = plumbline_now()
    WHERE id = $1 AND (last_used_at IS NULL OR last_used_at < plumbline_now() - interval '1 minute')";

pub(super) async fn used(tx: &Tx<'_>, id: GitCredentialId) -> Result<(), DbError> {
    tx.execute(USED, &[&id]).await?;
    Ok(())
}
