//! Eight reconcilers at once, with work for each sweep: everything is done, and done once.

use std::time::Duration;

use http::StatusCode;
use plumbline_core::db::Query as _;
use plumbline_core::sweeps::{self, SweepReport};
use plumbline_core::tasks::TaskKind;
use plumbline_runtime::Function;
use serde_json::json;

use super::desk::cheap_limits;
use super::fake_launcher::FakeLauncher;
use crate::executors::FakeExecutor;
use crate::plane::TestPlane;
use crate::world::World;

const MONTH_AND_MORE: Duration = Duration::from_secs(40 * 24 * 3600);

/// How much of each.
const EACH: i64 = 6;

/// Work for every sweep that forgets, moves or starts something.
async fn with_work() -> World {
    let world = World::on(TestPlane::start_with(cheap_limits(), 16).await).await;
    for n in 0..EACH {
        // A log of several chunks, of a run that has ended.
        world.trigger("plan").await;
        let executor = FakeExecutor::start(&world.plane).await;
        for piece in 0..20 {
            let (status, answer) = executor.log(1, piece * 1000, &[b'a' + n as u8; 1000]).await;
            assert_eq!(status, StatusCode::OK, "{answer}");
        }
        assert_eq!(executor.fail("permanent", "enough").await.0, StatusCode::NO_CONTENT);
    }
    let conn = world.plane.db().conn().await.unwrap();
    // Rows as a crash between two transactions, or the mere passing of time, leaves them.
    const PLANT: &str = "
        INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
        SELECT gen_random_uuid(), w.business_unit_id, use || n, 'dev', 'global', 'global', w.repo_url, use || n
        FROM workspaces w, generate_series(1, $1::int8) n, unnest(ARRAY['waiting', 'expiring', 'uploading']) use";
    conn.execute(PLANT, &[&EACH]).await.unwrap();
    for sql in [
        // Free, and somebody waits.
        "INSERT INTO runs (id, business_unit_id, workspace_id, command, waiting, branch)
         SELECT gen_random_uuid(), business_unit_id, id, 'apply', true, 'main'
         FROM workspaces WHERE name LIKE 'waiting%'",
        // A plan that nobody approved, of a run that holds its workspace.
        "INSERT INTO runs (id, business_unit_id, workspace_id, command, status, branch, plan_expires_at)
         SELECT gen_random_uuid(), business_unit_id, id, 'apply', 'awaiting_approval', 'main',
                plumbline_now() + interval '1 day'
         FROM workspaces WHERE name LIKE 'expiring%'",
        "UPDATE workspaces w SET active_run_id = r.id FROM runs r
         WHERE r.workspace_id = w.id AND r.status = 'awaiting_approval'",
        // A body that was announced and never came.
        "INSERT INTO tfstates (workspace_id, business_unit_id)
         SELECT id, business_unit_id FROM workspaces WHERE name LIKE 'uploading%'",
        "INSERT INTO state_uploads (id, business_unit_id, workspace_id, generation, lock_id, key, serial, lineage, md5,
                                    sha256, size_bytes, url_expires_at)
         SELECT gen_random_uuid(), business_unit_id, workspace_id, 0, 'l', 'states/' || workspace_id, 1, 'l',
                decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'), 1, plumbline_now()
         FROM tfstates",
    ] {
        conn.batch(sql).await.unwrap();
    }
    drop(conn);
    for n in 0..EACH {
        let body = json!({ "slug": format!("unit-{n}"), "name": "Unit" });
        let (admin, key) = (world.plane.admin_token().await, n.to_string());
        let headers = [("idempotency-key", &*key)];
        let made = world.plane.call_with("POST", "/api/v1/business-units", &*admin, body, &headers).await;
        assert_eq!(made.0, StatusCode::CREATED, "{}", made.2);
    }
    world
}

fn acted(ticks: &[Vec<SweepReport>], name: &str) -> i64 {
    let reports = ticks.iter().flatten().filter(|report| report.name == name);
    reports.map(|report| i64::try_from(*report.outcome.as_ref().unwrap()).unwrap()).sum()
}

