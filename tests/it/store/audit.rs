//! The audit log below the API.

use std::collections::BTreeSet;

use plumbline_core::access::{Actor, Credential, Ctx, Role, Scope};
use plumbline_core::audit::{
    self, Action, CheckpointBody, Entry, PublicKey, Signed, SignedCheckpoint, Verification,
};
use plumbline_core::db::{Conn, DbError, Query as _};
use plumbline_core::ids::{BusinessUnitId, SessionId};
use plumbline_runtime::Function;
use serde_json::json;

use crate::plane::TestPlane;

pub(super) fn entry(unit: Option<BusinessUnitId>, n: i64) -> Entry {
    Entry {
        business_unit_id: unit,
        actor: Actor::System,
        action: Action::TaskReplay,
        resource_type: "task",
        resource_id: format!("task-{n}"),
        workspace_id: None,
        run_id: None,
        details: json!({ "n": n, "ratio": 1e2, "text": "a\0b" }),
    }
}

pub(super) fn auditor(scope: Scope) -> Ctx {
    Ctx {
        actor: Actor::System,
        credential: Credential::Session(SessionId(uuid::Uuid::nil())),
        scope,
        unit_archived: false,
        role: Role::Admin,
        is_superadmin: scope == Scope::All,
        traceparent: None,
        now: chrono::DateTime::UNIX_EPOCH,
    }
}

pub(super) async fn record(plane: &TestPlane, unit: Option<BusinessUnitId>, n: i64) {
    let write = plane.db().transaction(async |tx| audit::service::record(tx, &entry(unit, n)).await);
    write.await.expect("recorded");
}

pub(super) async fn verify(plane: &TestPlane) -> Verification {
    audit::service::verify(&plane.as_function(Function::Api), &auditor(Scope::All)).await.expect("verified")
}

pub(super) async fn checkpoint(plane: &TestPlane) -> bool {
    audit::service::checkpoint(&plane.as_function(Function::Reconciler)).await.expect("sealed")
}

/// What someone can do who owns the database.
async fn tamper(conn: &Conn, sql: &str) {
    let sql = format!("SET session_replication_role = replica; {sql}; SET session_replication_role = origin");
    conn.batch(&sql).await.expect("tampered");
}

async fn conn(plane: &TestPlane) -> Conn {
    plane.db().conn().await.expect("a connection")
}

#[tokio::test]
async fn fifty_writers_at_once_make_one_unbroken_chain() {
    let plane = TestPlane::start_with(plumbline_core::limits::Limits::default(), 16).await;
    futures::future::join_all((0..50).map(|n| record(&plane, None, n))).await;
    let rows = conn(&plane)
        .await
        .query("SELECT sequence FROM audit_entries ORDER BY created_at, sequence", &[])
        .await
        .expect("entries");
    let sequences: Vec<i64> = rows.iter().map(|row| row.get(0)).collect();
    assert_eq!(sequences, (1..=50).collect::<Vec<_>>(), "times rise along the chain");
    let found = verify(&plane).await;
    assert!(found.ok, "{found:?}");
    assert_eq!((found.chains, found.entries), (1, 50));
}

#[tokio::test]
async fn a_rolled_back_action_leaves_no_entry_and_no_gap() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    let failed: Result<(), DbError> = plane
        .db()
        .transaction(async |tx| {
            audit::service::record(tx, &entry(None, 2)).await?;
            Err(DbError::Row("the action failed after all".into()))
        })
        .await;
    assert!(failed.is_err());
    record(&plane, None, 3).await;
    let found = verify(&plane).await;
    assert!(found.ok, "{found:?}");
    assert_eq!(found.entries, 2);
}

#[tokio::test]
async fn several_entries_of_one_transaction_follow_each_other() {
    let plane = TestPlane::start().await;
    let write = plane.db().transaction(async |tx| {
        audit::service::record(tx, &entry(None, 1)).await?;
        audit::service::record(tx, &entry(None, 2)).await
    });
    write.await.expect("recorded");
    assert_eq!(verify(&plane).await.entries, 2);
}

