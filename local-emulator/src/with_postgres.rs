//! Runs one command beside a scratch cluster and leaves nothing behind.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::{ExitStatus, Stdio};
use std::time::Duration;

use anyhow::Context as _;
use nix::sys::signal::Signal;
use tokio::process::{Child, Command};
use tokio::signal::unix::{SignalKind, signal};

use crate::home::random_word;
use crate::postgres::{Cluster, Settings};
use crate::processes;

/// What the command finds the cluster's URL under.
const URL_VARIABLE: &str = "PLUMBLINE_TEST_DATABASE_URL";
/// Many tests at once, each with a pool of its own.
const CONNECTIONS_MAX: u32 = 500;
/// How long a command that was asked to stop may tidy up.
const COMMAND_PATIENCE: Duration = Duration::from_secs(20);

/// Starts a cluster, runs the command with its URL in the environment, stops the cluster and returns the command's
/// exit code. SIGINT and SIGTERM are passed on to the command's process group.
pub async fn with_postgres(command: &[OsString], cache: PathBuf, fsync: bool) -> anyhow::Result<u8> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let (program, arguments) = command.split_first().context("there is no command to run")?;
    let scratch = tempfile::Builder::new().prefix("plumbline-postgres-").tempdir()?;
    // The server's account must get through; what lies below is private to it.
    open_for_passing(scratch.path())?;
    let settings = Settings {
        directory: scratch.path().join("cluster"),
        cache,
        log: scratch.path().join("postgres.log"),
        port: 0,
        password: random_word(),
        fsync,
        connections_max: CONNECTIONS_MAX,
    };
    let cluster = tokio::select! {
        started = Cluster::start(&settings) => started?,
        _ = interrupted.recv() => return Ok(128 + 2),
        _ = terminated.recv() => return Ok(128 + 15),
    };
    let mut order = Command::new(program);
    order.args(arguments).env(URL_VARIABLE, cluster.url("postgres")).stdin(Stdio::null());
    let outcome = match processes::spawn(order, Signal::SIGTERM).await {
        Ok(mut child) => {
            let code = tokio::select! {
                status = child.wait() => Ok(exit_code(status?)),
                _ = interrupted.recv() => end(&mut child, Signal::SIGINT).await,
                _ = terminated.recv() => end(&mut child, Signal::SIGTERM).await,
            };
            code
        }
        Err(error) => Err(error).with_context(|| format!("cannot run {}", program.display())),
    };
    cluster.stop().await?;
    outcome
}

async fn end(child: &mut Child, signal: Signal) -> anyhow::Result<u8> {
    processes::signal_group(child, signal);
    match tokio::time::timeout(COMMAND_PATIENCE, child.wait()).await {
        Ok(status) => Ok(exit_code(status?)),
        Err(_) => Ok(exit_code(processes::stop(child, &[]).await?)),
    }
}

fn exit_code(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt as _;
    // Shells report a death by signal so.
    let code = status.code().or(status.signal().map(|signal| 128 + signal)).unwrap_or(1);
    u8::try_from(code).unwrap_or(1)
}

fn open_for_passing(directory: &std::path::Path) -> anyhow::Result<()> {
    use std::os::unix::fs::PermissionsExt as _;
    std::fs::set_permissions(directory, std::fs::Permissions::from_mode(0o711))
        .with_context(|| format!("cannot open {}", directory.display()))
}
