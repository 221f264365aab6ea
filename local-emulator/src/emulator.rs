//! Starting everything in order, and stopping it in the reverse one.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use axum::serve::ListenerExt as _;
use plumbline_core::Deps;
use plumbline_core::adapters::{InProcessWaker, LocalLauncher};
use plumbline_core::db::{Connect, Db, PgMode, Query as _};
use plumbline_core::ids::IdSource;
use plumbline_core::ports::Waker as _;
use plumbline_core::secrets::Keyring;
use plumbline_core::state_stores::OpenStores;
use plumbline_core::users::{UserError, service::bootstrap_admin};
use plumbline_runtime::{AccountStores, Environment, StoreEndpoints};
use tokio::net::TcpListener;
use tokio_util::sync::CancellationToken;
use tokio_util::task::TaskTracker;

use crate::functions::{self, Functions, InProcess};
use crate::home::{Facts, Home};
use crate::hosted::Hosted;
use crate::launching::stop_all;
use crate::object_store::{self, Access};
use crate::options::{Hosting, Options};
use crate::ports::send_at_once;
use crate::postgres::{Cluster, Settings};
use crate::roles::{Address, Roles};
use crate::timers::{self, Work};
use crate::{gateway, ports};

const DATABASE: &str = "plumbline";
const ADMIN_EMAIL: &str = "admin@localhost";
/// Connections of this process's own wiring; the functions have others.
const POOL_SIZE: usize = 4;
/// Connections for the functions, here or in processes of their own, and for a person with psql.
const CONNECTIONS_MAX: u32 = 100;
/// A stop takes ten seconds at most: executors, then open requests, then Postgres.
const EXECUTORS_PATIENCE: Duration = Duration::from_secs(4);
const REQUESTS_PATIENCE: Duration = Duration::from_secs(1);
const FIND_DATABASE: &str = "SELECT 1 FROM pg_database WHERE datname = $1";

/// A running emulator.
pub struct Emulator {
    /// What it says about itself.
    pub facts: Facts,
    /// The admin's password, if this start made the admin.
    pub new_password: Option<String>,
    /// A wiring with the rights of every function, and of the database's owner.
    pub deps: Deps,
    home: Home,
    cluster: Cluster,
    running: Running,
}

/// What runs beside Postgres.
struct Running {
    stop: CancellationToken,
    tracker: TaskTracker,
    launcher: LocalLauncher,
    hosted: Option<Hosted>,
}

/// Loopback sockets, taken before anything is started: a busy port is said at once.
struct Sockets {
    gateway: TcpListener,
    store: TcpListener,
}

/// What this start made once, or found from an earlier one.
struct Secrets {
    keys: Keyring,
    store_key_id: String,
    store_secret: String,
    admin_password: String,
    postgres_password: String,
}

impl Emulator {
    /// Starts everything and returns when requests are answered. If something fails, nothing stays behind.
    pub async fn start(options: Options) -> anyhow::Result<Self> {
        let home = Home::take(&options.directory)?;
        if !nix::unistd::geteuid().is_root() {
            tracing::warn!(
                "isolation is off: without root, what a run executes has the rights of this account; run only code that \
                 you trust"
            );
        }
        let sockets = Sockets {
            gateway: ports::listen(options.port, "--port").await?,
            store: ports::listen(options.store_port, "--store-port").await?,
        };
        // Before anything is started: a damaged root key is said at once.
        let secrets = Secrets::ensure(&home)?;
        // The server of a killed emulator may not have ended yet, and would hold the port.
        Cluster::end_stale(&home.path("postgres")).await?;
        ports::check_free(options.postgres_port, "--pg-port").await?;
        let cluster = Cluster::start(&Settings {
            directory: home.path("postgres"),
            cache: options.cache.join("postgres"),
            log: home.path("postgres.log"),
            port: options.postgres_port,
            password: secrets.postgres_password.clone(),
            fsync: options.fsync,
            connections_max: CONNECTIONS_MAX,
        })
        .await?;
        match assemble(&options, &home, &cluster, sockets, &secrets).await {
            Ok((facts, new_password, deps, running)) => {
                home.publish(&facts)?;
                Ok(Self { facts, new_password, deps, home, cluster, running })
            }
            Err(error) => {
                cluster.stop().await?;
                Err(error)
            }
        }
    }

    /// Where users and executors reach it.
    pub fn url(&self) -> &str {
        &self.facts.url
    }

    /// A URL of the database, with the superuser's password.
    pub fn database_url(&self) -> String {
        self.cluster.url(DATABASE)
    }

    /// The file with the admin's password.
    pub fn password_file(&self) -> PathBuf {
        self.facts.password_file.clone()
    }

    /// Resolves when a part that everything needs has ended by itself.
    pub async fn failed(&mut self) -> String {
        self.cluster.ended().await
    }

    /// Stops everything: first what makes work, then executors, then open requests, then Postgres.
    pub async fn stop(self) -> anyhow::Result<()> {
        self.running.stop().await;
        self.deps.db.close();
        self.cluster.stop().await?;
        self.home.release()
    }
}

impl Running {
    async fn stop(self) {
        let left = stop_all(&self.launcher, EXECUTORS_PATIENCE).await;
        if left > 0 {
            tracing::warn!(executors = left, "executors did not stop in time");
        }
        self.stop.cancel();
        self.tracker.close();
        if tokio::time::timeout(REQUESTS_PATIENCE, self.tracker.wait()).await.is_err() {
            tracing::warn!("requests were still open at the stop");
        }
        if let Some(hosted) = self.hosted {
            hosted.stop().await;
        }
    }
}

