//! A private PgBouncer in transaction mode, as operators run it: every transaction may get another server connection.

use std::fs::Permissions;
use std::os::unix::fs::{PermissionsExt as _, chown};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::time::{Duration, Instant};

use nix::sys::signal::Signal;
use nix::unistd::{User, geteuid};
use plumbline_emulator::processes::{Account, run_as, signal_group, spawn};
use tokio::process::{Child, Command};

/// How long it may take until it answers.
const READY_WITHIN: Duration = Duration::from_secs(30);

/// Passes connections on to one server until it is dropped.
pub struct PgBouncer {
    process: Child,
    /// Where it listens, on loopback.
    pub port: u16,
    /// Its settings and its log.
    directory: tempfile::TempDir,
}

impl PgBouncer {
    /// Starts one before the server at the port, which need not run yet; `password` is that of the role `postgres`. `None`,
    /// with the reason printed, where there is no pgbouncer.
    pub async fn start(server_port: u16, password: &str) -> Option<Self> {
        let Some(program) = find() else {
            eprintln!("SKIP: pgbouncer is not installed");
            return None;
        };
        let directory = tempfile::Builder::new().prefix("plumbline-pgbouncer-").tempdir().unwrap();
        let port = free_port();
        // It refuses to run as root.
        let account = geteuid().is_root().then(|| {
            let user = User::from_name("nobody").unwrap().expect("every Linux has it");
            Account { uid: user.uid.as_raw(), gid: user.gid.as_raw() }
        });
        std::fs::set_permissions(directory.path(), Permissions::from_mode(0o711)).unwrap();
        let users = write(directory.path(), "users", &format!("\"postgres\" \"{password}\"\n"), account);
        let settings = settings(server_port, port, &users);
        let settings = write(directory.path(), "pgbouncer.ini", &settings, account);
        let log = std::fs::File::create(directory.path().join("log")).unwrap();
        let mut command = Command::new(program);
        command.arg(settings).stdin(Stdio::null()).stdout(Stdio::null()).stderr(log);
        run_as(&mut command, account);
        let process = spawn(command, Signal::SIGTERM).await.unwrap();
        let mut started = Self { process, port, directory };
        started.wait_ready().await;
        Some(started)
    }

    async fn wait_ready(&mut self) {
        let deadline = Instant::now() + READY_WITHIN;
        while tokio::net::TcpStream::connect(("127.0.0.1", self.port)).await.is_err() {
            let ended = self.process.try_wait().unwrap();
            assert!(ended.is_none() && Instant::now() < deadline, "{ended:?}: {}", self.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What it said.
    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.path().join("log")).unwrap()
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        signal_group(&self.process, Signal::SIGTERM);
    }
}

fn find() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    // Where distributions put it is seldom on a person's path.
    std::env::split_paths(&path)
        .chain([PathBuf::from("/usr/sbin")])
        .map(|directory| directory.join("pgbouncer"))
        .find(|program| program.is_file())
}

/// Roles and databases are those of the server. Connections take turns, so that nothing stays on one by luck.
fn settings(server_port: u16, port: u16, users: &Path) -> String {
    format!(
        "[databases]\n* = host=127.0.0.1 port={server_port}\n\
         [pgbouncer]\nlisten_addr = 127.0.0.1\nlisten_port = {port}\nunix_socket_dir =\n\
         auth_type = scram-sha-256\nauth_file = {}\nauth_user = postgres\n\
         pool_mode = transaction\nserver_round_robin = 1\ndefault_pool_size = 8\nmax_client_conn = 1000\n\
         server_idle_timeout = 5\nlog_connections = 0\nlog_disconnections = 0\nlog_pooler_errors = 1\n",
        users.display()
    )
}

fn write(directory: &Path, name: &str, text: &str, account: Option<Account>) -> PathBuf {
    let path = directory.join(name);
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, Permissions::from_mode(0o600)).unwrap();
    if let Some(Account { uid, gid }) = account {
        chown(&path, Some(uid), Some(gid)).unwrap();
    }
    path
}

/// A port that was free a moment ago.
pub fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}