#[tokio::test]
async fn entries_cannot_be_changed_removed_or_invented() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    assert!(checkpoint(&plane).await);
    let conn = conn(&plane).await;
    for sql in [
        "UPDATE audit_entries SET action = 'x'",
        "DELETE FROM audit_entries",
        "TRUNCATE audit_entries",
        "TRUNCATE audit_checkpoints",
        "DELETE FROM audit_checkpoints",
        "UPDATE audit_checkpoints SET body = ''",
        "INSERT INTO audit_entries SELECT * FROM audit_entries",
        "INSERT INTO audit_entries SELECT chain_id, sequence + 1, hash, hash, canonical, business_unit_id, user_id,
            action, resource_type, resource_id, workspace_id, run_id, details, created_at FROM audit_entries",
    ] {
        assert!(conn.batch(sql).await.is_err(), "{sql}");
    }
    assert!(verify(&plane).await.ok);
}

#[tokio::test]
async fn every_kind_of_tampering_is_found() {
    let cases: [(&str, i64, &str); 8] = [
        ("UPDATE audit_entries SET canonical = 'x' WHERE sequence = 2", 2, "content"),
        ("UPDATE audit_entries SET action = 'run.approve' WHERE sequence = 2", 2, "columns"),
        ("UPDATE audit_entries SET details = '{}' WHERE sequence = 3", 3, "columns"),
        (
            "UPDATE audit_entries SET created_at = created_at + interval '1 hour' WHERE sequence = 1",
            1,
            "columns",
        ),
        ("DELETE FROM audit_entries WHERE sequence = 2", 3, "missing"),
        ("DELETE FROM audit_entries WHERE sequence = 4", 4, "head"),
        (
            "UPDATE audit_entries SET sequence = 1002 WHERE sequence = 2;
             UPDATE audit_entries SET sequence = 2 WHERE sequence = 3;
             UPDATE audit_entries SET sequence = 3 WHERE sequence = 1002",
            2,
            "follow",
        ),
        (
            "UPDATE audit_entries SET canonical = 'x', hash = sha256(previous_hash || 'x') WHERE sequence = 2",
            2,
            "content",
        ),
    ];
    for (sql, sequence, word) in cases {
        let plane = TestPlane::start().await;
        for n in 1..=4 {
            record(&plane, None, n).await;
        }
        tamper(&conn(&plane).await, sql).await;
        let found = verify(&plane).await;
        assert!(!found.ok, "{sql}");
        let first = &found.broken[0];
        assert!(first.sequence == sequence && first.reason.contains(word), "{sql}: {first:?}");
    }
}

#[tokio::test]
async fn a_cut_off_end_is_found_through_the_checkpoint() {
    let plane = TestPlane::start().await;
    let unit = plane.unit("blue").await;
    for n in 1..=4 {
        record(&plane, Some(unit), n).await;
    }
    assert!(checkpoint(&plane).await);
    tamper(
        &conn(&plane).await,
        "DELETE FROM audit_entries WHERE sequence > 2;
         UPDATE audit_heads SET sequence = 2, hash = (SELECT hash FROM audit_entries WHERE sequence = 2)",
    )
    .await;
    let found = verify(&plane).await;
    assert_eq!(found.broken.len(), 1, "{found:?}");
    assert_eq!((found.broken[0].chain_id.0, found.broken[0].sequence), (unit.into(), 4));
    assert!(found.checkpoint.is_some_and(|checkpoint| !checkpoint.ok));

    let own = audit::service::verify(&plane.as_function(Function::Api), &auditor(Scope::One(unit)))
        .await
        .expect("verified");
    assert!(!own.ok, "the unit's own admin sees it too");
}