#[tokio::test(flavor = "multi_thread", worker_threads = 4)]
async fn each_sweep_does_its_work_once_when_eight_run_at_once() {
    let world = with_work().await;
    let plane = &world.plane;
    let over = plane.count("SELECT count(*) FROM sessions").await
        + plane.count("SELECT count(*) FROM login_attempts").await;
    let finished = plane.count("SELECT count(*) FROM finished_tasks").await;
    assert!(over >= 2 && finished >= EACH, "{over} {finished}");
    plane.advance(MONTH_AND_MORE).await;

    let launcher = FakeLauncher::default();
    let reconciler = plane.as_function(Function::Reconciler);
    let ticks = futures::future::join_all((0..8).map(|_| sweeps::run_all(&reconciler, &launcher))).await;

    for report in ticks.iter().flatten() {
        assert!(report.outcome.is_ok(), "{report:?}");
    }
    for (sweep, expected) in [
        ("runs.waiting", EACH),
        ("runs.plan_expiry", EACH),
        ("runs.logs", EACH),
        ("tfstates.uploads", EACH),
        ("idempotency.retention", EACH),
        ("sessions.retention", over),
        ("tasks.retention", finished),
    ] {
        assert_eq!(acted(&ticks, sweep), expected, "{sweep}");
    }
    assert!(acted(&ticks, "audit.checkpoint") >= 1);
    for (what, sql, expected) in [
        ("a run that waited is queued once", "SELECT count(*) FROM tasks WHERE kind = 'run_plan'", EACH),
        ("and holds its workspace", "SELECT count(*) FROM workspaces WHERE active_run_id IS NOT NULL", EACH),
        ("nobody waits", "SELECT count(*) FROM runs WHERE waiting", 0),
        (
            "an expiry is recorded once",
            "SELECT count(*) FROM audit_entries WHERE action = 'run.expire'",
            EACH,
        ),
        ("uploads are closed, and as old as they are forgotten", "SELECT count(*) FROM state_uploads", 0),
        ("logs are stored", "SELECT count(*) FROM run_steps WHERE log_blob_id IS NOT NULL", EACH),
        ("and nowhere else", "SELECT count(*) FROM log_chunks", 0),
    ] {
        assert_eq!(plane.count(sql).await, expected, "{what}");
    }
    let conn = plane.db().conn().await.unwrap();
    for row in conn.query("SELECT key FROM blobs WHERE key LIKE '%/logs/%'", &[]).await.unwrap() {
        let log = plane.deps.blobs.get(row.get("key")).await.unwrap();
        assert_eq!(log.len(), 20_000, "a log is moved whole");
        assert!(log.iter().all(|byte| *byte == log[0]));
    }
    drop(conn);
    let token = plane.login(crate::plane::ADMIN_EMAIL).await;
    let (_, _, verified) = plane.call("GET", "/api/v1/audit/verify", &*token, None).await;
    assert_eq!(verified["ok"], true, "{verified}");
}

#[tokio::test]
async fn a_run_that_a_crash_left_waiting_is_started_unless_its_workspace_is_held_or_blocked() {
    let world = World::new().await;
    world.planned().await;
    let waiting = world.trigger("apply").await;
    let sweep = async || {
        let reconciler = world.plane.as_function(Function::Reconciler);
        plumbline_core::runs::sweeps::start_waiting(&reconciler).await.unwrap()
    };
    assert_eq!(sweep().await, 0, "its workspace is held");
    world
        .plane
        .execute(
            "UPDATE workspaces SET active_run_id = NULL, blocked_at = plumbline_now(), blocked_reason = 'b'",
        )
        .await
        .unwrap();
    assert_eq!(sweep().await, 0, "its workspace is blocked");
    world.plane.execute("UPDATE workspaces SET blocked_at = NULL, blocked_reason = NULL").await.unwrap();
    assert_eq!(sweep().await, 1);
    assert_eq!(sweep().await, 0, "once");
    let run = world.run(&waiting).await;
    assert_eq!((&run["status"], &run["waiting"]), (&json!("pending"), &json!(null)), "{run}");
    let executor = FakeExecutor::start(&world.plane).await;
    assert_eq!(executor.bundle.run_id.to_string(), waiting);
    assert_eq!(world.live_tasks(TaskKind::RunPlan.as_str()).await, 1);
}
