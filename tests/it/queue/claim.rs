//! Claims: no task twice, no cap overrun at any instant, every unit served.

use std::collections::{BTreeMap, HashSet};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use plumbline_core::Deps;
use plumbline_core::db::{PgMode, Query};
use plumbline_core::ids::{BusinessUnitId, TaskId};
use plumbline_core::limits::Limits;
use plumbline_core::tasks::{ClaimedTask, FinishedOutcome, TaskClass, TaskKind, service};
use tokio::sync::Mutex;

use super::desk::{enqueue, enqueue_one, new_task, unit, units};
use crate::plane::TestPlane;

const UNITS: usize = 20;
const TASKS: usize = 2_000;
const CONNECTIONS: usize = 64;
const UNIT_CAP: i32 = 3;
const GLOBAL_CAP: i32 = 40;

/// Refuses at commit time what the claim promises: a unit or the installation over its cap. Counted by the rows of
/// tasks themselves, so a wrong counter cannot hide an overrun.
const WATCH_CAPS: &str = "
    CREATE TABLE cap_history (at timestamptz, class text, unit_running bigint, all_running bigint);
    CREATE FUNCTION watch_caps() RETURNS trigger LANGUAGE plpgsql AS $$
    BEGIN
        INSERT INTO cap_history
        SELECT clock_timestamp(), NEW.class,
               count(*) FILTER (WHERE business_unit_id = NEW.business_unit_id), count(*)
        FROM tasks WHERE status = 'running' AND class = NEW.class;
        RETURN NULL;
    END $$;
    CREATE CONSTRAINT TRIGGER watch_caps AFTER UPDATE ON tasks DEFERRABLE INITIALLY DEFERRED
        FOR EACH ROW WHEN (NEW.status = 'running' AND OLD.status = 'queued') EXECUTE FUNCTION watch_caps();";

fn limits() -> Limits {
    Limits {
        bcrypt_cost: 4,
        unit_executors_max: UNIT_CAP,
        unit_short_tasks_max: UNIT_CAP,
        executors_max: GLOBAL_CAP,
        launches_per_second: 1e6,
        ..Limits::default()
    }
}

async fn fill(plane: &TestPlane, kind: TaskKind, units: &[BusinessUnitId]) {
    // A third of the backlog belongs to one unit, as when somebody re-plans everything.
    let mut conn = plane.db().conn().await.unwrap();
    let tx = conn.begin().await.unwrap();
    for n in 0..TASKS {
        let unit = if n % 3 == 0 { units[0] } else { units[n % units.len()] };
        service::enqueue(&tx, plane.deps.ids, &new_task(kind, unit)).await.unwrap();
    }
    tx.commit().await.unwrap();
}

/// What many workers saw.
#[derive(Default)]
struct History {
    claims: Vec<(TaskId, i64)>,
    per_unit: BTreeMap<BusinessUnitId, usize>,
}

/// Claims and completes until `wanted` tasks are done.
async fn drain(deps: &Deps, class: TaskClass, wanted: usize) -> History {
    let done = Arc::new(AtomicUsize::new(0));
    let history = Arc::new(Mutex::new(History::default()));
    let deadline = Instant::now() + Duration::from_secs(240);
    let workers = (0..CONNECTIONS).map(|n| {
        let (deps, done, history) = (deps.clone(), Arc::clone(&done), Arc::clone(&history));
        tokio::spawn(async move {
            while done.load(Ordering::SeqCst) < wanted {
                assert!(Instant::now() < deadline, "the queue was not drained in time");
                let name = format!("worker-{n}");
                let batch = i32::try_from(n % 3).unwrap() + 1;
                let tasks = service::claim(&deps.db, class, &name, batch, &deps.limits).await.unwrap();
                assert!(tasks.len() <= usize::try_from(batch).unwrap(), "more than asked for");
                for task in &tasks {
                    note(&history, task).await;
                    let finished = deps
                        .db
                        .transaction(async |tx| {
                            service::finish(tx, task.lease, FinishedOutcome::Done, None, None).await
                        })
                        .await;
                    finished.unwrap();
                    done.fetch_add(1, Ordering::SeqCst);
                }
                if tasks.is_empty() {
                    // Every unit is full or in other hands: look again when some have ended.
                    tokio::time::sleep(Duration::from_millis(10)).await;
                }
            }
        })
    });
    for worker in futures::future::join_all(workers).await {
        worker.unwrap();
    }
    Arc::into_inner(history).expect("all workers have ended").into_inner()
}

