//! The store and the queue behind PgBouncer in transaction mode.

use std::collections::BTreeSet;

use plumbline_core::db::{Connect, Db, PgMode, Query as _};

use crate::again::run_again;
use crate::pgbouncer::PgBouncer;
use crate::plane::{POOLER_PORT_VARIABLE, cluster_url};

/// Tests whose planes go through the pooler: claims, fencing and leases, whole runs, state, audit, idempotency, sessions.
const THROUGH: [&str; 10] = [
    "api::auth::",
    "api::runs::",
    "api::workspaces::",
    "queue::fencing::",
    "queue::leases::",
    "queue::worker::",
    "store::audit::",
    "store::idempotency::",
    "store::state_uploads::",
    "store::tfstates::",
];
/// Fewer than these would mean that a filter matches nothing any more.
const TESTS_MIN: usize = 80;

async fn start() -> Option<PgBouncer> {
    let url = url::Url::parse(&cluster_url()).unwrap();
    PgBouncer::start(url.port().unwrap(), url.password().unwrap()).await
}

#[tokio::test]
async fn transactions_of_one_client_get_different_server_connections() {
    let Some(pooler) = start().await else { return };
    let mut url = url::Url::parse(&cluster_url()).unwrap();
    url.set_port(Some(pooler.port)).unwrap();
    let connect = Connect { url: url.into(), pool_size: 8, mode: PgMode::Pooled };
    let db = Db::new(&connect).unwrap();
    let backend = async |conn: &plumbline_core::db::Conn| -> i32 {
        conn.query_one("SELECT pg_backend_pid()", &[]).await.unwrap().get(0)
    };
    // Two at once, so that the pooler opens a second connection.
    let (mut one, two) = (db.conn().await.unwrap(), db.conn().await.unwrap());
    let tx = one.begin().await.unwrap();
    tx.query_one("SELECT pg_backend_pid()", &[]).await.unwrap();
    backend(&two).await;
    tx.commit().await.unwrap();
    let mut seen = BTreeSet::new();
    for _ in 0..4 {
        seen.insert(backend(&one).await);
    }
    assert!(seen.len() > 1, "the other tests here would prove nothing: {seen:?}");
}

#[tokio::test]
async fn the_tests_of_the_store_and_the_queue_pass_through_a_transaction_pooler() {
    let Some(pooler) = start().await else { return };
    let passed = run_again(&THROUGH, (POOLER_PORT_VARIABLE, &pooler.port.to_string())).await;
    assert!(passed >= TESTS_MIN, "{passed} tests: {}", pooler.log());
}
