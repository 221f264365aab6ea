//! What a database looks like after all migrations, as text: read from the catalogue rather than from `pg_dump`, whose
//! words change with its version.

use plumbline_core::db::{Connect, Db, DbError, PgMode, Query as _, migrate};

const HEADER: &str = "-- A fresh database after all migrations. Written by `make schema`; a test compares it. Not for running.\n";
const DESCRIBE: &str = include_str!("sql/schema.sql");
const CREATE: &str = "CREATE DATABASE plumbline_schema";
const DROP: &str = "DROP DATABASE IF EXISTS plumbline_schema WITH (FORCE)";

/// The schema of the database.
pub async fn describe(db: &Db) -> Result<String, DbError> {
    let conn = db.conn().await?;
    let mut text = HEADER.to_owned();
    for row in conn.query(DESCRIBE, &[]).await? {
        let object: String = row.get(0);
        text.push('\n');
        for line in object.lines() {
            text.push_str(line.trim_end());
            text.push('\n');
        }
    }
    Ok(text)
}

/// Migrates a fresh database of the cluster and describes it.
pub async fn describe_fresh(cluster_url: &str) -> anyhow::Result<String> {
    let connect = |url: String| Db::new(&Connect { url, pool_size: 1, mode: PgMode::Pooled });
    let cluster = connect(cluster_url.to_owned())?;
    let conn = cluster.conn().await?;
    conn.batch(DROP).await?;
    conn.batch(CREATE).await?;
    let base = cluster_url.rsplit_once('/').map_or(cluster_url, |(base, _)| base);
    let fresh = connect([base, "/plumbline_schema"].concat())?;
    migrate(&mut fresh.conn().await?).await?;
    let text = describe(&fresh).await?;
    fresh.close();
    conn.batch(DROP).await?;
    Ok(text)
}
