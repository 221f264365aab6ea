//! What the database and the audit log say once everything has settled.

use plumbline_core::db::Query as _;
use plumbline_core::digest::Sha256Digest;
use serde_json::json;
use uuid::Uuid;

use super::history::{Running, Settled, Version};
use super::world::{CAP, World};

/// Words of the audit log that the schedule counts.
const AUDITED: [&str; 6] =
    ["run.trigger", "run.approve", "run.reject", "run.cancel", "run.planned", "run.apply_begin"];

/// Completes the history.
pub async fn complete(world: &World<'_>) {
    running(world).await;
    versions(world).await;
    audit(world).await;
    runs(world).await;
    left_over(world).await;
}

async fn running(world: &World<'_>) {
    const JOURNAL: &str = "SELECT unit, running FROM fault_journal WHERE class = 'executor' ORDER BY at";
    let rows = world.plane.db().conn().await.unwrap().query(JOURNAL, &[]).await.unwrap();
    let seen = rows.iter().map(|row| Running { unit: row.get(0), running: row.get(1), cap: CAP });
    world.note(|history| history.running.extend(seen));
}

async fn versions(world: &World<'_>) {
    const VERSIONS: &str = "SELECT workspace_id, serial, lineage, sha256 FROM state_versions ORDER BY id";
    let rows = world.plane.db().conn().await.unwrap().query(VERSIONS, &[]).await.unwrap();
    let versions = rows.iter().map(|row| Version {
        workspace: row.get(0),
        serial: row.get(1),
        lineage: row.get(2),
        sha256: Sha256Digest::from_slice(&row.get::<_, Vec<u8>>(3)).unwrap(),
    });
    world.note(|history| history.versions.extend(versions));
}

async fn audit(world: &World<'_>) {
    const COUNTS: &str = "SELECT action, count(*) FROM audit_entries GROUP BY action";
    let rows = world.plane.db().conn().await.unwrap().query(COUNTS, &[]).await.unwrap();
    for row in &rows {
        let action: String = row.get(0);
        if AUDITED.contains(&action.as_str()) {
            let count = usize::try_from(row.get::<_, i64>(1)).unwrap();
            world.note(|history| history.audited.extend([(action, count)]));
        }
    }
    let mut is_whole = true;
    for token in world.tokens() {
        let (_, _, found) = world.plane.call("GET", "/api/v1/audit/verify", token, None).await;
        is_whole &= found["ok"] == json!(true);
    }
    world.note(|history| history.is_chain_whole = is_whole);
}

async fn runs(world: &World<'_>) {
    const RUNS: &str = "
        SELECT r.id, r.status, r.status_reason, r.completed_at IS NOT NULL AS is_over, r.waiting,
               EXISTS (SELECT 1 FROM tasks t WHERE t.subject_id = r.id) AS has_task,
               r.apply_begun_at IS NOT NULL AS apply_begun, r.approved_digest, r.plan_sha256
        FROM runs r ORDER BY r.id";
    let rows = world.plane.db().conn().await.unwrap().query(RUNS, &[]).await.unwrap();
    let settled = rows.iter().map(|row| Settled {
        run: row.get("id"),
        status: row.get("status"),
        reason: row.get("status_reason"),
        is_over: row.get("is_over"),
        waits: row.get("waiting"),
        has_task: row.get("has_task"),
        apply_begun: row.get("apply_begun"),
        approved: row.get("approved_digest"),
        plan: row.get("plan_sha256"),
    });
    world.note(|history| history.runs.extend(settled));
}

/// A waiting run must wait for somebody; everything else must be gone.
async fn left_over(world: &World<'_>) {
    const LEFT: [(&str, &str); 5] = [
        ("task", "SELECT id FROM tasks"),
        ("executor that may live", "SELECT id FROM executors WHERE status <> 'stopped'"),
        ("counter", "SELECT business_unit_id FROM queue_units WHERE running <> 0"),
        ("state lock of a stopped executor", "SELECT workspace_id FROM tfstates WHERE lock_id IS NOT NULL"),
        (
            "run that waits for nobody",
            "SELECT r.id FROM runs r JOIN workspaces w ON w.id = r.workspace_id
             WHERE r.waiting AND w.active_run_id IS NULL AND w.blocked_at IS NULL",
        ),
    ];
    let conn = world.plane.db().conn().await.unwrap();
    for (what, sql) in LEFT {
        let rows = conn.query(sql, &[]).await.unwrap();
        let names = rows.iter().map(|row| format!("{what} {}", row.get::<_, Uuid>(0)));
        world.note(|history| history.left_over.extend(names));
    }
}
