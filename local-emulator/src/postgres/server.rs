//! Creating, starting and stopping one cluster.

use std::fmt::Write as _;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::Duration;

use anyhow::{Context as _, bail};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::process::{Child, Command};
use tokio::time::Instant;

use super::{Place, find_or_install};
use crate::processes::{self, run_as};

const READY_TIMEOUT: Duration = Duration::from_secs(60);
const FAST_SHUTDOWN: Duration = Duration::from_secs(5);
const IMMEDIATE_SHUTDOWN: Duration = Duration::from_secs(2);
const POLL: Duration = Duration::from_millis(20);
/// Other programs may take a free port between finding it and listening on it.
const RANDOM_PORT_ATTEMPTS: usize = 5;
const LOG_LINES_SHOWN: usize = 5;

/// How a cluster is run.
#[derive(Clone)]
pub struct Settings {
    /// Wanted directory of the cluster; see [`Place`].
    pub directory: PathBuf,
    /// Where downloaded programs are kept.
    pub cache: PathBuf,
    /// The server's log.
    pub log: PathBuf,
    /// `0` finds a free port.
    pub port: u16,
    /// Password of the superuser `postgres`, in characters that need no escaping in a URL.
    pub password: String,
    /// Off only for scratch clusters: a crash of the machine may lose them.
    pub fsync: bool,
    /// `max_connections` of the server.
    pub connections_max: u32,
}

impl std::fmt::Debug for Settings {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Settings")
            .field("directory", &self.directory)
            .field("port", &self.port)
            .finish_non_exhaustive()
    }
}

/// A running cluster. Dropping it asks the server to end; [`Cluster::stop`] also waits.
pub struct Cluster {
    server: Child,
    /// Where it listens, on loopback.
    pub port: u16,
    password: String,
}

impl std::fmt::Debug for Cluster {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Cluster").field("port", &self.port).finish_non_exhaustive()
    }
}

impl Cluster {
    /// Starts the cluster, creating it first if it does not exist.
    pub async fn start(settings: &Settings) -> anyhow::Result<Self> {
        let programs = find_or_install(&settings.cache).await?;
        let place = Place::prepare(&settings.directory).await?;
        let data = place.directory.join("data");
        stop_stale(&data).await?;
        if !data.join("PG_VERSION").exists() {
            create(&programs, &place, &data, settings).await?;
        }
        let attempts = if settings.port == 0 { RANDOM_PORT_ATTEMPTS } else { 1 };
        let mut last = anyhow::anyhow!("no free port was found");
        for _ in 0..attempts {
            let port = if settings.port == 0 { free_port()? } else { settings.port };
            match start_server(&programs, &place, &data, settings, port).await {
                Ok(server) => return Ok(Self { server, port, password: settings.password.clone() }),
                Err(error) => last = error,
            }
        }
        Err(last)
    }

    /// Stops the server that an earlier process left on the cluster of this directory, if there is one.
    pub async fn end_stale(directory: &Path) -> anyhow::Result<()> {
        stop_stale(&Place::prepare(directory).await?.directory.join("data")).await
    }

    /// A URL of one of the cluster's databases, with the superuser's password.
    pub fn url(&self, database: &str) -> String {
        format!("postgres://postgres:{}@127.0.0.1:{}/{database}", self.password, self.port)
    }

    /// Ends every session, writes a checkpoint and waits until the server has gone.
    pub async fn stop(mut self) -> anyhow::Result<()> {
        let signals = [(Signal::SIGINT, FAST_SHUTDOWN), (Signal::SIGQUIT, IMMEDIATE_SHUTDOWN)];
        processes::stop(&mut self.server, &signals).await.context("cannot stop Postgres")?;
        Ok(())
    }

