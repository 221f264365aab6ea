//! Workspaces against the database: protection of state, tenancy, plans of statements.

use bytes::Bytes;
use plumbline_core::access::{Actor, Credential, Ctx, Role, Scope};
use plumbline_core::db::{Query as _, Tx};
use plumbline_core::ids::{BusinessUnitId, SessionId, StateVersionId, UserId, WorkspaceId};
use plumbline_core::workspaces::{self, NewWorkspace, WorkspaceError, deletion};
use serde_json::json;

use crate::plane::TestPlane;

fn admin_of(unit: BusinessUnitId) -> Ctx {
    Ctx {
        actor: Actor::User { id: UserId(uuid::Uuid::now_v7()), email: "admin@plumbline.test".into() },
        credential: Credential::Session(SessionId(uuid::Uuid::nil())),
        scope: Scope::One(unit),
        role: Role::Admin,
        is_superadmin: false,
        traceparent: None,
        now: chrono::Utc::now(),
    }
}

fn new(dir: &str) -> NewWorkspace {
    serde_json::from_value(json!({
        "name": dir, "environment": "dev", "repo_url": "https://host/a/b", "tf_working_dir": dir,
    }))
    .expect("the test is set up right")
}

async fn workspace(plane: &TestPlane, ctx: &Ctx, dir: &str) -> WorkspaceId {
    let made = plane
        .db()
        .transaction(async |tx: &Tx<'_>| workspaces::service::create(tx, &plane.deps, ctx, new(dir)).await)
        .await;
    made.expect("the test is set up right").id
}

/// Gives the workspace a state with this body.
async fn write_state(plane: &TestPlane, unit: BusinessUnitId, id: WorkspaceId, body: &'static str) {
    let version: StateVersionId = plane.deps.ids.mint();
    let key = format!("tfstates/{id}/{version}");
    plane
        .deps
        .blobs
        .put(&key, Bytes::from_static(body.as_bytes()), "application/json")
        .await
        .expect("the test is set up right");
    let conn = plane.db().conn().await.expect("the test is set up right");
    const HEAD: &str = "
        INSERT INTO tfstates (workspace_id, business_unit_id, head_version_id, head_serial, head_lineage, head_key,
            head_size_bytes, head_md5, head_sha256)
        VALUES ($1, $2, $3, 1, 'l', $4, 1, decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'))
        ON CONFLICT (workspace_id, business_unit_id) DO UPDATE
        SET head_version_id = EXCLUDED.head_version_id, head_key = EXCLUDED.head_key";
    conn.execute(HEAD, &[&id, &unit, &version, &key]).await.expect("the test is set up right");
    const VERSION: &str = "
        INSERT INTO state_versions (id, business_unit_id, workspace_id, serial, lineage, generation, md5, sha256,
            size_bytes, key)
        VALUES ($1, $2, $3, 1, 'l', 1, decode(repeat('00', 16), 'hex'), decode(repeat('00', 32), 'hex'), 1, $4)";
    conn.execute(VERSION, &[&version, &unit, &id, &key]).await.expect("the test is set up right");
}

#[tokio::test]
async fn a_workspace_with_resources_is_deleted_only_by_force() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    let ctx = admin_of(unit);
    let id = workspace(&plane, &ctx, "a").await;
    write_state(&plane, unit, id, r#"{"version": 4, "resources": [{"type": "x"}]}"#).await;
    let refused = deletion::delete(&plane.deps, &ctx, id, false).await;
    assert!(matches!(refused, Err(WorkspaceError::HasResources)));
    deletion::delete(&plane.deps, &ctx, id, true).await.unwrap();
    let conn = plane.db().conn().await.unwrap();
    let sql = "SELECT details FROM audit_entries WHERE action = 'workspace.delete'";
    let details: serde_json::Value = conn.query_one(sql, &[]).await.unwrap().get("details");
    assert_eq!((&details["force"], &details["had_resources"]), (&json!(true), &json!(true)));
}

#[tokio::test]
async fn an_empty_state_does_not_protect_and_an_unreadable_one_does() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    let ctx = admin_of(unit);
    let empty = workspace(&plane, &ctx, "empty").await;
    write_state(&plane, unit, empty, r#"{"version": 4, "resources": []}"#).await;
    deletion::delete(&plane.deps, &ctx, empty, false).await.unwrap();
    let odd = workspace(&plane, &ctx, "odd").await;
    write_state(&plane, unit, odd, "encrypted").await;
    let refused = deletion::delete(&plane.deps, &ctx, odd, false).await;
    assert!(matches!(refused, Err(WorkspaceError::HasResources)));
}

#[tokio::test]
async fn a_held_state_lock_protects_also_from_force() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    let ctx = admin_of(unit);
    let id = workspace(&plane, &ctx, "a").await;
    let conn = plane.db().conn().await.unwrap();
    let lock = "INSERT INTO tfstates (workspace_id, business_unit_id, lock_id, lock_info) VALUES ($1, $2, 'x', '{}')";
    conn.execute(lock, &[&id, &unit]).await.unwrap();
    drop(conn);
    let refused = deletion::delete(&plane.deps, &ctx, id, true).await;
    assert!(matches!(refused, Err(WorkspaceError::StateLocked)));
}

#[tokio::test]
async fn a_quarantined_state_keeps_the_workspace_blocked() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    let ctx = admin_of(unit);
    let id = workspace(&plane, &ctx, "a").await;
    let conn = plane.db().conn().await.unwrap();
    conn.execute("INSERT INTO tfstates (workspace_id, business_unit_id) VALUES ($1, $2)", &[&id, &unit])
        .await
        .unwrap();
    const QUARANTINE: &str = "
        INSERT INTO quarantined_states (id, business_unit_id, workspace_id, reason, md5, sha256, size_bytes, key)
        VALUES ($1, $2, $3, 'lock lost', '', '', 1, 'k')";
    conn.execute(QUARANTINE, &[&uuid::Uuid::now_v7(), &unit, &id]).await.unwrap();
    let unblock = async || {
        plane.db().transaction(async |tx| workspaces::service::unblock(tx, &ctx, id, "seen").await).await
    };
    plane
        .db()
        .transaction(async |tx| workspaces::service::block(tx, id, plane.deps.ids.mint(), "lost").await)
        .await
        .unwrap();
    assert!(matches!(unblock().await, Err(WorkspaceError::StateQuarantined)));
    let resolve = "UPDATE quarantined_states SET resolved_at = plumbline_now(), resolution = 'discarded'";
    conn.execute(resolve, &[]).await.unwrap();
    assert_eq!(unblock().await.unwrap().blocked, None);
}

