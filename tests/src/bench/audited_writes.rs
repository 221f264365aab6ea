//! What the audit log costs the database: the statements of an edit with and without its entry, by 32 clients at once.

use std::time::{Duration, Instant};

use anyhow::Context as _;
use plumbline_core::access::Actor;
use plumbline_core::audit::{self, Action, Entry};
use plumbline_core::db::testing::{CLUSTER_URL_VARIABLE, TestDatabase};
use plumbline_core::db::{Db, DbError, PgMode, Query as _};
use plumbline_core::ids::{BusinessUnitId, WorkspaceId};
use serde_json::json;

use crate::harness::{Report, median};

const CLIENTS: usize = 32;
const UNITS: usize = 20;
/// Rows that are written, in all units together.
const ROWS: usize = 5_000;
const ROUND: Duration = Duration::from_secs(4);
/// Interleaved rounds of each variant; the median counts.
const ROUNDS: usize = 3;
/// One round trip to a database that is not on the same machine. The entry is a round trip more.
const AWAY: Duration = Duration::from_millis(1);

const SEED: &str = "
    INSERT INTO business_units (id, slug, name)
    SELECT md5('unit' || n)::uuid, 'unit-' || n, 'unit' FROM generate_series(1, $1::int8) n;";
const SEED_ROWS: &str = "
    INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
    SELECT md5('row' || n)::uuid, md5('unit' || 1 + n % $1::int8)::uuid, 'net', 'dev', 'global', 'global',
           'https://git.example.com/net.git', n::text
    FROM generate_series(1, $2::int8) n";
const FIND: &str = "SELECT id, business_unit_id FROM workspaces ORDER BY business_unit_id, id";

const LOCK: &str = "SELECT version FROM workspaces WHERE business_unit_id = $1 AND id = $2 FOR NO KEY UPDATE";
const EDIT: &str = "
    UPDATE workspaces SET environment = $3, version = version + 1, updated_at = plumbline_now()
    WHERE business_unit_id = $1 AND id = $2";

/// One way to write.
#[derive(Clone, Copy)]
struct Variant {
    units: usize,
    audited: bool,
    away: Duration,
}

type Row = (WorkspaceId, BusinessUnitId);

/// Measures on a database of its own in the cluster of `make bench`.
pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let cluster_url = std::env::var(CLUSTER_URL_VARIABLE).context("run it with `make bench`")?;
    for (what, units, away) in [
        ("the statements of such an edit alone, over 20 units", UNITS, Duration::ZERO),
        ("the statements alone, one unit", 1, Duration::ZERO),
        ("the statements alone, 20 units, the database 1 ms away", UNITS, AWAY),
        ("the statements alone, one unit, the database 1 ms away", 1, AWAY),
    ] {
        let rates = rates(&cluster_url, units, away).await?;
        report.reported(what, "× without the log", rates.ratio(), rates.beside());
    }
    Ok(())
}

/// Writes per second.
struct Rates {
    plain: f64,
    audited: f64,
}

impl Rates {
    fn ratio(&self) -> f64 {
        self.audited / self.plain
    }

    fn beside(&self) -> String {
        format!("{:.0}/s; {:.0}/s without", self.audited, self.plain)
    }
}

async fn rates(cluster_url: &str, units: usize, away: Duration) -> anyhow::Result<Rates> {
    let database = TestDatabase::create(cluster_url).await?;
    let db = database.pool(CLIENTS, PgMode::Direct)?;
    let (count, rows) = (i64::try_from(units)?, i64::try_from(ROWS)?);
    let conn = db.conn().await?;
    conn.execute(SEED, &[&count]).await?;
    conn.execute(SEED_ROWS, &[&count, &rows]).await?;
    conn.batch("ANALYZE").await?;
    let rows: Vec<Row> = conn.query(FIND, &[]).await?.iter().map(|row| (row.get(0), row.get(1))).collect();
    drop(conn);
    let (mut plain, mut audited) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        plain.push(round(&db, &rows, Variant { units, audited: false, away }).await?);
        audited.push(round(&db, &rows, Variant { units, audited: true, away }).await?);
    }
    db.close();
    database.drop_now().await?;
    Ok(Rates { plain: median(plain), audited: median(audited) })
}

async fn round(db: &Db, rows: &[Row], variant: Variant) -> anyhow::Result<f64> {
    let began = Instant::now();
    let share = rows.len() / variant.units;
    let clients = (0..CLIENTS).map(|client| {
        let of_unit = rows[(client % variant.units) * share..][..share].to_vec();
        let db = db.clone();
        tokio::spawn(async move {
            let mut written = 0_usize;
            while began.elapsed() < ROUND {
                // No two clients of a unit write the same row at once: only the log is what they share.
                let turn = client / variant.units + CLIENTS.div_ceil(variant.units) * written;
                write(&db, of_unit[turn % share], written, variant).await?;
                written += 1;
            }
            Ok::<_, DbError>(written)
        })
    });
    let mut written = 0;
    for client in clients.collect::<Vec<_>>() {
        written += client.await??;
    }
    Ok(written as f64 / began.elapsed().as_secs_f64())
}

/// An edit as the product makes one: look at the row under its lock, change it, and say so last.
async fn write(db: &Db, (id, unit): Row, n: usize, variant: Variant) -> Result<(), DbError> {
    let environment = if n.is_multiple_of(2) { "dev" } else { "prod" };
    let round_trip = async || {
        if variant.away > Duration::ZERO {
            tokio::time::sleep(variant.away).await;
        }
    };
    db.transaction(async |tx| {
        round_trip().await;
        let before: i32 = tx.query_one(LOCK, &[&unit, &id]).await?.get("version");
        round_trip().await;
        tx.execute(EDIT, &[&unit, &id, &environment]).await?;
        round_trip().await;
        if variant.audited {
            let entry = Entry {
                business_unit_id: Some(unit),
                actor: Actor::System,
                action: Action::WorkspaceUpdate,
                resource_type: "workspace",
                resource_id: id.to_string(),
                workspace_id: Some(id),
                run_id: None,
                details: json!({ "before": before, "environment": environment }),
            };
            audit::service::record(tx, &entry).await?;
            round_trip().await;
        }
        Ok(())
    })
    .await
}