async fn note(history: &Mutex<History>, task: &ClaimedTask) {
    let mut history = history.lock().await;
    history.claims.push((task.lease.task_id, task.lease.token));
    *history.per_unit.entry(task.business_unit_id).or_default() += 1;
}

async fn stress(kind: TaskKind, mode: PgMode) {
    let plane = TestPlane::start_as(limits(), CONNECTIONS, mode).await;
    let units = units(plane.db(), UNITS).await;
    fill(&plane, kind, &units).await;
    plane.execute(WATCH_CAPS).await.unwrap();

    let history = drain(&plane.deps, kind.class(), TASKS).await;

    let distinct: HashSet<TaskId> = history.claims.iter().map(|(id, _)| *id).collect();
    assert_eq!(distinct.len(), TASKS, "a task was claimed twice");
    assert_eq!(history.claims.len(), TASKS);
    let over = format!(
        "SELECT count(*) FROM cap_history WHERE unit_running > {UNIT_CAP}
            OR (class = 'executor' AND all_running > {GLOBAL_CAP})"
    );
    assert_eq!(plane.count(&over).await, 0, "a cap was overrun");
    assert!(plane.count("SELECT count(*) FROM cap_history").await >= i64::try_from(TASKS).unwrap());
    assert_eq!(plane.count("SELECT sum(running)::int8 FROM queue_units").await, 0);
    assert_eq!(plane.count("SELECT running::int8 FROM launch_budget").await, 0);
    assert_eq!(plane.count("SELECT count(*) FROM tasks").await, 0);
    assert_eq!(plane.count("SELECT count(*) FROM finished_tasks").await, i64::try_from(TASKS).unwrap());
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn no_task_is_claimed_twice_and_no_cap_is_overrun_by_64_connections() {
    stress(TaskKind::WorkspaceBranches, PgMode::Direct).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn executors_keep_to_the_cap_of_the_unit_and_of_the_installation() {
    stress(TaskKind::RunPlan, PgMode::Direct).await;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn the_same_holds_with_unnamed_statements() {
    stress(TaskKind::RunPlan, PgMode::Pooled).await;
}

#[tokio::test]
async fn the_watch_sees_an_overrun_if_there_is_one() {
    let plane = TestPlane::start_with(limits(), 2).await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..=UNIT_CAP {
        enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    }
    plane.execute(WATCH_CAPS).await.unwrap();
    plane.execute("UPDATE tasks SET status = 'running', lease_expires_at = plumbline_now()").await.unwrap();
    let over = format!("SELECT count(*) FROM cap_history WHERE unit_running > {UNIT_CAP}");
    assert!(plane.count(&over).await > 0);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_unit_with_one_task_is_served_within_one_round_of_the_others() {
    let plane = TestPlane::start_with(limits(), 4).await;
    let units = units(plane.db(), UNITS).await;
    fill(&plane, TaskKind::WorkspaceBranches, &units).await;

    // Every unit has work, so any UNITS claims in a row serve each unit exactly once.
    for _ in 0..3 {
        let mut served = HashSet::new();
        for _ in 0..UNITS {
            let task = plane.claim_one(TaskClass::Short).await;
            served.insert(task.business_unit_id);
            plane.finish(task.lease).await.unwrap();
        }
        assert_eq!(served.len(), UNITS);
    }
}

const CLAIMS: usize = 200;

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn a_unit_under_constant_inserts_is_still_claimed() {
    let plane = TestPlane::start_with(limits(), 12).await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..CLAIMS {
        enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    }
    let stop = Arc::new(std::sync::atomic::AtomicBool::new(false));
    let inserters: Vec<_> = (0..6)
        .map(|_| {
            let (db, stop) = (plane.db().clone(), Arc::clone(&stop));
            tokio::spawn(async move {
                while !stop.load(Ordering::SeqCst) {
                    enqueue_one(&db, TaskKind::WorkspaceBranches, unit).await;
                }
            })
        })
        .collect();
    for _ in 0..CLAIMS {
        let task = plane.claim_one(TaskClass::Short).await;
        plane.finish(task.lease).await.unwrap();
    }
    stop.store(true, Ordering::SeqCst);
    for inserter in inserters {
        inserter.await.unwrap();
    }
}

#[tokio::test]
async fn an_insert_that_has_not_committed_does_not_hold_up_a_claim() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let first = enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let mut conn = plane.db().conn().await.unwrap();
    let tx = conn.begin().await.unwrap();
    service::enqueue(&tx, plane.deps.ids, &new_task(TaskKind::RunPlan, unit)).await.unwrap();

    let claimed = tokio::time::timeout(Duration::from_secs(5), plane.claim(TaskClass::Executor, 5))
        .await
        .expect("the claim waits for nobody");

    assert_eq!(claimed.iter().map(|task| task.lease.task_id).collect::<Vec<_>>(), [first]);
}

#[tokio::test]
async fn tasks_that_others_hold_locked_end_the_round_instead_of_spinning() {
    let plane = TestPlane::start().await;
    let units = units(plane.db(), 3).await;
    for unit in &units {
        enqueue_one(plane.db(), TaskKind::RunPlan, *unit).await;
    }
    let mut conn = plane.db().conn().await.unwrap();
    let editor = conn.begin().await.unwrap();
    editor.query("SELECT 1 FROM tasks FOR UPDATE", &[]).await.unwrap();

    let claimed = tokio::time::timeout(Duration::from_secs(5), plane.claim(TaskClass::Executor, 1))
        .await
        .expect("the claim ends while the tasks are still locked");
    assert!(claimed.is_empty());

    // Waits for the answer: a dropped transaction rolls back some time later.
    editor.commit().await.unwrap();
    assert_eq!(plane.claim(TaskClass::Executor, 1).await.len(), 1);
}

#[tokio::test]
async fn one_locked_unit_does_not_hide_the_others() {
    let plane = TestPlane::start().await;
    let units = units(plane.db(), 2).await;
    let locked = enqueue_one(plane.db(), TaskKind::RunPlan, units[0]).await;
    let free = enqueue_one(plane.db(), TaskKind::RunPlan, units[1]).await;
    let mut conn = plane.db().conn().await.unwrap();
    let editor = conn.begin().await.unwrap();
    editor.query("SELECT 1 FROM tasks WHERE id = $1 FOR UPDATE", &[&locked]).await.unwrap();

    assert_eq!(plane.claim_one(TaskClass::Executor).await.lease.task_id, free);
}

#[tokio::test]
async fn a_full_unit_is_left_alone_until_one_of_its_tasks_ends() {
    let plane = TestPlane::start_with(limits(), 4).await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..5 {
        enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    }
    let held = plane.claim(TaskClass::Executor, 10).await;
    assert_eq!(held.len(), usize::try_from(UNIT_CAP).unwrap());
    assert!(plane.claim(TaskClass::Executor, 10).await.is_empty());
    let conn = plane.db().conn().await.unwrap();
    let due = service::next_due(&conn, TaskClass::Executor, &plane.deps.limits).await.unwrap();
    assert_eq!(due, None, "only the end of a task makes room, so waking up again is no use");

    plane.finish(held[0].lease).await.unwrap();
    assert_eq!(plane.claim(TaskClass::Executor, 10).await.len(), 1);
}

#[tokio::test]
async fn a_units_own_cap_overrides_the_default() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..5 {
        enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    }
    plane.execute("UPDATE queue_units SET running_max = 2").await.unwrap();
    assert_eq!(plane.claim(TaskClass::Executor, 10).await.len(), 2);
}

#[tokio::test]
async fn launches_are_rationed_and_the_ration_grows_with_time() {
    let limits = Limits { bcrypt_cost: 4, launches_per_second: 2.0, ..Limits::default() };
    let plane = TestPlane::start_with(limits, 4).await;
    let unit = unit(plane.db(), "unit-a").await;
    for _ in 0..6 {
        enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    }
    plane.advance(Duration::from_secs(3600)).await;
    assert_eq!(
        plane.claim(TaskClass::Executor, 10).await.len(),
        2,
        "an idle hour saves up one second's worth"
    );
    plane.execute("UPDATE launch_budget SET refilled_at = plumbline_now()").await.unwrap();
    assert!(plane.claim(TaskClass::Executor, 10).await.is_empty());
    plane.advance(Duration::from_secs(1)).await;
    assert_eq!(plane.claim(TaskClass::Executor, 10).await.len(), 2);
}

#[tokio::test]
async fn sooner_priorities_come_first_and_delayed_tasks_wait() {
    let plane = TestPlane::start().await;
    let unit = unit(plane.db(), "unit-a").await;
    let mut late = new_task(TaskKind::RunPlan, unit);
    late.delay = Duration::from_secs(300);
    late.priority = 1;
    let late = enqueue(plane.db(), &late).await.task_id();
    let plain = enqueue_one(plane.db(), TaskKind::RunPlan, unit).await;
    let mut urgent = new_task(TaskKind::RunPlan, unit);
    urgent.priority = 10;
    let urgent = enqueue(plane.db(), &urgent).await.task_id();

    let order: Vec<_> = plane.claim(TaskClass::Executor, 10).await.iter().map(|t| t.lease.task_id).collect();
    assert_eq!(order, [urgent, plain]);
    let conn = plane.db().conn().await.unwrap();
    let due = service::next_due(&conn, TaskClass::Executor, &plane.deps.limits).await.unwrap().unwrap();
    assert!(due > Duration::from_secs(200) && due <= Duration::from_secs(300), "{due:?}");

    plane.advance(Duration::from_secs(301)).await;
    assert_eq!(plane.claim_one(TaskClass::Executor).await.lease.task_id, late);
}

#[tokio::test]
async fn a_claim_never_reads_the_whole_backlog_of_a_unit() {
    let plane = TestPlane::start_with(limits(), 1).await;
    let unit = unit(plane.db(), "unit-a").await;
    enqueue_one(plane.db(), TaskKind::WorkspaceBranches, unit).await;
    // Where most rows are one unit's, the planner takes a claim for a large part of the table.
    let backlog = "
        INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, attempts_max, dedupe_key)
        SELECT gen_random_uuid(), business_unit_id, class, kind, gen_random_uuid(), 2, n::text
        FROM tasks, generate_series(1, 20000) n; ANALYZE tasks;";
    plane.execute(backlog).await.unwrap();
    const READ: &str = "
        SELECT seq_tup_read::int8 FROM pg_stat_xact_user_tables WHERE relname = 'tasks'";
    // More often than a statement is planned anew.
    for _ in 0..8 {
        let task = plane.claim_one(TaskClass::Short).await;
        plane.finish(task.lease).await.unwrap();
    }
    let mut conn = plane.db().conn().await.unwrap();
    let tx = conn.begin().await.unwrap();
    let rows_read = async || tx.query_one(READ, &[]).await.unwrap().get::<_, i64>(0);
    // Postgres takes its time to count what earlier transactions of this connection read: the making of the backlog.
    let before = rows_read().await;
    let kinds: Vec<&str> = TaskKind::ALL.iter().map(|kind| kind.as_str()).collect();
    let claimed = tx
        .query(
            include_str!("../../../core/src/tasks/sql/claim.sql"),
            &[&"short", &1, &10, &"a worker", &60.0, &Some(60.0), &"live", &kinds, &200, &15.0],
        )
        .await
        .unwrap();
    let lease: (TaskId, i64) = (claimed[0].get("id"), claimed[0].get("lease_token"));
    assert_eq!(rows_read().await, before, "the claim reads by key");
    service::finish(
        &tx,
        plumbline_core::tasks::Lease { task_id: lease.0, token: lease.1 },
        FinishedOutcome::Done,
        None,
        None,
    )
    .await
    .unwrap();
    assert_eq!(rows_read().await, before, "the end reads by key");
}