/// Rewrites the second entry and all after it, as somebody does who knows how: every hash and the head are right again.
const REWRITE: &str = "
    DO $$ DECLARE entry audit_entries%ROWTYPE; previous bytea; text text; BEGIN
        SELECT hash INTO previous FROM audit_entries WHERE sequence = 1;
        FOR entry IN SELECT * FROM audit_entries WHERE sequence > 1 ORDER BY sequence LOOP
            text := replace(convert_from(entry.canonical, 'UTF8'), 'task-2', 'task-9');
            UPDATE audit_entries SET previous_hash = previous, canonical = text::bytea,
                hash = sha256(previous || text::bytea), resource_id = text::jsonb ->> 'resource_id'
                WHERE sequence = entry.sequence RETURNING hash INTO previous;
        END LOOP;
        UPDATE audit_heads SET hash = previous;
    END $$";

#[tokio::test]
async fn a_history_that_was_rewritten_with_right_hashes_is_found_through_the_checkpoint() {
    let plane = TestPlane::start().await;
    for n in 1..=4 {
        record(&plane, None, n).await;
    }
    let conn = conn(&plane).await;
    tamper(&conn, REWRITE).await;
    assert!(verify(&plane).await.ok, "before a checkpoint nobody knows better");

    assert!(checkpoint(&plane).await);
    record(&plane, None, 5).await;
    tamper(&conn, &REWRITE.replace("'task-2', 'task-9'", "'task-9', 'task-2'")).await;
    let found = verify(&plane).await;
    assert_eq!(found.broken.len(), 1, "{found:?}");
    let named = &found.broken[0];
    assert_eq!(named.sequence, 4, "the last entry that the checkpoint states: {named:?}");
    assert!(named.reason.contains("checkpoint"), "{named:?}");
}

#[tokio::test]
async fn a_removed_head_is_found() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    tamper(&conn(&plane).await, "DELETE FROM audit_heads").await;
    assert!(!verify(&plane).await.ok);
}

#[tokio::test]
async fn checkpoints_are_made_when_something_changed_and_by_one_sweep_only() {
    let plane = TestPlane::start().await;
    assert!(!checkpoint(&plane).await, "nothing to state");
    record(&plane, None, 1).await;
    let sweeps = futures::future::join_all((0..6).map(|_| checkpoint(&plane))).await;
    assert_eq!(sweeps.into_iter().filter(|made| *made).count(), 1);
    assert!(!checkpoint(&plane).await, "nothing changed");
    record(&plane, None, 2).await;
    assert!(checkpoint(&plane).await);
    let found = verify(&plane).await;
    assert!(found.ok, "{found:?}");
    assert_eq!(found.checkpoint.map(|checkpoint| checkpoint.sequence), Some(2));
}

#[tokio::test]
async fn checkpoints_lie_in_the_object_store_and_verify_there_alone() {
    let plane = TestPlane::start().await;
    record(&plane, None, 1).await;
    assert!(checkpoint(&plane).await);
    let bytes = plane.deps.blobs.get("audit/checkpoints/1.json").await.expect("a copy");
    let mut copy: SignedCheckpoint = serde_json::from_slice(&bytes).expect("a checkpoint");
    let keys = [PublicKey::parse(&copy.public_key).expect("a public key")];
    assert_eq!(copy.signed(&keys), Signed::ByTrusted);
    assert_eq!(copy.signed(&[]), Signed::ByUnknown);
    let body: CheckpointBody = serde_json::from_str(&copy.body).expect("a body");
    assert_eq!((body.sequence, body.heads.len()), (1, 1));
    copy.body = copy.body.replace("\"sequence\":1", "\"sequence\":2");
    assert_eq!(copy.signed(&keys), Signed::Falsely);
}

