//! A Postgres of one test, which may stop it.

use std::path::PathBuf;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_emulator::postgres::{Cluster, Settings};

use crate::emulator::program::scratch;

/// Ends with the test.
pub struct PrivateCluster {
    settings: Settings,
    /// `None` while it is stopped.
    cluster: Option<Cluster>,
    _scratch: tempfile::TempDir,
}

impl PrivateCluster {
    pub async fn start() -> Self {
        let scratch = scratch();
        let mut settings = Settings {
            directory: scratch.path().join("cluster"),
            cache: PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../.cache/postgres"),
            log: scratch.path().join("postgres.log"),
            port: 0,
            password: uuid::Uuid::now_v7().simple().to_string(),
            // Committed is committed, also after an immediate stop.
            fsync: true,
            connections_max: 50,
        };
        let cluster = Cluster::start(&settings).await.unwrap();
        settings.port = cluster.port;
        Self { settings, cluster: Some(cluster), _scratch: scratch }
    }

    pub fn url(&self) -> String {
        self.cluster.as_ref().expect("it runs").url("postgres")
    }

    /// As `pg_ctl stop -m immediate`: no checkpoint, no goodbye to anybody.
    pub async fn stop_immediately(&mut self) {
        let file = self.settings.directory.join("data/postmaster.pid");
        let pid = std::fs::read_to_string(file).unwrap().lines().next().unwrap().parse().unwrap();
        kill(Pid::from_raw(pid), Signal::SIGQUIT).unwrap();
        self.cluster.take().expect("it runs").ended().await;
    }

    /// On the same port, with what was committed.
    pub async fn start_again(&mut self) {
        self.cluster = Some(Cluster::start(&self.settings).await.unwrap());
    }
}
