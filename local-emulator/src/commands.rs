//! What the program can be asked to do.

use std::ffi::OsString;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::{Args, Parser, Subcommand, ValueEnum};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_core::limits::Limits;
use plumbline_emulator::{
    Emulator, Facts, GatewayMode, GitServer, Hosting, Options, Wakes, find_running, with_postgres,
};
use tokio::net::TcpListener;
use tokio::signal::unix::{SignalKind, signal};
use tokio::time::Instant;

use crate::logs::{self, Format};

/// How long `stop` waits; a stop takes ten seconds at most.
const STOP_PATIENCE: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);

/// Plumbline on one machine: Postgres, an object store, all functions, and executors as child processes.
#[derive(Debug, Parser)]
#[command(name = "plumbline-emulator", version)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Starts everything and runs until it is told to stop (Ctrl-C, SIGTERM, or the command `stop`).
    Up(Up),
    /// Shows what runs on a directory; exits 1 if nothing does.
    Status(Directory),
    /// Stops what runs on a directory and waits until it has gone.
    Stop(Directory),
    /// Runs a command with a scratch Postgres cluster, whose URL stands in PLUMBLINE_TEST_DATABASE_URL.
    WithPostgres {
        /// `on` for measurements that must survive a crash of the machine.
        #[arg(long, value_enum, default_value = "off")]
        fsync: Switch,
        /// Where downloaded programs are kept.
        #[arg(long, default_value = ".cache/postgres")]
        cache: PathBuf,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
    /// Serves the bare Git repositories below a directory over smart HTTP, on loopback.
    GitServe {
        /// The directory.
        #[arg(long)]
        root: PathBuf,
        /// 0 takes any free port; the address is the first line printed.
        #[arg(long, default_value_t = 0)]
        port: u16,
    },
    /// Prints the schema that the migrations make.
    Schema {
        /// A superuser's URL of a running cluster.
        #[arg(long, env = "PLUMBLINE_TEST_DATABASE_URL", hide_env_values = true)]
        database_url: String,
    },
    /// Prints the API's document.
    Openapi,
}

#[derive(Debug, Args)]
struct Directory {
    /// The emulator's directory.
    #[arg(long, default_value = ".plumbline")]
    dir: PathBuf,
}

