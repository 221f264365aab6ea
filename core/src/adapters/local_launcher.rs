//! Executors as child processes of this machine.
//!
//! Each attempt has a directory of its own, named by task and lease token: creating it is the claim, so launching
//! twice starts one. The new process writes its own identity there before it becomes the executor; a restarted
//! emulator finds what runs by these files. A handle is `pid:start time`, so a pid that was used again is not
//! mistaken for it.

use std::collections::HashMap;
use std::fs::File;
use std::io;
use std::os::fd::{AsRawFd as _, RawFd};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use async_trait::async_trait;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::Pid;

use super::local_work;
use crate::ids::TaskId;
use crate::ports::{ExecutorFate, LaunchError, LaunchRequest, Launcher};

/// From the request to stop until everything of the executor is killed. Longer than the executor's own patience
/// with its child.
const STOP_GRACE: Duration = Duration::from_secs(90);
/// Between the creation of a directory and the birth of its process.
const BIRTH_PATIENCE: Duration = Duration::from_secs(5);
const POLL: Duration = Duration::from_millis(20);
/// What executors get of our own environment. Never the rest: it may hold the root key and the database's address.
const PASSED_ON: [&str; 20] = [
    "PATH",
    "HOME",
    "LANG",
    "TZ",
    "TMPDIR",
    "RUST_LOG",
    "HTTP_PROXY",
    "HTTPS_PROXY",
    "NO_PROXY",
    "http_proxy",
    "https_proxy",
    "no_proxy",
    "SSL_CERT_FILE",
    "SSL_CERT_DIR",
    "PLUMBLINE_TOOL_DIRS",
    "PLUMBLINE_TOOL_MIRROR",
    "PLUMBLINE_ISOLATION",
    "PLUMBLINE_CLI_CONFIG",
    "PLUMBLINE_PROVIDER_MIRROR",
    "PLUMBLINE_STS_ENDPOINT",
];
/// The file with the process's identity: `/proc/self/stat`, as it read it itself.
const BIRTH: &str = "birth";

/// What an ended attempt leaves (its log, its identity) is kept at least so long: nobody launches it again then.
const KEPT_AT_LEAST: Duration = Duration::from_secs(60 * 60);
/// And no longer than this,
const KEPT_AT_MOST: Duration = Duration::from_secs(7 * 24 * 60 * 60);
/// nor when there are so many newer ones.
const KEPT_ATTEMPTS_MAX: usize = 200;

/// Starts `executor-task` on this machine.
#[derive(Clone, Debug)]
pub struct LocalLauncher {
    program: PathBuf,
    run_directory: PathBuf,
    environment: Vec<(String, String)>,
    stop_grace: Duration,
    /// How each child of this process ended; `None` while it has not been collected.
    exits: Arc<Mutex<HashMap<String, Option<String>>>>,
}

impl LocalLauncher {
    /// `program` is `executor-task`; `run_directory` belongs to this launcher alone and outlives it; `environment`
    /// is added to what every executor gets.
    pub fn new(program: PathBuf, run_directory: PathBuf, environment: Vec<(String, String)>) -> Self {
        Self { program, run_directory, environment, stop_grace: STOP_GRACE, exits: Arc::default() }
    }

    /// Another time from the request to stop until the kill.
    #[must_use]
    pub fn with_stop_grace(self, stop_grace: Duration) -> Self {
        Self { stop_grace, ..self }
    }

    fn directory(&self, task_id: TaskId, lease_token: i64) -> PathBuf {
        self.run_directory.join(format!("{task_id}-{lease_token}"))
    }

    /// Removes the files of executors that ended while nobody watched them.
    pub fn tidy(&self) {
        for entry in std::fs::read_dir(&self.run_directory).into_iter().flatten().flatten() {
            if !is_running(&entry.path()) {
                local_work::remove(&entry.path());
            }
        }
    }

    /// The handles of every executor that runs in this directory, whichever process launched it.
    pub fn running(&self) -> Vec<String> {
        let entries = std::fs::read_dir(&self.run_directory).into_iter().flatten().flatten();
        entries
            .filter_map(|entry| read_birth(&entry.path()))
            .filter(|handle| Identity::parse(handle).is_some_and(|identity| identity.is_alive()))
            .collect()
    }

