//! For tests only: one database per test, and a clock that tests move.

use std::time::Duration;

use super::{Conn, Connect, Db, DbError, MIGRATIONS, PgMode, Query, migrate};
use crate::digest::Sha256Digest;

/// Names the environment variable with a superuser's URL of a running cluster.
pub const CLUSTER_URL_VARIABLE: &str = "PLUMBLINE_TEST_DATABASE_URL";

/// What is done to a template after its migrations.
#[derive(Clone, Copy, Debug)]
pub struct Preparation<F> {
    /// The text of it: another one makes another template.
    pub text: &'static str,
    /// Does it.
    pub run: F,
}

/// The template's name contains a digest of all that makes it: a change makes another template.
fn template(prepared: &str) -> String {
    let migrations = MIGRATIONS.iter().map(|migration| migration.sql);
    let all: String = migrations.chain([prepared]).collect();
    format!("plumbline_template_{}", &Sha256Digest::of(all.as_bytes()).to_string()[..12])
}

/// A pool that asks its connections whether they live after another time than usual.
pub fn checked_after(connect: &Connect, idle_before_check: Duration) -> Result<Db, DbError> {
    Db::build(connect, tokio_postgres::NoTls, idle_before_check)
}

/// A database of its own, made from a migrated template. Dropped by [`TestDatabase::drop_now`] or with the cluster.
pub struct TestDatabase {
    /// A libpq URL.
    pub url: String,
    name: String,
    admin: Db,
}

fn url_of(cluster: &str, database: &str) -> String {
    let (base, query) = cluster.split_once('?').map_or((cluster, ""), |(base, query)| (base, query));
    let base = base.rsplit_once('/').map_or(base, |(base, _)| base);
    if query.is_empty() { format!("{base}/{database}") } else { format!("{base}/{database}?{query}") }
}

impl TestDatabase {
    /// Creates the database. The first caller of a cluster also makes the template.
    pub async fn create(cluster_url: &str) -> Result<Self, DbError> {
        let nothing = Preparation { text: "", run: async |_: &Db| Ok(()) };
        Self::create_prepared(cluster_url, nothing).await
    }

    /// The same, from a template to which something more was done than its migrations.
    pub async fn create_prepared(
        cluster_url: &str,
        preparation: Preparation<impl AsyncFnOnce(&Db) -> Result<(), DbError>>,
    ) -> Result<Self, DbError> {
        let admin = Db::new(&Connect { url: cluster_url.into(), pool_size: 1, mode: PgMode::Pooled })?;
        let template = template(preparation.text);
        ensure_template(&admin, cluster_url, &template, preparation).await?;
        Self::create_from(admin, cluster_url, &template).await
    }

    /// Creates a database with nothing in it.
    pub async fn create_empty(cluster_url: &str) -> Result<Self, DbError> {
        let admin = Db::new(&Connect { url: cluster_url.into(), pool_size: 1, mode: PgMode::Pooled })?;
        Self::create_from(admin, cluster_url, "template0").await
    }

    async fn create_from(admin: Db, cluster_url: &str, template: &str) -> Result<Self, DbError> {
        let name = format!("test_{}", uuid::Uuid::now_v7().simple());
        admin.conn().await?.batch(&["CREATE DATABASE ", &name, " TEMPLATE ", template].concat()).await?;
        Ok(Self { url: url_of(cluster_url, &name), name, admin })
    }

    /// A pool on the database.
    pub fn pool(&self, pool_size: usize, mode: PgMode) -> Result<Db, DbError> {
        // A machine that runs many tests at once takes its time to sign in.
        let separator = if self.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{separator}connect_timeout=30", self.url);
        Db::new(&Connect { url, pool_size, mode })
    }

    /// Drops the database, ending every connection to it.
    pub async fn drop_now(self) -> Result<(), DbError> {
        self.admin
            .conn()
            .await?
            .batch(&["DROP DATABASE IF EXISTS ", &self.name, " WITH (FORCE)"].concat())
            .await
    }
}

/// Makes the template unless it is there. Processes race for it; the transaction lock lets one of them win.
async fn ensure_template(
    admin: &Db,
    cluster_url: &str,
    template: &str,
    preparation: Preparation<impl AsyncFnOnce(&Db) -> Result<(), DbError>>,
) -> Result<(), DbError> {
    let mut conn = admin.conn().await?;
    let tx = conn.begin().await?;
    tx.batch("SELECT pg_advisory_xact_lock(7210411)").await?;
    let ready = tx.query_opt("SELECT 1 FROM pg_database WHERE datname = $1", &[&template]).await?.is_some();
    if !ready {
        let building = &format!("{template}_new");
        let other = Db::new(&Connect { url: cluster_url.into(), pool_size: 1, mode: PgMode::Pooled })?;
        let side = other.conn().await?;
        side.batch(&["DROP DATABASE IF EXISTS ", building, " WITH (FORCE)"].concat()).await?;
        side.batch(&["CREATE DATABASE ", building].concat()).await?;
        let fresh =
            Db::new(&Connect { url: url_of(cluster_url, building), pool_size: 1, mode: PgMode::Pooled })?;
        migrate(&mut fresh.conn().await?).await?;
        (preparation.run)(&fresh).await?;
        fresh.close();
        // Renaming makes the template appear whole or not at all.
        wait_until_unused(&side, building).await?;
        side.batch(&["ALTER DATABASE ", building, " RENAME TO ", template].concat()).await?;
    }
    tx.commit().await
}

async fn wait_until_unused(conn: &Conn, database: &str) -> Result<(), DbError> {
    for _ in 0..200 {
        let users = conn.query("SELECT 1 FROM pg_stat_activity WHERE datname = $1", &[&database]).await?;
        if users.is_empty() {
            return Ok(());
        }
        tokio::time::sleep(Duration::from_millis(25)).await;
    }
    Err(DbError::Row("the template database is still in use".into()))
}

/// Moves the clock that decides, for every process at once. The offset replaces earlier ones.
pub async fn set_clock_offset(conn: &Conn, offset: Duration) -> Result<(), DbError> {
    conn.batch(&format!(
        "CREATE OR REPLACE FUNCTION plumbline_now() RETURNS timestamptz LANGUAGE sql VOLATILE PARALLEL SAFE
         AS $$ SELECT clock_timestamp() + interval '{} microseconds' $$",
        offset.as_micros()
    ))
    .await
}
