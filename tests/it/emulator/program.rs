//! The emulator's program, as people start it, and what the process table says about it.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use plumbline_emulator::Facts;

pub const DEADLINE: Duration = Duration::from_secs(60);

/// Where `make test` built the programs: beside the directory of this test.
pub fn programs() -> PathBuf {
    let test = std::env::current_exe().expect("this test has a path");
    let directory = test.parent().and_then(Path::parent).expect("target/debug/deps").to_owned();
    assert!(
        directory.join("plumbline-emulator").is_file() && directory.join("executor-task").is_file(),
        "the programs are not built: run the tests with `make test`"
    );
    directory
}

/// A directory that the database's account can pass through, also when root runs the tests.
pub fn scratch() -> tempfile::TempDir {
    use std::os::unix::fs::PermissionsExt as _;
    let directory =
        tempfile::Builder::new().prefix("plumbline-test-").tempdir().expect("a scratch directory");
    std::fs::set_permissions(directory.path(), std::fs::Permissions::from_mode(0o711)).expect("ours");
    directory
}

/// `plumbline-emulator` with the arguments.
pub fn command(arguments: &[&str]) -> Command {
    let mut command = Command::new(programs().join("plumbline-emulator"));
    command.args(arguments).stdin(Stdio::null());
    command
}

/// A started `up`. Killed when dropped.
pub struct Up {
    pub child: Child,
    directory: PathBuf,
}

impl Up {
    /// Starts it on random ports and waits until it is ready.
    pub async fn start(directory: &Path, more: &[&str]) -> Self {
        Self::start_on(directory, [0; 3], more).await
    }

    /// The same on these ports of the gateway, the store and Postgres.
    pub async fn start_on(directory: &Path, ports: [u16; 3], more: &[&str]) -> Self {
        let text = directory.to_str().expect("UTF-8");
        let mut up = command(&["up", "--fsync", "off"]);
        for (name, port) in ["--port", "--store-port", "--pg-port"].iter().zip(ports) {
            up.args([*name, &port.to_string()]);
        }
        up.args(["--dir", text, "--cache", &format!("{text}-cache")]).args(more);
        Self::spawn(up, directory).await
    }

    /// Starts this command on the directory and waits until it is ready.
    pub async fn spawn(mut up: Command, directory: &Path) -> Self {
        let file = |ending| std::fs::File::create(directory.with_extension(ending)).expect("a file");
        let child = up.stdout(file("out")).stderr(file("log")).spawn().expect("it can be run");
        let mut started = Self { child, directory: directory.to_owned() };
        eventually("the emulator is ready", || {
            assert!(started.child.try_wait().expect("our child").is_none(), "{}", started.log());
            started.find_facts().is_some()
        })
        .await;
        started
    }

    fn find_facts(&self) -> Option<Facts> {
        let facts: Facts =
            serde_json::from_slice(&std::fs::read(self.directory.join("emulator.json")).ok()?).ok()?;
        (facts.pid == self.child.id()).then_some(facts)
    }

    /// What it says about itself.
    pub fn facts(&self) -> Facts {
        self.find_facts().expect("it is ready")
    }

    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.id()).expect("a pid")
    }

    pub fn signal(&self, signal: Signal) {
        kill(Pid::from_raw(self.pid()), signal).expect("our child");
    }

    /// Waits until it has ended, and returns its exit code.
    pub async fn ended(&mut self) -> Option<i32> {
        let mut status = None;
        eventually("the emulator has ended", || {
            status = self.child.try_wait().expect("our child");
            status.is_some()
        })
        .await;
        status.and_then(|status| status.code())
    }

    pub fn log(&self) -> String {
        std::fs::read_to_string(self.directory.with_extension("log")).unwrap_or_default()
    }

    /// What it told the person who started it.
    pub fn out(&self) -> String {
        std::fs::read_to_string(self.directory.with_extension("out")).unwrap_or_default()
    }
}

impl Drop for Up {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Polls until the condition holds; fails after the deadline.
pub async fn eventually(what: &str, mut condition: impl FnMut() -> bool) {
    let deadline = Instant::now() + DEADLINE;
    while !condition() {
        assert!(Instant::now() < deadline, "not within {} s: {what}", DEADLINE.as_secs());
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

/// Every process below the given one, with the time of its start: a pid alone may be reused.
pub fn descendants(pid: i32) -> Vec<(i32, String)> {
    let mut all: Vec<(i32, i32, String)> = Vec::new();
    for entry in std::fs::read_dir("/proc").expect("Linux").flatten() {
        let Some(id) = entry.file_name().to_str().and_then(|name| name.parse().ok()) else { continue };
        if let Some((parent, started)) = parent_and_start(id) {
            all.push((id, parent, started));
        }
    }
    let mut found = Vec::new();
    let mut parents = vec![pid];
    while let Some(parent) = parents.pop() {
        for (id, _, started) in all.iter().filter(|(_, its_parent, _)| *its_parent == parent) {
            found.push((*id, started.clone()));
            parents.push(*id);
        }
    }
    found
}

/// Every process whose command line names the path.
pub fn naming(path: &Path) -> Vec<(i32, String)> {
    let path = path.to_str().expect("UTF-8");
    let processes = std::fs::read_dir("/proc").expect("Linux").flatten();
    processes
        .filter_map(|entry| {
            let id = entry.file_name().to_str()?.parse().ok()?;
            let line = std::fs::read(entry.path().join("cmdline")).ok()?;
            let started = parent_and_start(id)?.1;
            String::from_utf8_lossy(&line).contains(path).then_some((id, started))
        })
        .collect()
}

/// Whether none of them runs any more.
pub fn all_gone(processes: &[(i32, String)]) -> bool {
    processes.iter().all(|(id, started)| parent_and_start(*id).is_none_or(|(_, now)| now != *started))
}

fn parent_and_start(pid: i32) -> Option<(i32, String)> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    // The name in parentheses may contain anything; what follows it is numbers.
    let numbers: Vec<&str> = text.rsplit_once(')')?.1.split_whitespace().collect();
    if numbers.first() == Some(&"Z") {
        return None;
    }
    Some((numbers.get(1)?.parse().ok()?, (*numbers.get(19)?).to_owned()))
}