    fn exits(&self) -> MutexGuard<'_, HashMap<String, Option<String>>> {
        self.exits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn spawn(&self, request: &LaunchRequest, directory: &Path) -> io::Result<tokio::process::Child> {
        let log = File::create(directory.join("executor.log"))?;
        let birth = File::create(directory.join(BIRTH))?;
        let birth_fd = birth.as_raw_fd();
        let mut command = tokio::process::Command::new(&self.program);
        command
            .env_clear()
            .envs(PASSED_ON.iter().filter_map(|name| Some((name, std::env::var_os(name)?))))
            .envs(self.environment.iter().map(|(name, value)| (name, value)))
            .env("PLUMBLINE_CALLBACK_URL", &request.callback_url)
            .env("PLUMBLINE_TASK_ID", request.task_id.to_string())
            .env("PLUMBLINE_TICKET", &request.ticket)
            .env("PLUMBLINE_WORK_DIR", local_work::make(directory)?)
            .current_dir(directory)
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log);
        // SAFETY: the closure makes system calls only; it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || announce_birth(birth_fd));
        }
        command.spawn()
    }

    /// Remembers how it ended and removes what it left on disk, but for its log; that goes when it is old.
    fn watch(&self, mut child: tokio::process::Child, handle: String, directory: PathBuf) {
        self.exits().insert(handle.clone(), None);
        let exits = Arc::clone(&self.exits);
        tokio::spawn(async move {
            let reason = match child.wait().await {
                Ok(status) => status.to_string(),
                Err(error) => format!("it cannot be awaited: {error}"),
            };
            exits.lock().unwrap_or_else(PoisonError::into_inner).insert(handle, Some(reason));
            // A killed executor does not clean up; nothing in there is needed any more.
            let tidied = move || {
                local_work::remove(&directory);
                directory.parent().map_or(Ok(()), prune)
            };
            let pruned = tokio::task::spawn_blocking(tidied).await;
            if let Ok(Err(error)) = pruned {
                tracing::warn!(%error, "old directories of executors could not be removed");
            }
        });
    }
}

#[async_trait]
impl Launcher for LocalLauncher {
    fn name(&self) -> &'static str {
        "local"
    }

    async fn launch(&self, request: &LaunchRequest) -> Result<String, LaunchError> {
        let unavailable = |error: io::Error| LaunchError::Unavailable(error.to_string());
        let directory = self.directory(request.task_id, request.lease_token);
        if !self.program.is_file() {
            return Err(LaunchError::Refused(format!("{} does not exist", self.program.display())));
        }
        std::fs::create_dir_all(&self.run_directory).map_err(unavailable)?;
        match std::fs::create_dir(&directory) {
            Ok(()) => {}
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists => {
                let found = self.find(request.task_id, request.lease_token).await?;
                return found
                    .ok_or_else(|| LaunchError::Unavailable("an earlier launch died half-way".into()));
            }
            Err(error) => return Err(unavailable(error)),
        }
        let child = self.spawn(request, &directory).map_err(|error| {
            // It never ran; what it said about itself would point at nobody.
            local_work::remove(&directory);
            let _ = std::fs::remove_dir_all(&directory);
            unavailable(error)
        })?;
        let handle = read_birth(&directory)
            .ok_or_else(|| LaunchError::Unavailable("the executor did not say who it is".into()))?;
        self.watch(child, handle.clone(), directory);
        Ok(handle)
    }

    async fn find(&self, task_id: TaskId, lease_token: i64) -> Result<Option<String>, LaunchError> {
        let directory = self.directory(task_id, lease_token);
        let deadline = tokio::time::Instant::now() + BIRTH_PATIENCE;
        // Another call may be between the claim and the birth.
        while directory.is_dir() && tokio::time::Instant::now() < deadline {
            if let Some(handle) = read_birth(&directory) {
                return Ok(Some(handle));
            }
            tokio::time::sleep(POLL).await;
        }
        Ok(None)
    }

    async fn describe(&self, handles: &[String]) -> Result<Vec<ExecutorFate>, LaunchError> {
        let fate = |handle: &String| match Identity::parse(handle) {
            None => ExecutorFate::Unknown,
            Some(identity) if identity.is_alive() => ExecutorFate::Running,
            Some(_) => match self.exits().get(handle) {
                // It has ended, but how is not collected yet: that takes a moment, and the reason is kept for good.
                Some(None) => ExecutorFate::Running,
                Some(Some(reason)) => ExecutorFate::Stopped { reason: reason.clone() },
                None => ExecutorFate::Stopped { reason: "the process is gone".into() },
            },
        };
        Ok(handles.iter().map(fate).collect())
    }

    async fn stop(&self, handle: &str, reason: &str) -> Result<(), LaunchError> {
        let Some(identity) = Identity::parse(handle).filter(Identity::is_alive) else { return Ok(()) };
        tracing::info!(executor.handle = handle, reason, "stopping an executor");
        // It may end between the look and the signal.
        let _ = kill(identity.pid, Signal::SIGTERM);
        let grace = self.stop_grace;
        tokio::spawn(async move {
            let deadline = tokio::time::Instant::now() + grace;
            while identity.is_alive() {
                if tokio::time::Instant::now() > deadline {
                    let _ = killpg(identity.pid, Signal::SIGKILL);
                    return;
                }
                tokio::time::sleep(POLL).await;
            }
        });
        Ok(())
    }
}

/// A process of this machine, told apart from a later one with the same pid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Identity {
    pid: Pid,
    started: u64,
}

impl Identity {
    fn parse(handle: &str) -> Option<Self> {
        let (pid, started) = handle.split_once(':')?;
        let pid: i32 = pid.parse().ok()?;
        Some(Self { pid: Pid::from_raw(pid), started: started.parse().ok()? }).filter(|_| pid > 1)
    }

