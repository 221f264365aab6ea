//! How long a unit's task waits to be claimed while another unit has a hundred thousand of them.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use plumbline_core::db::{Db, DbError};
use plumbline_core::ids::{BusinessUnitId, IdSource, TaskId};
use plumbline_core::limits::Limits;
use plumbline_core::tasks::{NewTask, TaskClass, TaskKind, service};
use tokio::sync::mpsc;
use uuid::Uuid;

use crate::harness::{Report, median, quantile};

/// Twice the cap of a unit: a noisy one can hold half of them.
const WORKERS: usize = 20;
/// What a task does once it is claimed.
const SERVICE: Duration = Duration::from_millis(20);
/// How long a worker that found nothing waits.
const IDLE: Duration = Duration::from_millis(5);
const TASKS: usize = 300;
const BETWEEN: Duration = Duration::from_millis(10);
const ROUNDS: usize = 3;

const EMPTY: &str = "
    TRUNCATE tasks, finished_tasks;
    DELETE FROM queue_units;
    INSERT INTO business_units (id, slug, name)
    SELECT md5(slug)::uuid, slug, slug FROM unnest(ARRAY['quiet', 'noisy']) slug ON CONFLICT DO NOTHING;
    INSERT INTO queue_units (business_unit_id, class)
    SELECT md5(slug)::uuid, 'short' FROM unnest(ARRAY['quiet', 'noisy']) slug;";
const NOISE: &str = "
    INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, attempts_max, dedupe_key)
    SELECT rising.id, md5('noisy')::uuid, 'short', 'workspace_branches', rising.id, 2, rising.id::text
    FROM generate_series(1, 100000) n,
         LATERAL (SELECT ('01900000-0000-7000-8000-' || lpad(to_hex(n), 12, '0'))::uuid AS id) rising;
    ANALYZE tasks;";
const QUIET_UNIT: &str = "SELECT id FROM business_units WHERE slug = 'quiet'";

pub(crate) async fn run(db: &Db, report: &mut Report) -> anyhow::Result<()> {
    let (mut quiet, mut noisy) = (Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        quiet.push(quantile(waits(db, EMPTY).await?, 0.99));
        noisy.push(quantile(waits(db, &[EMPTY, NOISE].concat()).await?, 0.99));
    }
    let (quiet, noisy) = (median(quiet), median(noisy));
    report.at_most(
        "p99 enqueue → claimed under a noisy neighbour",
        "× quiet",
        2.0,
        noisy / quiet,
        format!("{noisy:.1} ms; quiet {quiet:.1} ms; {WORKERS} workers, {} ms per task", SERVICE.as_millis()),
    );
    Ok(())
}

/// Milliseconds from the commit that queued a task until a worker had it.
async fn waits(db: &Db, seed: &str) -> anyhow::Result<Vec<f64>> {
    let conn = db.conn().await?;
    conn.batch(seed).await?;
    use plumbline_core::db::Query as _;
    let unit: BusinessUnitId = conn.query_one(QUIET_UNIT, &[]).await?.get("id");
    drop(conn);
    let (claimed, mut seen) = mpsc::unbounded_channel();
    let stop = Arc::new(AtomicBool::new(false));
    let workers: Vec<_> = (0..WORKERS)
        .map(|_| tokio::spawn(work(db.clone(), unit, claimed.clone(), Arc::clone(&stop))))
        .collect();
    drop(claimed);
    let mut queued = std::collections::HashMap::new();
    for _ in 0..TASKS {
        let task =
            NewTask::new(TaskKind::WorkspaceBranches, unit, Uuid::now_v7(), Uuid::now_v7().to_string());
        let added: Result<_, DbError> =
            db.transaction(async |tx| service::enqueue(tx, IdSource, &task).await).await;
        queued.insert(added?.task_id(), Instant::now());
        tokio::time::sleep(BETWEEN).await;
    }
    let mut waits = Vec::new();
    while waits.len() < TASKS {
        let (id, at): (TaskId, Instant) = seen.recv().await.expect("workers outlive the wait");
        let began = queued[&id];
        waits.push(at.saturating_duration_since(began).as_secs_f64() * 1000.0);
    }
    stop.store(true, Ordering::SeqCst);
    for worker in workers {
        worker.await??;
    }
    Ok(waits)
}

async fn work(
    db: Db,
    unit: BusinessUnitId,
    claimed: mpsc::UnboundedSender<(TaskId, Instant)>,
    stop: Arc<AtomicBool>,
) -> Result<(), DbError> {
    let limits = Limits::default();
    while !stop.load(Ordering::SeqCst) {
        let tasks = service::claim(&db, TaskClass::Short, "bench", 1, &limits).await?;
        let at = Instant::now();
        let Some(task) = tasks.first() else {
            tokio::time::sleep(IDLE).await;
            continue;
        };
        if task.business_unit_id == unit {
            // Nobody listens any more once all have been seen.
            let _ = claimed.send((task.lease.task_id, at));
        }
        tokio::time::sleep(SERVICE).await;
        service::finish_together(&db.conn().await?, &[(task, None)]).await?;
    }
    Ok(())
}
