//! The pool. One connection per Lambda environment by default; more for the emulator.

use std::time::Duration;

use deadpool_postgres::{Hook, HookError, Manager, ManagerConfig, Pool, RecyclingMethod};
use tokio_postgres::{Config, NoTls};

use super::{Conn, DbError, Tx};

/// How statements are sent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PgMode {
    /// Prepared statements, cached per connection.
    Direct,
    /// Unnamed statements only: a transaction pooler may hand each transaction another server connection.
    Pooled,
}

/// How to reach the database.
#[derive(Clone)]
pub struct Connect {
    /// A libpq URL, with `connect_timeout` in seconds if the default is too short. It may hold a password.
    pub url: String,
    /// Connections at most.
    pub pool_size: usize,
    /// How statements are sent.
    pub mode: PgMode,
}

impl std::fmt::Debug for Connect {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Connect")
            .field("pool_size", &self.pool_size)
            .field("mode", &self.mode)
            .finish_non_exhaustive()
    }
}

/// How long a connection may have been idle before it is asked whether it lives: a frozen function cannot notice
/// that its peer closed the connection.
const IDLE_BEFORE_CHECK: Duration = Duration::from_secs(20);
const CHECK_TIMEOUT: Duration = Duration::from_millis(250);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(2);
const WAIT_TIMEOUT: Duration = Duration::from_secs(10);

/// A pool of connections to one database. Cheap to clone.
#[derive(Clone)]
pub struct Db {
    pool: Pool,
    mode: PgMode,
}

impl std::fmt::Debug for Db {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Db").field("mode", &self.mode).finish_non_exhaustive()
    }
}

impl Db {
    /// A pool that connects when first used, without TLS: for loopback and unix sockets.
    pub fn new(connect: &Connect) -> Result<Self, DbError> {
        Self::with_tls(connect, NoTls)
    }

    /// A pool whose connections use the given TLS connector.
    pub fn with_tls<T>(connect: &Connect, tls: T) -> Result<Self, DbError>
    where
        T: tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as tokio_postgres::tls::TlsConnect<tokio_postgres::Socket>>::Future: Send,
    {
        Self::build(connect, tls, IDLE_BEFORE_CHECK)
    }

    pub(super) fn build<T>(connect: &Connect, tls: T, idle_before_check: Duration) -> Result<Self, DbError>
    where
        T: tokio_postgres::tls::MakeTlsConnect<tokio_postgres::Socket> + Clone + Sync + Send + 'static,
        T::Stream: Sync + Send,
        T::TlsConnect: Sync + Send,
        <T::TlsConnect as tokio_postgres::tls::TlsConnect<tokio_postgres::Socket>>::Future: Send,
    {
        let mut config: Config = connect.url.parse()?;
        let connect_timeout = config.get_connect_timeout().copied().unwrap_or(CONNECT_TIMEOUT);
        config
            .connect_timeout(connect_timeout)
            .keepalives(true)
            .tcp_user_timeout(Duration::from_secs(5))
            .application_name("plumbline");
        let manager_config = ManagerConfig { recycling_method: RecyclingMethod::Fast };
        let pool = Pool::builder(Manager::from_config(config, tls, manager_config))
            .max_size(connect.pool_size)
            .runtime(deadpool_postgres::Runtime::Tokio1)
            .wait_timeout(Some(WAIT_TIMEOUT))
            .create_timeout(Some(connect_timeout * 2))
            .pre_recycle(Hook::async_fn(move |client, metrics| {
                Box::pin(async move {
                    if metrics.last_used() < idle_before_check {
                        return Ok(());
                    }
                    let check = tokio::time::timeout(CHECK_TIMEOUT, client.simple_query("SELECT 1")).await;
                    match check {
                        Ok(Ok(_)) => Ok(()),
                        _ => Err(HookError::message("the connection did not answer in time")),
                    }
                })
            }))
            .build()
            .map_err(|error| DbError::Unavailable(error.into()))?;
        Ok(Self { pool, mode: connect.mode })
    }

    /// How statements are sent.
    pub fn mode(&self) -> PgMode {
        self.mode
    }

    /// A connection; it goes back to the pool when dropped.
    pub async fn conn(&self) -> Result<Conn, DbError> {
        Ok(Conn { client: self.pool.get().await?, mode: self.mode })
    }

    /// Runs `work` in one transaction and commits if it returns `Ok`. Anything else rolls back.
    pub async fn transaction<T, E, F>(&self, work: F) -> Result<T, E>
    where
        E: From<DbError>,
        F: AsyncFnOnce(&Tx<'_>) -> Result<T, E>,
    {
        let mut conn = self.conn().await?;
        let tx = conn.begin().await?;
        let value = work(&tx).await?;
        tx.commit().await?;
        Ok(value)
    }

    /// Closes idle connections and refuses new ones: used when a process ends.
    pub fn close(&self) {
        self.pool.close();
    }
}