    /// Reads `/proc/<pid>/stat`; the name in it may contain anything. Also whether it still runs.
    fn from_stat(stat: &str) -> Option<(Self, bool)> {
        let (pid, rest) = stat.split_once(' ')?;
        let mut fields = rest.rsplit_once(')')?.1.split_whitespace();
        let status = fields.next()?;
        // Field 22 of all; the status is the third.
        let started = fields.nth(18)?.parse().ok()?;
        Some((Self { pid: Pid::from_raw(pid.parse().ok()?), started }, !matches!(status, "Z" | "X")))
    }

    fn is_alive(&self) -> bool {
        std::fs::read_to_string(format!("/proc/{}/stat", self.pid))
            .ok()
            .and_then(|stat| Self::from_stat(&stat))
            .is_some_and(|(found, is_running)| found == *self && is_running)
    }
}

fn read_birth(directory: &Path) -> Option<String> {
    let stat = std::fs::read_to_string(directory.join(BIRTH)).ok()?;
    let (identity, _) = Identity::from_stat(&stat)?;
    Some(format!("{}:{}", identity.pid, identity.started))
}

/// Whether the executor of an attempt is alive.
fn is_running(attempt: &Path) -> bool {
    read_birth(attempt).and_then(|handle| Identity::parse(&handle)).is_some_and(|one| one.is_alive())
}

/// Removes what old attempts left. A directory changes for the last time when its executor has ended.
fn prune(run_directory: &Path) -> io::Result<()> {
    let mut ended = Vec::new();
    for entry in std::fs::read_dir(run_directory)? {
        let path = entry?.path();
        // Another launcher may be removing it.
        let Ok(modified) = path.metadata().and_then(|meta| meta.modified()) else { continue };
        let age = modified.elapsed().unwrap_or_default();
        if age > KEPT_AT_LEAST && !is_running(&path) {
            ended.push((age, path));
        }
    }
    ended.sort();
    for (newer, (age, path)) in ended.into_iter().enumerate() {
        if newer >= KEPT_ATTEMPTS_MAX || age > KEPT_AT_MOST {
            match std::fs::remove_dir_all(path) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
                _ => {}
            }
        }
    }
    Ok(())
}

/// Runs in the forked child: a session of its own, so that a Ctrl-C for us does not reach it, and its identity on
/// disk before it can act.
fn announce_birth(birth: RawFd) -> io::Result<()> {
    let mut buffer = [0_u8; 1024];
    // SAFETY: system calls on a local buffer and open descriptors.
    unsafe {
        if libc::setsid() < 0 {
            return Err(io::Error::last_os_error());
        }
        let stat = libc::open(c"/proc/self/stat".as_ptr(), libc::O_RDONLY | libc::O_CLOEXEC);
        let length = libc::read(stat, buffer.as_mut_ptr().cast(), buffer.len());
        libc::close(stat);
        if length <= 0 || libc::write(birth, buffer.as_ptr().cast(), length.cast_unsigned()) != length {
            return Err(io::Error::last_os_error());
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_ended_long_ago_or_under_many_newer_ones_is_removed_and_what_runs_is_not() {
        let directory = tempfile::tempdir().unwrap();
        let add = |name: &str, age: Duration, stat: &str| {
            let path = directory.path().join(name);
            std::fs::create_dir(&path).unwrap();
            std::fs::write(path.join(BIRTH), stat).unwrap();
            let then = std::fs::metadata(&path).unwrap().modified().unwrap() - age;
            File::open(&path).unwrap().set_modified(then).unwrap();
        };
        let ended = "2147480000 (x) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let ours = std::fs::read_to_string("/proc/self/stat").unwrap();
        add("fresh", Duration::ZERO, ended);
        add("old", KEPT_AT_MOST + KEPT_AT_LEAST, ended);
        add("old-and-running", KEPT_AT_MOST + KEPT_AT_LEAST, &ours);
        for number in 0..KEPT_ATTEMPTS_MAX + 2 {
            let age = KEPT_AT_LEAST + Duration::from_secs(60 + number as u64);
            add(&format!("attempt-{number:03}"), age, ended);
        }
        prune(directory.path()).unwrap();
        let is_left = |name: &str| directory.path().join(name).exists();
        assert!(is_left("fresh") && is_left("old-and-running") && !is_left("old"));
        assert!(is_left("attempt-000") && is_left("attempt-199"));
        assert!(!is_left("attempt-200") && !is_left("attempt-201"));
    }

    #[test]
    fn identities_are_read_in_spite_of_strange_names() {
        let stat = "42 (a) b (c) S 1 42 42 0 -1 4194304 1 0 0 0 0 0 0 0 20 0 1 0 777 1 1";
        let (identity, is_running) = Identity::from_stat(stat).unwrap();
        assert_eq!((identity.pid.as_raw(), identity.started, is_running), (42, 777, true));
        assert_eq!(Identity::parse("42:777"), Some(identity));
        assert_eq!(Identity::parse("1:777"), None);
        assert_eq!(Identity::parse("x"), None);
    }
}