#[tokio::test]
async fn removed_rewritten_and_forged_checkpoints_are_found_and_named() {
    for (sql, sequence, word) in [
        ("DELETE FROM audit_checkpoints WHERE sequence = 2", 2, "lost"),
        ("DELETE FROM audit_checkpoints WHERE sequence = 1", 2, "missing"),
        ("DELETE FROM audit_checkpoints", 1, "lost"),
        (
            "UPDATE audit_checkpoints SET signature = repeat('x', 64)::bytea WHERE sequence = 2",
            2,
            "signature does not hold",
        ),
        (
            "UPDATE audit_checkpoints SET body = replace(convert_from(body, 'UTF8'), '\"format\":1', '\"format\":2')::bytea
             WHERE sequence = 1",
            1,
            "digest",
        ),
        (
            // With its digest put right, as somebody does who knows how: it no longer follows.
            "WITH forged AS (SELECT replace(convert_from(body, 'UTF8'), '\"format\":1', '\"format\":2')::bytea AS body
                             FROM audit_checkpoints WHERE sequence = 2)
             UPDATE audit_checkpoints c SET body = forged.body, hash = sha256(forged.body) FROM forged WHERE sequence = 2",
            2,
            "forged",
        ),
        (
            // Under a key of one's own.
            "UPDATE audit_checkpoints SET key_id = '0123456789abcdef' WHERE sequence = 2",
            2,
            "not trusted",
        ),
    ] {
        let plane = TestPlane::start().await;
        for n in 1..=2 {
            record(&plane, None, n).await;
            assert!(checkpoint(&plane).await);
        }
        tamper(&conn(&plane).await, sql).await;
        let found = verify(&plane).await;
        let faults = &found.checkpoint.as_ref().expect("there were some").faults;
        assert!(!found.ok && !faults.is_empty(), "{sql}: {found:?}");
        assert!(faults[0].sequence == sequence && faults[0].reason.contains(word), "{sql}: {faults:?}");
    }
}

#[tokio::test]
async fn an_export_verifies_without_the_database() {
    let plane = TestPlane::start().await;
    for n in 1..=5 {
        record(&plane, None, n).await;
    }
    assert!(checkpoint(&plane).await);
    let (mut walk, mut after) = (audit::ChainWalk::new(audit::ChainId::of(None)), 0);
    let heads = loop {
        let page = audit::service::export(
            &plane.as_function(Function::Api),
            &auditor(Scope::All),
            None,
            after,
            Some(2),
        )
        .await;
        let page = page.expect("exported");
        for item in &page.items {
            let link = audit::Link {
                sequence: item.sequence,
                previous_hash: item.previous_hash,
                hash: item.hash,
                canonical: item.canonical.as_bytes(),
            };
            walk.step(&link).and_then(|()| walk.read(&link)).expect("an unbroken chain");
        }
        match page.next_after {
            Some(next) => after = next,
            None => {
                let checkpoint = page.checkpoint.expect("a checkpoint");
                break serde_json::from_str::<CheckpointBody>(&checkpoint.body).expect("a body").heads;
            }
        }
    };
    assert_eq!(walk.finish(heads[0].sequence, heads[0].hash), Ok(()));
}

#[tokio::test]
async fn a_chain_longer_than_a_page_is_verified_whole() {
    let plane = TestPlane::start().await;
    let write = plane.db().transaction(async |tx| {
        for n in 0..2_500 {
            audit::service::record(tx, &entry(None, n)).await?;
        }
        Ok::<_, DbError>(())
    });
    write.await.expect("recorded");
    let found = verify(&plane).await;
    assert!(found.ok);
    assert_eq!(found.entries, 2_500);
}

#[tokio::test]
async fn a_list_over_several_chains_pages_without_gaps() {
    let plane = TestPlane::start().await;
    let units = [None, Some(plane.unit("blue").await), Some(plane.unit("red").await)];
    for n in 0..21 {
        record(&plane, units[usize::try_from(n % 3).expect("small")], n).await;
    }
    let mut seen = BTreeSet::new();
    let mut cursor: Option<String> = None;
    loop {
        let filter = audit::Filter::default();
        let page = audit::service::list(
            &plane.as_function(Function::Api),
            &auditor(Scope::All),
            &filter,
            cursor.as_deref(),
            Some(4),
        )
        .await;
        let page = page.expect("listed");
        seen.extend(page.items.iter().map(|item| (item.chain_id, item.sequence)));
        cursor = page.next_cursor;
        if cursor.is_none() {
            break;
        }
    }
    assert_eq!(seen.len(), 21);
}
