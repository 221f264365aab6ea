//! Runs one program to its end: own session, scrubbed environment, no way to new privileges; interrupted, then
//! killed when the attempt must stop; everything it left behind is ended before the caller goes on.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use crate::error::StepError;
use crate::isolation::Isolation;
use crate::logs::Log;
use crate::processes::end_leftovers;
use crate::session::{Stop, StopSignal};

/// Processes of one run, where it has a user of its own.
const PROCESSES_MAX: libc::rlim_t = 4096;
const OPEN_FILES_MAX: libc::rlim_t = 16_384;
/// Largest file that a child may write.
const FILE_BYTES_MAX: libc::rlim_t = 20 << 30;
/// After the child and all it left are gone, the pipe holds at most its own buffer.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;

/// Where standard output goes. Standard error goes to the log always.
pub(crate) enum Output<'a> {
    /// To the log, in order with standard error.
    Log,
    /// To a file of ours.
    File(File),
    /// To a reader of ours.
    Reader(&'a mut (dyn FnMut(&[u8]) + Send)),
}

/// A program to run.
pub(crate) struct Program {
    /// The executable.
    pub(crate) path: PathBuf,
    /// Its arguments. Never a secret.
    pub(crate) args: Vec<OsString>,
    /// Where it runs.
    pub(crate) directory: PathBuf,
    /// All of its environment.
    pub(crate) environment: Vec<(OsString, OsString)>,
    /// Who it is.
    pub(crate) isolation: Isolation,
    /// Whether it may use the network, where we can take it away.
    pub(crate) has_network: bool,
}

/// How a program ended.
#[derive(Debug)]
pub(crate) struct Ended {
    /// `None` if a signal ended it.
    pub(crate) code: Option<i32>,
    /// Whether we asked it to stop.
    pub(crate) stop: Option<Stop>,
    /// Processes that outlived it and had to be killed.
    pub(crate) leftovers: Vec<String>,
}

impl Ended {
    /// The error of a stopped attempt, if the program was stopped and did not finish in spite of it.
    pub(crate) fn check_stopped(&self, is_success: bool) -> Result<(), StepError> {
        match self.stop {
            Some(stop) if !is_success => Err(stop.into()),
            _ => Ok(()),
        }
    }

    /// The exit code as people say it.
    pub(crate) fn describe(&self) -> String {
        self.code
            .map_or_else(|| "was killed by a signal".into(), |code| format!("ended with exit code {code}"))
    }
}

impl Program {
    /// Runs it.
    pub(crate) async fn run(
        self,
        log: &Log,
        mut output: Output<'_>,
        stop: &StopSignal,
    ) -> Result<Ended, StepError> {
        let start = StepError::machine("a program could not be started");
        let isolation = self.isolation;
        let (mut child, mut stdout, mut stderr) = self.spawn(&mut output).map_err(start)?;
        let group = Pid::from_raw(child.id().unwrap_or_default().cast_signed());
        let (mut from_out, mut from_err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let mut stop_wanted = stop.clone();
        let (mut stopped, mut kill_at) = (None, None);
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(StepError::machine("a program was lost"))?,
                length = read(&mut stderr, &mut from_err) => feed(&mut stderr, length, &from_err, &mut |bytes| log.write(bytes)),
                length = read(&mut stdout, &mut from_out) => match &mut output {
                    Output::Reader(reader) => feed(&mut stdout, length, &from_out, reader),
                    Output::Log | Output::File(_) => feed(&mut stdout, length, &from_out, &mut |bytes| log.write(bytes)),
                },
                wanted = stop_wanted.wanted(), if stopped.is_none() => {
                    stopped = Some(wanted);
                    log.line(&format!("plumbline: stopping: {}", StepError::from(wanted)));
                    // It may have ended already.
                    let _ = killpg(group, Signal::SIGINT);
                    kill_at = stop.grace(wanted).map(|grace| tokio::time::Instant::now() + grace);
                }
                () = sleep_until(kill_at) => {
                    kill_at = None;
                    log.line("plumbline: it did not stop in time and is killed");
                    let _ = killpg(group, Signal::SIGKILL);
                }
            }
        };
        let leftovers = end_leftovers(isolation).await?;
        let drain = async {
            while stderr.is_some() {
                let length = read(&mut stderr, &mut from_err).await;
                feed(&mut stderr, length, &from_err, &mut |bytes| log.write(bytes));
            }
            while stdout.is_some() {
                let length = read(&mut stdout, &mut from_out).await;
                match &mut output {
                    Output::Reader(reader) => feed(&mut stdout, length, &from_out, reader),
                    Output::Log | Output::File(_) => {
                        feed(&mut stdout, length, &from_out, &mut |bytes| log.write(bytes))
                    }
                }
            }
        };
        let _ = tokio::time::timeout(DRAIN_PATIENCE, drain).await;
        if !leftovers.is_empty() {
            log.line(&format!(
                "plumbline: finding: processes outlived the step and were killed: {}",
                leftovers.join(", ")
            ));
        }
        Ok(Ended { code: status.code(), stop: stopped, leftovers })
    }

    fn spawn(
        self,
        output: &mut Output<'_>,
    ) -> io::Result<(tokio::process::Child, Option<Receiver>, Option<Receiver>)> {
        let mut command = tokio::process::Command::new(&self.path);
        command
            .args(&self.args)
            .current_dir(&self.directory)
            .env_clear()
            .envs(self.environment)
            .stdin(Stdio::null());
        let (stderr, stderr_writer) = pipe()?;
        let mut stdout = None;
        match output {
            Output::Log => {
                command.stdout(stderr_writer.try_clone()?);
            }
            Output::File(file) => {
                command.stdout(file.try_clone()?);
            }
            Output::Reader(_) => {
                let (reader, writer) = pipe()?;
                stdout = Some(reader);
                command.stdout(writer);
            }
        }
        command.stderr(stderr_writer);
        let (isolation, has_network) = (self.isolation, self.has_network);
        let supervisor = std::process::id().cast_signed();
        // SAFETY: the closure makes system calls only; it allocates nothing and takes no lock.
        unsafe {
            command.pre_exec(move || confine(isolation, has_network, supervisor));
        }
        // The command holds our copies of the writing ends and goes at the end of this function.
        Ok((command.spawn()?, stdout, Some(stderr)))
    }
}