    /// Resolves when the server ends without having been asked to.
    pub async fn ended(&mut self) -> String {
        match self.server.wait().await {
            Ok(status) => format!("Postgres ended with {status}"),
            Err(error) => format!("Postgres cannot be watched: {error}"),
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // After `stop` the child has no id any more, and nothing is sent.
        processes::signal_child(&self.server, Signal::SIGINT);
    }
}

/// A port that was free a moment ago.
pub(crate) fn free_port() -> anyhow::Result<u16> {
    Ok(TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port())
}

/// Runs `initdb` beside the final place and renames: a half-made cluster is never taken for a whole one.
async fn create(programs: &Path, place: &Place, data: &Path, settings: &Settings) -> anyhow::Result<()> {
    let half = place.directory.join("data.new");
    if half.exists() {
        std::fs::remove_dir_all(&half).context("cannot remove a half-made cluster")?;
    }
    let password_file = place.directory.join("password");
    crate::home::write_private(&password_file, settings.password.as_bytes())?;
    place.give(&password_file)?;
    let mut command = Command::new(programs.join("initdb"));
    command
        .args(["--username=postgres", "--auth=scram-sha-256", "--encoding=UTF8", "--locale=C"])
        .arg("--no-instructions")
        .arg(option("--pwfile=", &password_file))
        .arg(option("--pgdata=", &half))
        .current_dir(&place.directory)
        .env_remove("PGDATA")
        .stdin(Stdio::null())
        .kill_on_drop(true);
    if !settings.fsync {
        command.arg("--no-sync");
    }
    run_as(&mut command, place.account);
    let output = command.output().await.context("cannot run initdb");
    std::fs::remove_file(&password_file).context("cannot remove the password's file")?;
    let output = output?;
    if !output.status.success() {
        bail!("initdb failed: {}", String::from_utf8_lossy(&output.stderr).trim());
    }
    std::fs::rename(&half, data).context("cannot put the new cluster in its place")
}

fn option(name: &str, path: &Path) -> std::ffi::OsString {
    let mut text = std::ffi::OsString::from(name);
    text.push(path);
    text
}

async fn start_server(
    programs: &Path,
    place: &Place,
    data: &Path,
    settings: &Settings,
    port: u16,
) -> anyhow::Result<Child> {
    let log = std::fs::File::options()
        .create(true)
        .append(true)
        .open(&settings.log)
        .with_context(|| format!("cannot open {}", settings.log.display()))?;
    let begin = log.metadata()?.len();
    let mut command = Command::new(programs.join("postgres"));
    command.arg("-D").arg(data).current_dir(data);
    let fsync = if settings.fsync { "on" } else { "off" };
    for (name, value) in [
        ("listen_addresses", "127.0.0.1"),
        ("port", &port.to_string()),
        ("unix_socket_directories", ""),
        ("max_connections", &settings.connections_max.to_string()),
        ("fsync", fsync),
        ("synchronous_commit", fsync),
        ("full_page_writes", fsync),
        ("log_line_prefix", "%m [%p] "),
        // Statements may carry what people typed.
        ("log_min_error_statement", "panic"),
    ] {
        command.arg("-c").arg(format!("{name}={value}"));
    }
    command.stdin(Stdio::null()).stdout(log.try_clone()?).stderr(log);
    run_as(&mut command, place.account);
    let mut server = processes::spawn(command, Signal::SIGINT).await.context("cannot run postgres")?;
    match wait_ready(&mut server, data).await {
        Ok(()) => Ok(server),
        Err(error) => {
            processes::stop(&mut server, &[(Signal::SIGQUIT, IMMEDIATE_SHUTDOWN)]).await?;
            Err(error.context(last_lines(&settings.log, begin)))
        }
    }
}

/// The last line of `postmaster.pid` says when connections are accepted.
async fn wait_ready(server: &mut Child, data: &Path) -> anyhow::Result<()> {
    let pid = server.id().map(|id| id.to_string()).unwrap_or_default();
    let deadline = Instant::now() + READY_TIMEOUT;
    while Instant::now() < deadline {
        if let Some(status) = server.try_wait()? {
            bail!("Postgres ended at its start with {status}");
        }
        let text = std::fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
        let mut lines = text.lines().map(str::trim);
        if lines.next() == Some(&pid) && lines.nth(6) == Some("ready") {
            return Ok(());
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("Postgres was not ready after {} s", READY_TIMEOUT.as_secs())
}

/// Stops the postmaster that an earlier process left in this data directory. Others are never touched: the pid must
/// belong to a process that was started with exactly this directory.
async fn stop_stale(data: &Path) -> anyhow::Result<()> {
    let Ok(text) = std::fs::read_to_string(data.join("postmaster.pid")) else { return Ok(()) };
    let Some(pid) = text.lines().next().and_then(|line| line.trim().parse::<i32>().ok()) else {
        return Ok(());
    };
    let ours = format!("-D\0{}\0", data.display());
    for (signal, patience) in [(Signal::SIGINT, FAST_SHUTDOWN), (Signal::SIGQUIT, IMMEDIATE_SHUTDOWN)] {
        if !processes::is_alive(pid, &ours) {
            return Ok(());
        }
        tracing::warn!(pid, "stopping the Postgres server that an earlier process left behind");
        let _ = kill(Pid::from_raw(pid), signal);
        let deadline = Instant::now() + patience;
        while Instant::now() < deadline && processes::is_alive(pid, &ours) {
            tokio::time::sleep(POLL).await;
        }
    }
    if processes::is_alive(pid, &ours) {
        bail!("the Postgres server {pid} of {} does not stop", data.display());
    }
    Ok(())
}

fn last_lines(log: &Path, begin: u64) -> String {
    let bytes = std::fs::read(log).unwrap_or_default();
    let fresh = bytes.get(usize::try_from(begin).unwrap_or(0)..).unwrap_or_default();
    let text = String::from_utf8_lossy(fresh);
    let lines: Vec<&str> = text.lines().collect();
    let mut shown = String::from("Postgres did not start");
    for line in &lines[lines.len().saturating_sub(LOG_LINES_SHOWN)..] {
        let _ = write!(shown, "\n  {line}");
    }
    shown
}