#[tokio::test]
async fn locks_and_reads_keep_to_their_scope() {
    let plane = TestPlane::start().await;
    let (blue, green) = (plane.unit("blue").await, plane.unit("green").await);
    let id = workspace(&plane, &admin_of(blue), "a").await;
    let seen = async |scope| {
        plane
            .db()
            .transaction(async |tx| {
                let found = workspaces::service::find(tx, scope, id).await?.is_some();
                let locked = workspaces::service::lock(tx, scope, id).await?.is_some();
                Ok::<_, plumbline_core::db::DbError>((found, locked))
            })
            .await
            .unwrap()
    };
    assert_eq!(seen(Scope::One(blue)).await, (true, true));
    assert_eq!(seen(Scope::One(green)).await, (false, false));
    assert_eq!(seen(Scope::All).await, (true, true));
}

#[tokio::test]
async fn the_first_page_of_a_unit_is_read_through_an_index() {
    let plane = TestPlane::start().await;
    let (blue, green) = (plane.unit("blue").await, plane.unit("green").await);
    let conn = plane.db().conn().await.unwrap();
    const FILL: &str = "
        INSERT INTO workspaces (id, business_unit_id, name, environment, aws_account_id, region, repo_url, tf_working_dir)
        SELECT gen_random_uuid(), $1, 'w' || n, 'dev', 'global', 'global', 'https://host/a', 'd' || n
        FROM generate_series(1, $2::integer) AS n";
    conn.execute(FILL, &[&blue, &50]).await.unwrap();
    conn.execute(FILL, &[&green, &5000]).await.unwrap();
    conn.batch("ANALYZE workspaces").await.unwrap();
    drop(conn);
    let page = plumbline_core::page::PageRequest::new(Some(20), None, &plane.deps.limits);
    let list = async || {
        workspaces::service::list(&plane.deps, &admin_of(blue), &workspaces::WorkspaceFilter::default(), page)
            .await
            .unwrap()
    };
    let scans = async || -> (i64, i64) {
        let conn = plane.db().conn().await.unwrap();
        conn.batch("SELECT pg_stat_force_next_flush()").await.unwrap();
        let sql = "SELECT seq_scan, seq_tup_read FROM pg_stat_user_tables WHERE relname = 'workspaces'";
        let row = conn.query_one(sql, &[]).await.unwrap();
        (row.get("seq_scan"), row.get("seq_tup_read"))
    };
    let before = scans().await;
    // More often than the server needs to settle on a generic plan.
    for _ in 0..12 {
        assert_eq!(list().await.items.len(), 20);
    }
    assert_eq!(scans().await, before, "no sequential scan");
}
