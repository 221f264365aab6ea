//! Statements of every minute are planned once per connection. Postgres keeps a plan only if the general one does not look
//! dearer than those for the values at hand; otherwise planning takes longer than running.

use http::StatusCode;
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_core::limits::Limits;
use plumbline_core::tasks::{TaskClass, service};
use serde_json::json;

use super::state_client::{Backend, state};
use crate::executors::{ADDS_ONE, FakeExecutor};
use crate::plane::TestPlane;

/// After this many executions Postgres has decided.
const ROUNDS: usize = 12;
/// What it plans for the values at hand before it decides.
const CUSTOM_MAX: i64 = 5;

/// Statements of this connection that are planned each time, with how often they ran.
async fn planned_each_time(db: &Db) -> Vec<String> {
    const CUSTOM: &str = "
        SELECT left(regexp_replace(statement, '\\s+', ' ', 'g'), 90), custom_plans, generic_plans
        FROM pg_prepared_statements WHERE custom_plans > $1 AND generic_plans = 0 ORDER BY 1";
    const KNOWN: &str = "SELECT count(*) FROM pg_prepared_statements WHERE generic_plans > 0";
    let conn = db.conn().await.unwrap();
    let known: i64 = conn.query_one(KNOWN, &[]).await.unwrap().get(0);
    assert!(known > 0, "statements were prepared on this connection");
    let rows = conn.query(CUSTOM, &[&CUSTOM_MAX]).await.unwrap();
    rows.iter().map(|row| format!("{} × {}", row.get::<_, i64>(1), row.get::<_, String>(0))).collect()
}

fn single(plane: &TestPlane) -> Db {
    Db::new(&Connect { url: plane.database_url.clone(), pool_size: 1, mode: PgMode::Direct }).unwrap()
}

#[tokio::test]
async fn claims_and_ends_are_planned_once() {
    const TASKS: &str = "
        INSERT INTO business_units (id, slug, name)
        SELECT md5('u' || n)::uuid, 'unit-' || n, 'unit' FROM generate_series(1, 20) n;
        INSERT INTO queue_units (business_unit_id, class)
        SELECT id, class FROM business_units, unnest(ARRAY['short', 'executor']) class ON CONFLICT DO NOTHING;
        INSERT INTO tasks (id, business_unit_id, class, kind, subject_id, attempts_max, dedupe_key)
        SELECT gen_random_uuid(), md5('u' || 1 + n % 20)::uuid, class, kind, gen_random_uuid(), 2, n::text || kind
        FROM generate_series(1, $tasks) n,
             unnest(ARRAY['short', 'executor'], ARRAY['workspace_branches', 'run_plan']) AS of (class, kind);
        ANALYZE tasks;";
    for depth in ["100", "20000"] {
        let plane = TestPlane::start().await;
        let db = single(&plane);
        db.conn().await.unwrap().batch(&TASKS.replace("$tasks", depth)).await.unwrap();
        let limits = Limits { launches_per_second: 1e6, ..Limits::default() };
        for class in [TaskClass::Short, TaskClass::Executor] {
            for _ in 0..ROUNDS {
                let claimed = service::claim(&db, class, "test", 1, &limits).await.unwrap();
                let done: Vec<_> = claimed.iter().map(|task| (task, None)).collect();
                assert_eq!(done.len(), 1);
                service::finish_together(&db.conn().await.unwrap(), &done).await.unwrap();
            }
        }
        assert_eq!(planned_each_time(&db).await, Vec::<String>::new(), "{depth} tasks");
    }
}

#[tokio::test]
async fn calls_of_the_state_backend_and_triggers_of_runs_are_planned_once() {
    let mut backend = Backend::start().await;
    let db = single(&backend.plane);
    backend.plane.share(db);
    for serial in 1..=ROUNDS as i64 {
        let lock = format!("l-{serial}");
        assert_eq!(backend.lock(&lock).await.0, StatusCode::OK);
        assert_eq!(backend.read().await.0, if serial == 1 { StatusCode::NO_CONTENT } else { StatusCode::OK });
        let written = backend.write(Some(&lock), &state(serial, "l", "a")).await;
        assert_eq!(written.0, StatusCode::OK);
        assert_eq!(backend.unlock(&lock).await.0, StatusCode::OK);
        let run = json!({ "workspace_id": backend.workspace, "command": "plan" });
        let (status, _, answer) =
            backend.plane.call("POST", "/api/v1/runs", backend.token.as_str(), run).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
    }
    assert_eq!(planned_each_time(&backend.plane.deps.db).await, Vec::<String>::new());
}

#[tokio::test]
async fn what_executors_report_is_planned_once() {
    let mut backend = Backend::start().await;
    let db = single(&backend.plane);
    backend.plane.share(db);
    let run = json!({ "workspace_id": backend.workspace, "command": "plan" });
    for _ in 0..ROUNDS {
        let (status, _, answer) =
            backend.plane.call("POST", "/api/v1/runs", backend.token.as_str(), run.clone()).await;
        assert_eq!(status, StatusCode::CREATED, "{answer}");
        let executor = FakeExecutor::start(&backend.plane).await;
        assert_eq!(executor.heartbeat().await.0, StatusCode::OK);
        for position in [1, 2] {
            assert_eq!(
                executor.step(position, json!({ "status": "running" })).await.0,
                StatusCode::NO_CONTENT
            );
            assert_eq!(executor.log(position, 0, b"a line\n").await.0, StatusCode::OK);
        }
        let (status, answer) = executor.plan(ADDS_ONE).await;
        assert_eq!(status, StatusCode::NO_CONTENT, "{answer}");
    }
    assert_eq!(planned_each_time(&backend.plane.deps.db).await, Vec::<String>::new());
}
