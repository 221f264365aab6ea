//! Holds whoever runs one kind of statement, from inside the test's database: a trigger that waits for a lock of ours.
//! Nothing of the product knows about it.

use std::time::Instant;

use plumbline_core::db::{Conn, Connect, Db, PgMode, Query as _};

use super::stage::PATIENCE;

const LOCK: i64 = 7_210_499;

/// Where to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Statement {
    /// The worker has claimed and writes down the executor that it is about to launch.
    PrepareLaunch,
    /// The worker has launched and writes down what the platform calls the executor.
    RecordLaunched,
}

impl Statement {
    fn event(self) -> &'static str {
        match self {
            Self::PrepareLaunch => "INSERT ON executors",
            Self::RecordLaunched => "UPDATE OF handle ON executors",
        }
    }
}

/// Stands until it is lifted.
pub struct SqlBarrier {
    /// Holds the lock: a session's lock lives on one connection.
    conn: Conn,
}

impl SqlBarrier {
    /// From now on the statement waits.
    pub async fn raise(database_url: &str, statement: Statement) -> Self {
        let connect = Connect { url: database_url.to_owned(), pool_size: 1, mode: PgMode::Pooled };
        let conn = Db::new(&connect).unwrap().conn().await.unwrap();
        conn.batch(&format!(
            "SELECT pg_advisory_lock({LOCK});
             CREATE OR REPLACE FUNCTION fault_wait() RETURNS trigger LANGUAGE plpgsql AS $$
             BEGIN PERFORM pg_advisory_xact_lock_shared({LOCK}); RETURN NEW; END $$;
             CREATE TRIGGER fault_wait BEFORE {} FOR EACH ROW EXECUTE FUNCTION fault_wait()",
            statement.event()
        ))
        .await
        .unwrap();
        Self { conn }
    }

    /// Resolves when somebody waits at it.
    pub async fn reached(&self) {
        const WAITERS: &str = "
            SELECT count(*) FROM pg_locks
            WHERE locktype = 'advisory' AND NOT granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        let deadline = Instant::now() + PATIENCE;
        while self.conn.query_one(WAITERS, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(Instant::now() < deadline, "nobody came to the barrier");
            tokio::time::sleep(std::time::Duration::from_millis(20)).await;
        }
    }

    /// Ends whoever still waits at it (a killed process's session does not notice its death while it waits), and
    /// takes the barrier away.
    pub async fn lift(self) {
        const END_WAITERS: &str = "
            SELECT pg_terminate_backend(pid) FROM pg_locks
            WHERE locktype = 'advisory' AND NOT granted
              AND database = (SELECT oid FROM pg_database WHERE datname = current_database())";
        self.conn.query(END_WAITERS, &[]).await.unwrap();
        self.conn.batch(&format!("SELECT pg_advisory_unlock({LOCK})")).await.unwrap();
        self.conn.batch("DROP FUNCTION fault_wait() CASCADE").await.unwrap();
    }
}
