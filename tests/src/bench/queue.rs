//! How fast the fair claim is, as a ratio to a plain SKIP LOCKED queue that pgbench drives on the same server.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use anyhow::Context;
use plumbline_core::db::testing::{CLUSTER_URL_VARIABLE, TestDatabase};
use plumbline_core::db::{Db, DbError, PgMode};
use plumbline_core::limits::Limits;
use plumbline_core::tasks::{TaskClass, service};

use crate::harness::{Report, median};
use crate::neighbour;

const CLIENTS: usize = 16;
const DEPTH: usize = 100_000;
const UNITS: usize = 20;
const ROUND: Duration = Duration::from_secs(6);
/// Interleaved rounds of each variant; the median counts.
const ROUNDS: usize = 3;

const SEED: &str = "
    INSERT INTO business_units (id, slug, name)
    SELECT md5('unit' || n)::uuid, 'unit-' || n, 'unit' FROM generate_series(1, {units}) n ON CONFLICT DO NOTHING;
    INSERT INTO queue_units (business_unit_id, class, running_max)
    SELECT id, 'short', 1000000 FROM business_units ON CONFLICT DO NOTHING;
    TRUNCATE tasks, finished_tasks;
    UPDATE queue_units SET running = 0;
    INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, attempts_max, dedupe_key)
    -- Ids rise with time, as the product's do: random ones would write a whole page of the log for every index entry.
    SELECT rising.id, md5('unit' || 1 + n % {units})::uuid, 'short', 'workspace_branches', rising.id, 2, rising.id::text
    FROM generate_series(1, {depth}) n,
         LATERAL (SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id) rising;
    ANALYZE tasks;";

const SEED_PLAIN: &str = "
    DROP TABLE IF EXISTS plain_tasks;
    CREATE TABLE plain_tasks (id bigint PRIMARY KEY, status text NOT NULL DEFAULT 'queued',
        run_after timestamptz NOT NULL DEFAULT now());
    CREATE INDEX ON plain_tasks (run_after, id) WHERE status = 'queued';
    INSERT INTO plain_tasks (id) SELECT n FROM generate_series(1, {depth}) n;
    ANALYZE plain_tasks;";

/// The textbook queue: no units, no caps, no fencing, no history.
const PLAIN: &str = "\
WITH c AS MATERIALIZED (SELECT id FROM plain_tasks WHERE status = 'queued' AND run_after <= now()
ORDER BY run_after, id LIMIT 1 FOR UPDATE SKIP LOCKED)
UPDATE plain_tasks p SET status = 'running' FROM c WHERE p.id = c.id RETURNING p.id \\gset
UPDATE plain_tasks SET status = 'done' WHERE id = :id;
";

/// Measures on a database of its own in the cluster of `make bench`. Needs `pgbench` on the PATH.
pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let cluster_url = std::env::var(CLUSTER_URL_VARIABLE).context("run it with `make bench`")?;
    let database = TestDatabase::create(&cluster_url).await?;
    let db = database.pool(CLIENTS, PgMode::Direct)?;
    let mut rates = [Vec::new(), Vec::new(), Vec::new()];
    for _ in 0..ROUNDS {
        seed(&db, SEED_PLAIN).await?;
        rates[0].push(plain_rate(&database.url).await?);
        seed(&db, SEED).await?;
        rates[1].push(fair_rate(&db, 1).await?);
        seed(&db, SEED).await?;
        rates[2].push(fair_rate(&db, 10).await?);
    }
    let [plain, fair, fair_batches] = rates.map(median);
    let beside = |rate: f64| format!("{rate:.0}/s; plain {plain:.0}/s");
    report.at_least(
        "fair claim + complete, one at a time",
        "× plain SKIP LOCKED",
        0.3,
        fair / plain,
        beside(fair),
    );
    report.at_least(
        "fair claim + complete, batches of 10",
        "× plain SKIP LOCKED",
        1.0,
        fair_batches / plain,
        beside(fair_batches),
    );
    neighbour::run(&db, report).await?;
    db.close();
    database.drop_now().await?;
    Ok(())
}

async fn seed(db: &Db, sql: &str) -> anyhow::Result<()> {
    let sql = sql.replace("{units}", &UNITS.to_string()).replace("{depth}", &DEPTH.to_string());
    Ok(db.conn().await?.batch(&sql).await?)
}

async fn plain_rate(url: &str) -> anyhow::Result<f64> {
    let script = tempfile::NamedTempFile::new()?;
    std::fs::write(script.path(), PLAIN)?;
    let output = tokio::process::Command::new("pgbench")
        .args(["-n", "-M", "prepared", "-j", "2"])
        .args(["-c", &CLIENTS.to_string(), "-T", &ROUND.as_secs().to_string()])
        .arg("-f")
        .arg(script.path())
        .arg(url)
        .output()
        .await
        .context("pgbench")?;
    let text = String::from_utf8_lossy(&output.stdout);
    let rate = text.lines().find_map(|line| line.strip_prefix("tps = ")?.split(' ').next()?.parse().ok());
    rate.with_context(|| format!("pgbench gave no rate: {}", String::from_utf8_lossy(&output.stderr)))
}

async fn fair_rate(db: &Db, batch: i32) -> anyhow::Result<f64> {
    let done = Arc::new(AtomicU64::new(0));
    let began = Instant::now();
    let clients = (0..CLIENTS).map(|_| {
        let (db, done) = (db.clone(), Arc::clone(&done));
        tokio::spawn(async move {
            let limits = Limits::default();
            while began.elapsed() < ROUND {
                let tasks = service::claim(&db, TaskClass::Short, "bench", batch, &limits).await?;
                let count = tasks.len() as u64;
                if tasks.is_empty() {
                    continue;
                }
                let ended: Vec<_> = tasks.iter().map(|task| (task, None)).collect();
                service::finish_together(&db.conn().await?, &ended).await?;
                done.fetch_add(count, Ordering::Relaxed);
            }
            Ok::<_, DbError>(())
        })
    });
    for client in futures::future::join_all(clients).await {
        client??;
    }
    Ok(done.load(Ordering::Relaxed) as f64 / began.elapsed().as_secs_f64())
}