fn pipe() -> io::Result<(Receiver, OwnedFd)> {
    let (reader, writer) = nix::unistd::pipe2(nix::fcntl::OFlag::O_CLOEXEC)?;
    nix::fcntl::fcntl(&reader, nix::fcntl::FcntlArg::F_SETFL(nix::fcntl::OFlag::O_NONBLOCK))?;
    Ok((Receiver::from_owned_fd(reader)?, writer))
}

async fn read(from: &mut Option<Receiver>, buffer: &mut [u8]) -> io::Result<usize> {
    match from {
        Some(receiver) => receiver.read(buffer).await,
        None => std::future::pending().await,
    }
}

fn feed(from: &mut Option<Receiver>, length: io::Result<usize>, buffer: &[u8], to: &mut dyn FnMut(&[u8])) {
    match length {
        Ok(length) if length > 0 => to(&buffer[..length]),
        Ok(_) | Err(_) => *from = None,
    }
}

async fn sleep_until(at: Option<tokio::time::Instant>) {
    match at {
        Some(at) => tokio::time::sleep_until(at).await,
        None => std::future::pending().await,
    }
}

/// Runs in the forked child before it becomes the program.
fn confine(isolation: Isolation, has_network: bool, supervisor: libc::pid_t) -> io::Result<()> {
    // SAFETY: system calls with integers and pointers to locals.
    unsafe {
        check(libc::setsid())?;
        libc::umask(0o022);
        libc::syscall(libc::SYS_close_range, 3, u32::MAX, libc::CLOSE_RANGE_CLOEXEC);
        limit(libc::RLIMIT_CORE, 0)?;
        limit(libc::RLIMIT_NOFILE, OPEN_FILES_MAX)?;
        limit(libc::RLIMIT_FSIZE, FILE_BYTES_MAX)?;
        if let Some(uid) = isolation.uid() {
            if !has_network {
                // Without the right to do this the network stays; the step needs none.
                libc::unshare(libc::CLONE_NEWNET);
            }
            limit(libc::RLIMIT_NPROC, PROCESSES_MAX)?;
            for capability in 0..64 {
                libc::prctl(libc::PR_CAPBSET_DROP, capability, 0, 0, 0);
            }
            check(libc::setgroups(0, std::ptr::null()))?;
            check(libc::setresgid(uid, uid, uid))?;
            check(libc::setresuid(uid, uid, uid))?;
        }
        check(libc::prctl(libc::PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0))?;
        // After the change of user, which would clear it: the child does not outlive a killed supervisor.
        check(libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL))?;
        if libc::getppid() != supervisor {
            return Err(io::Error::from_raw_os_error(libc::ESRCH));
        }
    }
    Ok(())
}

/// Lowers a limit; a lower hard limit than ours stays.
unsafe fn limit(resource: libc::__rlimit_resource_t, value: libc::rlim_t) -> io::Result<()> {
    // SAFETY: pointers to a local.
    unsafe {
        let mut limits = libc::rlimit { rlim_cur: 0, rlim_max: 0 };
        check(libc::getrlimit(resource, &raw mut limits))?;
        limits.rlim_max = limits.rlim_max.min(value);
        limits.rlim_cur = limits.rlim_max;
        check(libc::setrlimit(resource, &raw const limits))
    }
}

fn check(result: libc::c_int) -> io::Result<()> {
    if result < 0 { Err(io::Error::last_os_error()) } else { Ok(()) }
}
