//! OpenSSH's real server on loopback, with a host key of its own and one user's key: ours.

use std::os::unix::fs::PermissionsExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

const DEADLINE: Duration = Duration::from_secs(20);

/// A running server. Ends when dropped.
pub struct Sshd {
    child: Child,
    directory: tempfile::TempDir,
    /// Where it listens.
    pub port: u16,
}

/// Programs are rarely on the PATH of everybody.
fn program() -> Option<PathBuf> {
    ["/usr/sbin/sshd", "/usr/local/sbin/sshd", "/sbin/sshd"]
        .map(PathBuf::from)
        .into_iter()
        .find(|path| path.is_file())
}

impl Sshd {
    /// `None`, with the reason printed, where there is no server.
    pub async fn start() -> Option<Self> {
        let Some(sshd) = program() else {
            eprintln!("SKIP: there is no sshd; install openssh-server");
            return None;
        };
        if Command::new("ssh-keygen").arg("-?").output().is_err() {
            eprintln!("SKIP: ssh-keygen is not on the PATH");
            return None;
        }
        let directory = tempfile::Builder::new().prefix("plumbline-sshd-").tempdir().unwrap();
        for name in ["host", "client", "stranger"] {
            keygen(&directory.path().join(name));
        }
        let at = |name: &str| directory.path().join(name).display().to_string();
        std::fs::copy(at("client.pub"), at("authorized")).unwrap();
        if nix::unistd::geteuid().is_root() {
            // Where the system's own server would keep its children away from everything.
            std::fs::create_dir_all("/run/sshd").unwrap();
            std::fs::set_permissions("/run/sshd", std::fs::Permissions::from_mode(0o755)).unwrap();
        }
        let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
        let config = format!(
            "ListenAddress 127.0.0.1:{port}\nHostKey {}\nAuthorizedKeysFile {}\nStrictModes no\nUsePAM no\nPidFile none\n\
             PasswordAuthentication no\nKbdInteractiveAuthentication no\nPermitRootLogin prohibit-password\n\
             LogLevel VERBOSE\nSetEnv PATH={}\n",
            at("host"),
            at("authorized"),
            std::env::var("PATH").unwrap()
        );
        std::fs::write(at("config"), config).unwrap();
        let log = std::fs::File::create(at("log")).unwrap();
        let child = Command::new(sshd)
            .args(["-D", "-e", "-f", &at("config")])
            .stdin(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        let mut server = Self { child, directory, port };
        let deadline = Instant::now() + DEADLINE;
        while std::net::TcpStream::connect(("127.0.0.1", port)).is_err() {
            assert!(server.child.try_wait().unwrap().is_none(), "sshd ended: {}", server.log());
            assert!(Instant::now() < deadline, "sshd does not listen: {}", server.log());
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
        Some(server)
    }

    /// The address of a repository on this machine.
    pub fn url(&self, repository: &Path) -> String {
        let user = nix::unistd::User::from_uid(nix::unistd::geteuid()).unwrap().unwrap().name;
        format!("ssh://{user}@127.0.0.1:{}{}", self.port, repository.display())
    }

    /// The only key that it lets in.
    pub fn client_key(&self) -> String {
        self.read("client")
    }

    /// A key that it does not know.
    pub fn strange_key(&self) -> String {
        self.read("stranger")
    }

    /// Its own key, as `known_hosts` has it.
    pub fn host_line(&self) -> String {
        format!("[127.0.0.1]:{} {}", self.port, self.read("host.pub").trim())
    }

    /// The fingerprint of its own key.
    pub fn fingerprint(&self) -> String {
        let path = self.directory.path().join("host.pub");
        let output = Command::new("ssh-keygen").arg("-lf").arg(path).output().unwrap();
        String::from_utf8(output.stdout).unwrap().split(' ').nth(1).unwrap().to_owned()
    }

    /// A key that is another host's.
    pub fn other_host_line(&self) -> String {
        self.read("stranger.pub").trim().to_owned()
    }

    /// What it logged.
    pub fn log(&self) -> String {
        self.read("log")
    }

    fn read(&self, name: &str) -> String {
        std::fs::read_to_string(self.directory.path().join(name)).unwrap()
    }
}

impl Drop for Sshd {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn keygen(path: &Path) {
    let made = Command::new("ssh-keygen")
        .args(["-q", "-t", "ed25519", "-N", "", "-C", "for tests only", "-f"])
        .arg(path)
        .status()
        .unwrap();
    assert!(made.success());
}
