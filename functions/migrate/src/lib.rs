//! Brings the database to this version, once per deploy: migrations, then the functions' roles with their grants. Refuses a
//! deploy that leaves out a root key which values are still sealed with.
//!
//! Never run on a request path. Running it again changes nothing.

use plumbline_core::db::{Db, DbError, Query as _, migrate};
use plumbline_core::rekeys;
use serde::Serialize;

/// The roles that grants are given to, one per function.
pub const ROLES: [&str; 8] = [
    "plumbline_api",
    "plumbline_tfstate",
    "plumbline_signin",
    "plumbline_callback",
    "plumbline_worker",
    "plumbline_outbound",
    "plumbline_reconciler",
    "plumbline_migrate",
];

/// The statements that make the roles and give them what they need.
pub const GRANTS: &str = include_str!("grants.sql");

// Roles belong to the cluster, so a local one where we are a plain owner keeps working without them.
const MAY_CREATE_ROLES: &str = "SELECT rolsuper OR rolcreaterole FROM pg_roles WHERE rolname = current_user";

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Report {
    /// Migrations that were missing.
    pub migrations_applied: usize,
    /// Whether roles and grants were brought up to date: not where the owner may not create roles.
    pub grants_applied: bool,
}

/// Applies what is missing.
pub async fn handle(db: &Db) -> Result<Report, DbError> {
    let mut conn = db.conn().await?;
    let migrations_applied = migrate(&mut conn).await?;
    let grants_applied = conn.query_one(MAY_CREATE_ROLES, &[]).await?.get(0);
    if grants_applied {
        let tx = conn.begin().await?;
        tx.batch(GRANTS).await?;
        tx.commit().await?;
    } else {
        tracing::warn!(
            "this role may not create roles: the functions' roles and grants were left as they are"
        );
    }
    Ok(Report { migrations_applied, grants_applied })
}

/// The names of the root keys that the functions of this deploy are given, and of those that are lost for good.
pub const ROOT_KEY_IDS: &str = "PLUMBLINE_ROOT_KEY_IDS";

/// Refuses to go on where a value is sealed under none of these root keys, separated by blanks. It is names that are asked
/// for: no key is needed here.
pub async fn check_roots(db: &Db, key_ids: Option<&str>) -> anyhow::Result<()> {
    let Some(key_ids) = key_ids else {
        tracing::warn!("{ROOT_KEY_IDS} is not set: nobody looks whether a root key was taken away too early");
        return Ok(());
    };
    let known: Vec<&str> = key_ids.split_whitespace().collect();
    Ok(rekeys::service::check_roots(&db.conn().await?, &known).await?)
}
