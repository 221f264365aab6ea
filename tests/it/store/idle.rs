//! A connection that has been idle is asked whether it lives: a frozen function cannot notice that its peer is gone.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use plumbline_core::db::testing::checked_after;
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_tests::wire::Wire;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::plane::TestPlane;

const IDLE: Duration = Duration::from_millis(50);

/// A way to Postgres on which connections can go silent without being closed.
struct Tunnel {
    url: String,
    made: Arc<AtomicUsize>,
    silent: Arc<AtomicUsize>,
}

impl Tunnel {
    async fn before(database_url: &str) -> Self {
        let (scheme, rest) = database_url.split_once('@').unwrap();
        let (server, database) = rest.split_once('/').unwrap();
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let url = format!("{scheme}@{}/{database}", listener.local_addr().unwrap());
        let (made, silent) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        tokio::spawn(accept(listener, server.to_owned(), Arc::clone(&made), Arc::clone(&silent)));
        Self { url, made, silent }
    }

    /// Nothing comes through any more on the connections that there are.
    fn silence(&self) {
        self.silent.store(self.made.load(Ordering::SeqCst), Ordering::SeqCst);
    }

    fn pool(&self, idle_before_check: Duration) -> Db {
        let connect = Connect { url: self.url.clone(), pool_size: 1, mode: PgMode::Direct };
        checked_after(&connect, idle_before_check).unwrap()
    }
}

async fn accept(listener: TcpListener, server: String, made: Arc<AtomicUsize>, silent: Arc<AtomicUsize>) {
    while let Ok((client, _)) = listener.accept().await {
        let number = made.fetch_add(1, Ordering::SeqCst);
        let upstream = TcpStream::connect(&server).await.unwrap();
        let (from_client, to_client) = client.into_split();
        let (from_server, to_server) = upstream.into_split();
        for (mut from, mut to) in [(from_client, to_server), (from_server, to_client)] {
            let silent = Arc::clone(&silent);
            tokio::spawn(async move {
                let mut buffer = vec![0; 64 << 10];
                while let Ok(length @ 1..) = from.read(&mut buffer).await {
                    let passes = number >= silent.load(Ordering::SeqCst);
                    if passes && to.write_all(&buffer[..length]).await.is_err() {
                        return;
                    }
                }
            });
        }
    }
}

async fn answers(db: &Db) -> bool {
    let conn = db.conn().await.unwrap();
    let asked = conn.query_one("SELECT 1::int8", &[]);
    tokio::time::timeout(Duration::from_secs(2), asked).await.is_ok()
}

#[tokio::test]
async fn a_connection_that_went_silent_while_it_was_idle_is_replaced() {
    let plane = TestPlane::start().await;
    let tunnel = Tunnel::before(&plane.database_url).await;
    let db = tunnel.pool(IDLE);
    assert!(answers(&db).await);
    tunnel.silence();
    tokio::time::sleep(2 * IDLE).await;
    assert!(answers(&db).await, "over a new connection");
    assert_eq!(tunnel.made.load(Ordering::SeqCst), 2);

    // The silence is one that would be felt.
    let unchecked = tunnel.pool(Duration::from_secs(3600));
    assert!(answers(&unchecked).await);
    tunnel.silence();
    tokio::time::sleep(2 * IDLE).await;
    assert!(!answers(&unchecked).await, "without the check, statements go nowhere");
}

#[tokio::test]
async fn only_an_idle_connection_is_asked() {
    let plane = TestPlane::start().await;
    let wire = Wire::before(&plane.database_url).await.unwrap();
    let connect = Connect { url: wire.url.clone(), pool_size: 1, mode: PgMode::Pooled };
    let db = checked_after(&connect, Duration::from_secs(3600)).unwrap();
    assert!(answers(&db).await);
    wire.take();
    assert!(answers(&db).await);
    assert_eq!(wire.take(), 1, "the statement and nothing else");

    let db = checked_after(&connect, IDLE).unwrap();
    assert!(answers(&db).await);
    wire.take();
    tokio::time::sleep(2 * IDLE).await;
    assert!(answers(&db).await);
    assert_eq!(wire.take(), 2, "a question, and the statement");
}
