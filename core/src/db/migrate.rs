//! Forward-only migrations, embedded in the binary. Run by `migrate` and by the emulator, never by a request path.

use super::{Conn, DbError, Query};

/// One migration file.
#[derive(Clone, Copy, Debug)]
pub struct Migration {
    /// Rises.
    pub version: i32,
    /// The file's name without number and ending.
    pub name: &'static str,
    /// What it does.
    pub sql: &'static str,
}

macro_rules! migrations {
    ($($version:literal $name:literal;)*) => {
        /// Every migration, in order.
        pub const MIGRATIONS: &[Migration] = &[$(Migration {
            version: $version,
            name: $name,
            sql: include_str!(concat!("../../../migrations/", $version, "_", $name, ".sql")),
        }),*];
    };
}

migrations! {
    1001 "foundation";
    1002 "tenancy";
    1003 "queue";
    1004 "workspaces_and_runs";
    1005 "executors";
    1006 "tfstate";
    1007 "audit";
    1008 "config";
    1009 "variables";
    1010 "identity";
    1011 "cloud_accounts";
    1012 "git_credentials";
    1013 "api_keys";
    1014 "rekeys";
    1015 "oidc";
    1016 "issuer";
    1017 "run_secret_retention";
    1018 "resources";
    1019 "state_stores";
    1020 "state_rules";
    1021 "audit_cost";
}

const CREATE_TABLE: &str = "
    CREATE TABLE IF NOT EXISTS schema_migrations (
        version    integer PRIMARY KEY,
        name       text NOT NULL,
        applied_at timestamptz NOT NULL DEFAULT clock_timestamp()
    )";
const LOCK_TABLE: &str = "LOCK TABLE schema_migrations IN ACCESS EXCLUSIVE MODE";
const APPLIED: &str = "SELECT version FROM schema_migrations ORDER BY version";
const RECORD: &str = "INSERT INTO schema_migrations (version, name) VALUES ($1, $2)";

/// Applies what is missing, each migration in its own transaction, and returns how many were applied. Two migrators
/// at once are safe: the second waits for the first and finds nothing to do.
pub async fn migrate(conn: &mut Conn) -> Result<usize, DbError> {
    conn.batch(CREATE_TABLE).await?;
    let mut applied = 0;
    for migration in MIGRATIONS {
        let tx = conn.begin().await?;
        tx.batch(LOCK_TABLE).await?;
        let known = tx.query(APPLIED, &[]).await?;
        if known.iter().any(|row| row.get::<_, i32>(0) == migration.version) {
            continue;
        }
        tx.batch(migration.sql).await?;
        tx.execute(RECORD, &[&migration.version, &migration.name]).await?;
        tx.commit().await?;
        tracing::info!(migration.version, migration.name, "migration applied");
        applied += 1;
    }
    Ok(applied)
}

/// The migrations that this binary knows and the database lacks.
pub async fn pending_migrations(query: &impl Query) -> Result<Vec<i32>, DbError> {
    let known: Vec<i32> = query.query(APPLIED, &[]).await?.iter().map(|row| row.get(0)).collect();
    Ok(MIGRATIONS
        .iter()
        .map(|migration| migration.version)
        .filter(|version| !known.contains(version))
        .collect())
}