impl Secrets {
    fn ensure(home: &Home) -> anyhow::Result<Self> {
        let take = |name: &str| home.secret(name).map(|(secret, _)| secret);
        Ok(Self {
            keys: home.keyring()?,
            store_key_id: take("store-key-id")?,
            store_secret: take("store-secret")?,
            admin_password: take("admin-password")?,
            postgres_password: take("postgres-password")?,
        })
    }
}

async fn assemble(
    options: &Options,
    home: &Home,
    cluster: &Cluster,
    sockets: Sockets,
    secrets: &Secrets,
) -> anyhow::Result<(Facts, Option<String>, Deps, Running)> {
    let mut key_ids = home.lost_roots()?;
    key_ids.extend(secrets.keys.key_ids().flat_map(|id| [" ", id]));
    let roles = ensure_database(cluster, options.pooler_port, &key_ids).await?;
    let (stop, tracker) = (CancellationToken::new(), TaskTracker::new());
    let url = format!("http://127.0.0.1:{}", sockets.gateway.local_addr()?.port());
    let access = Access {
        key_id: secrets.store_key_id.clone(),
        secret: secrets.store_secret.clone(),
        url: format!("http://localhost:{}", sockets.store.local_addr()?.port()),
    };
    let objects = home.private_directory("objects")?;
    object_store::serve(&objects, &access, sockets.store, &tracker, stop.clone())?;
    let waker = InProcessWaker::default();
    let deps = Deps {
        db: Db::new(&Connect { url: cluster.url(DATABASE), pool_size: POOL_SIZE, mode: PgMode::Direct })?,
        blobs: functions::blobs(&access),
        state_stores: Arc::new(OpenStores::new(Arc::new(AccountStores::at(
            StoreEndpoints::from_environment(&Environment::of_process()),
        )))),
        waker: Arc::new(waker.clone()),
        ids: IdSource,
        keys: Arc::new(secrets.keys.clone()),
        limits: Arc::new(options.limits.clone()),
        public_url: url.clone().into(),
        local_repos_root: options.repositories.as_ref().map(|root| root.display().to_string().into()),
        // Here loopback is where everything lives.
        allow_private_addresses: true,
        task_identity: None,
        audit_signer: None,
        overrides: Arc::new(plumbline_runtime::overrides(&Environment::of_process())?),
        issuer_signers: Arc::new([]),
        endpoints: Arc::default(),
        sts_endpoint: options.sts_endpoint.as_deref().map(Into::into),
    };
    let new_password = ensure_admin(&deps, &secrets.admin_password).await?;
    let launcher = functions::launcher(options, &home.private_directory("executors")?)?;
    let hosted = match options.hosting {
        Hosting::Process => None,
        Hosting::Lambda => Some(Hosted::start(options, home, &roles, &access, &deps, waker.clone()).await?),
    };
    let (routes, work): (Functions, Arc<dyn Work>) = match &hosted {
        Some(hosted) => (hosted.functions(), hosted.work()),
        None => (
            Functions::in_process(&deps, &roles)?,
            Arc::new(InProcess::new(&deps, &roles, launcher.clone())?),
        ),
    };
    let router = gateway::guard(routes.into_router(), options.gateway);
    tracker.spawn(serve(sockets.gateway, router, stop.clone()));
    tracker.spawn(timers::run_worker(Arc::clone(&work), waker.clone(), options.wakes, stop.clone()));
    tracker.spawn(timers::run_sweeps(work, options.sweep_interval, stop.clone()));
    // What an earlier process left queued is due at once.
    waker.wake(Duration::ZERO).await;
    let facts = Facts {
        pid: std::process::id(),
        url,
        store_url: access.url,
        postgres_port: cluster.port,
        admin_email: ADMIN_EMAIL.to_owned(),
        password_file: home.path("admin-password"),
    };
    Ok((facts, new_password, deps, Running { stop, tracker, launcher, hosted }))
}

async fn ensure_database(
    cluster: &Cluster,
    pooler_port: Option<u16>,
    key_ids: &str,
) -> anyhow::Result<Roles> {
    let connect = |database| Connect { url: cluster.url(database), pool_size: 1, mode: PgMode::Direct };
    let server = Db::new(&connect("postgres"))?;
    let conn = server.conn().await.context("cannot connect to Postgres")?;
    if conn.query_opt(FIND_DATABASE, &[&DATABASE]).await?.is_none() {
        conn.batch(&["CREATE DATABASE ", DATABASE].concat()).await?;
    }
    drop(conn);
    server.close();
    let address = match pooler_port {
        None => Address { port: cluster.port, database: DATABASE, mode: PgMode::Direct },
        Some(port) => Address { port, database: DATABASE, mode: PgMode::Pooled },
    };
    let owner = Db::new(&connect(DATABASE))?;
    let roles = Roles::prepare(&owner, address).await?;
    plumbline_migrate::check_roots(&owner, Some(key_ids)).await?;
    owner.close();
    Ok(roles)
}

/// The password, if the admin is new.
async fn ensure_admin(deps: &Deps, password: &str) -> anyhow::Result<Option<String>> {
    match bootstrap_admin(deps, ADMIN_EMAIL, password).await {
        Ok(_) => Ok(Some(password.to_owned())),
        Err(UserError::NotFirst) => Ok(None),
        Err(error) => Err(error).context("cannot make the admin"),
    }
}

async fn serve(listener: TcpListener, router: axum::Router, stop: CancellationToken) {
    let service = router.into_make_service_with_connect_info::<SocketAddr>();
    let served = axum::serve(listener.tap_io(send_at_once), service)
        .with_graceful_shutdown(async move { stop.cancelled().await })
        .await;
    if let Err(error) = served {
        tracing::error!(error = %error, "the gateway ended");
    }
}
