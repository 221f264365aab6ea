//! A whole control plane for one test: its own database, object store and clock.

mod http;
pub mod roles;
mod rows;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use plumbline_core::Deps;
use plumbline_core::adapters::{DirectoryStore, NoWaker};
use plumbline_core::db::testing::{CLUSTER_URL_VARIABLE, Preparation, TestDatabase, set_clock_offset};
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_core::ids::IdSource;
use plumbline_core::limits::Limits;
use plumbline_core::secrets::{Domain, Keyring};
use plumbline_runtime::Function;

pub use http::{ADMIN_EMAIL, Answer, PASSWORD, read, slug};

/// The root key of every test plane.
pub const ROOT_KEY: &str = "a root key for tests only, 32 characters or more";

/// A control plane in this process.
pub struct TestPlane {
    /// The wiring that functions get.
    pub deps: Deps,
    /// The database's URL.
    pub database_url: String,
    offset: tokio::sync::Mutex<Duration>,
    /// The functions' own connections; empty where they share the owner's: behind the pooler, and where all are watched.
    roles: BTreeMap<Function, Db>,
    /// Holds the objects; goes with the plane.
    _directory: tempfile::TempDir,
    admin: tokio::sync::OnceCell<String>,
}

/// Names the port of a transaction pooler before the cluster: planes then go through it, with unnamed statements.
pub const POOLER_PORT_VARIABLE: &str = "PLUMBLINE_TEST_POOLER_PORT";

/// The cluster that `make test` started.
pub fn cluster_url() -> String {
    std::env::var(CLUSTER_URL_VARIABLE).unwrap_or_else(|_| {
        panic!("{CLUSTER_URL_VARIABLE} is not set: run the tests with `make test`, which starts a private Postgres")
    })
}

impl TestPlane {
    /// A fresh plane with default limits and a cheap password cost.
    pub async fn start() -> Self {
        Self::start_with(Limits { bcrypt_cost: 4, ..Limits::default() }, 8).await
    }

    /// A fresh plane with the given limits and pool size.
    pub async fn start_with(limits: Limits, pool_size: usize) -> Self {
        Self::start_as(limits, pool_size, PgMode::Direct).await
    }

    /// A fresh plane whose statements are sent in the given mode.
    pub async fn start_as(limits: Limits, pool_size: usize, mode: PgMode) -> Self {
        Self::start_on(&cluster_url(), limits, pool_size, mode).await
    }

    /// A fresh plane on the given cluster.
    pub async fn start_on(cluster_url: &str, limits: Limits, pool_size: usize, mode: PgMode) -> Self {
        let granted = Preparation {
            text: plumbline_migrate::GRANTS,
            run: async |db: &Db| {
                roles::grant(db).await;
                Ok(())
            },
        };
        let database = TestDatabase::create_prepared(cluster_url, granted).await;
        let database = database.expect("a database for this test");
        let directory = tempfile::tempdir().expect("a scratch directory");
        let keys = Keyring::from_root(ROOT_KEY).expect("the key is long enough");
        let blobs_key = *keys.key(Domain::Blobs).expect("derived");
        let db = pool(&database, pool_size, mode);
        let roles = roles::pools(&database.url, pool_size, mode);
        let deps = Deps {
            db,
            blobs: Arc::new(DirectoryStore::new(directory.path(), "http://127.0.0.1:9/blobs", blobs_key)),
            state_stores: Arc::default(),
            waker: Arc::new(NoWaker),
            ids: IdSource,
            keys: Arc::new(keys),
            limits: Arc::new(limits),
            public_url: "http://127.0.0.1:9".into(),
            local_repos_root: None,
            allow_private_addresses: false,
            task_identity: None,
            audit_signer: None,
            issuer_signers: Arc::new([]),
            endpoints: Arc::default(),
            sts_endpoint: None,
            overrides: Arc::default(),
        };
        Self {
            deps,
            database_url: database.url.clone(),
            offset: tokio::sync::Mutex::default(),
            roles,
            _directory: directory,
            admin: tokio::sync::OnceCell::new(),
        }
    }

    /// The database.
    pub fn db(&self) -> &Db {
        &self.deps.db
    }

    /// Moves the clock that decides, forward, for every process on this database.
    pub async fn advance(&self, by: Duration) {
        // Held until the database knows: of two at once the earlier could come last, or Postgres refuse one of them.
        let mut offset = self.offset.lock().await;
        *offset += by;
        let conn = self.deps.db.conn().await.expect("a connection");
        set_clock_offset(&conn, *offset).await.expect("the clock moves");
    }

    /// Returns once some statement waits for a lock of another transaction.
    pub async fn until_a_lock_is_waited_for(&self) {
        const WAITERS: &str = "
            SELECT count(*) FROM pg_stat_activity WHERE datname = current_database() AND wait_event_type = 'Lock'";
        let look = self.db().conn().await.unwrap();
        let deadline = Instant::now() + Duration::from_secs(30);
        while look.query_one(WAITERS, &[]).await.unwrap().get::<_, i64>(0) == 0 {
            assert!(Instant::now() < deadline, "nothing waits for a lock");
            tokio::time::sleep(Duration::from_millis(10)).await;
        }
    }

    /// The same plane over connections with another setting of the server, as a role's default would give.
    pub async fn with_setting(&self, name: &str, value: &str) -> Self {
        let url = format!("{}?options=-c%20{name}%3D{value}", self.database_url);
        let connect = Connect { url: url.clone(), pool_size: 4, mode: PgMode::Direct };
        let deps = Deps { db: Db::new(&connect).expect("a pool"), ..self.deps.clone() };
        Self {
            deps,
            database_url: url,
            offset: tokio::sync::Mutex::default(),
            roles: BTreeMap::new(),
            _directory: tempfile::tempdir().expect("a scratch directory"),
            admin: tokio::sync::OnceCell::new(),
        }
    }
}

/// A pool of the plane's database, through the pooler where there is one.
fn pool(database: &TestDatabase, pool_size: usize, mode: PgMode) -> Db {
    let Ok(port) = std::env::var(POOLER_PORT_VARIABLE) else {
        return database.pool(pool_size, mode).expect("a pool");
    };
    let mut url = url::Url::parse(&database.url).expect("a URL");
    url.set_port(Some(port.parse().expect("a port"))).expect("it has a host");
    let connect = Connect { url: format!("{url}?connect_timeout=30"), pool_size, mode: PgMode::Pooled };
    Db::new(&connect).expect("a pool")
}