#[derive(Debug, Args)]
struct Up {
    #[command(flatten)]
    directory: Directory,
    /// Where downloaded programs are kept.
    #[arg(long, default_value = ".cache")]
    cache: PathBuf,
    /// Port of the API; 0 takes any free port.
    #[arg(long, default_value_t = 8080)]
    port: u16,
    /// Port of the object store.
    #[arg(long, default_value_t = 8081)]
    store_port: u16,
    /// Port of Postgres.
    #[arg(long, default_value_t = 8082)]
    pg_port: u16,
    /// `off` is faster, and a crash of the machine may lose the database.
    #[arg(long, value_enum, default_value = "on")]
    fsync: Switch,
    /// `aws` enforces API Gateway's and Lambda's limits; `open` lets LOCK, UNLOCK and large bodies through.
    #[arg(long, value_enum, default_value = "aws")]
    gateway: GatewayMode,
    /// Seconds between two sweeps.
    #[arg(long, default_value_t = 60)]
    sweep_seconds: u64,
    /// How often each wake-up of the worker arrives.
    #[arg(long, value_enum, default_value = "once")]
    wakes: Wakes,
    /// Runs the functions' own programs behind Lambda's runtime API instead of in this process.
    #[arg(long)]
    lambda: bool,
    /// Local Git repositories below this directory may be imported by path.
    #[arg(long)]
    repositories: Option<PathBuf>,
    /// Executors take the Terraform providers that lie in this directory from there, and all others from their
    /// registry.
    #[arg(long)]
    provider_mirror: Option<PathBuf>,
    /// Where AWS's token service answers, instead of its public addresses.
    #[arg(long, env = "PLUMBLINE_STS_ENDPOINT", value_name = "URL")]
    sts_endpoint: Option<String>,
    /// How the log is written.
    #[arg(long, value_enum, default_value = "text")]
    log: Format,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

/// Does it, and returns the exit code.
pub(crate) async fn run(arguments: Arguments) -> anyhow::Result<u8> {
    match arguments.verb {
        Verb::Up(up) => {
            logs::init(up.log, "info");
            run_emulator(up).await
        }
        Verb::Status(Directory { dir }) => {
            logs::init(Format::Text, "info");
            show_status(&dir)
        }
        Verb::Stop(Directory { dir }) => {
            logs::init(Format::Text, "info");
            stop(&dir).await
        }
        Verb::WithPostgres { fsync, cache, command } => {
            logs::init(Format::Text, "warn");
            with_postgres(&command, cache, fsync == Switch::On).await
        }
        Verb::GitServe { root, port } => {
            logs::init(Format::Text, "warn");
            serve_git(root, port).await
        }
        Verb::Schema { database_url } => {
            logs::init(Format::Text, "warn");
            print(&plumbline_emulator::schema::describe_fresh(&database_url).await?)
        }
        Verb::Openapi => {
            logs::init(Format::Text, "warn");
            let (_, document) = plumbline_api::openapi::documented_router();
            print(&format!("{}\n", document.to_pretty_json()?))
        }
    }
}

async fn run_emulator(up: Up) -> anyhow::Result<u8> {
    // Before anything is started: a signal must find somebody who tidies up.
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let own = std::env::current_exe().context("this program has no path")?;
    let programs = own.parent().context("this program lies nowhere")?.to_owned();
    let options = Options {
        directory: up.directory.dir,
        cache: std::path::absolute(&up.cache)?,
        port: up.port,
        store_port: up.store_port,
        postgres_port: up.pg_port,
        pooler_port: None,
        fsync: up.fsync == Switch::On,
        gateway: up.gateway,
        sweep_interval: Duration::from_secs(up.sweep_seconds.max(1)),
        wakes: up.wakes,
        hosting: if up.lambda { Hosting::Lambda } else { Hosting::Process },
        programs,
        repositories: up.repositories.map(std::fs::canonicalize).transpose()?,
        provider_mirror: up.provider_mirror.map(std::fs::canonicalize).transpose()?,
        sts_endpoint: up.sts_endpoint,
        limits: Limits::default(),
    };
    let mut emulator = tokio::select! {
        started = Emulator::start(options) => started?,
        // Children end with this process.
        _ = interrupted.recv() => return Ok(128 + 2),
        _ = terminated.recv() => return Ok(128 + 15),
    };
    print(&greeting(&emulator.facts, emulator.new_password.as_deref()))?;
    let code = tokio::select! {
        _ = interrupted.recv() => 0,
        _ = terminated.recv() => 0,
        what = emulator.failed() => {
            tracing::error!("{what}");
            1
        }
    };
    tracing::info!("stopping");
    emulator.stop().await?;
    tracing::info!("stopped");
    Ok(code)
}

fn greeting(facts: &Facts, new_password: Option<&str>) -> String {
    let file = facts.password_file.display();
    let password = match new_password {
        Some(password) => format!("{password}  (shown this once; kept in {file})"),
        None => format!("in {file}"),
    };
    format!(
        "\nPlumbline is ready.\n\n  API       {url}\n  user      {user}\n  password  {password}\n\n\
         Next:\n  plumb login --server {url} --email {user}\n  plumb workspace import <repository URL>\n  \
         plumb run apply <workspace>\n\nCtrl-C stops everything.\n",
        url = facts.url,
        user = facts.admin_email,
    )
}

fn show_status(directory: &Path) -> anyhow::Result<u8> {
    let Some(facts) = find_running(directory)? else {
        print(&format!("nothing runs on {}\n", directory.display()))?;
        return Ok(1);
    };
    print(&format!(
        "running   process {}\nAPI       {}\nstore     {}\nPostgres  127.0.0.1:{}\nuser      {}\npassword  in {}\n",
        facts.pid,
        facts.url,
        facts.store_url,
        facts.postgres_port,
        facts.admin_email,
        facts.password_file.display()
    ))
}

async fn stop(directory: &Path) -> anyhow::Result<u8> {
    let Some(facts) = find_running(directory)? else {
        return print(&format!("nothing runs on {}\n", directory.display()));
    };
    kill(Pid::from_raw(i32::try_from(facts.pid)?), Signal::SIGTERM).context("cannot signal the emulator")?;
    let deadline = Instant::now() + STOP_PATIENCE;
    while Instant::now() < deadline {
        // An error means that it is stopping: the facts have gone and the lock is still held.
        if matches!(find_running(directory), Ok(None)) {
            return print("stopped\n");
        }
        tokio::time::sleep(POLL).await;
    }
    bail!("the emulator (process {}) did not stop within {} s", facts.pid, STOP_PATIENCE.as_secs())
}

async fn serve_git(root: PathBuf, port: u16) -> anyhow::Result<u8> {
    let mut interrupted = signal(SignalKind::interrupt())?;
    let mut terminated = signal(SignalKind::terminate())?;
    let listener = TcpListener::bind(("127.0.0.1", port))
        .await
        .with_context(|| format!("cannot listen on 127.0.0.1:{port} (--port)"))?;
    print(&format!("http://{}\n", listener.local_addr()?))?;
    let server = GitServer { root, credentials: None };
    let stop = async move {
        tokio::select! {
            _ = interrupted.recv() => {}
            _ = terminated.recv() => {}
        }
    };
    server.serve(listener, stop).await?;
    Ok(0)
}

fn print(text: &str) -> anyhow::Result<u8> {
    let mut out = std::io::stdout().lock();
    out.write_all(text.as_bytes())?;
    out.flush()?;
    Ok(0)
}
