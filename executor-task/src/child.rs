//! Runs one program to its end: own session, scrubbed environment, no way to new privileges; interrupted, then
//! killed when the attempt must stop; everything it left behind is ended before the caller goes on.

use std::ffi::OsString;
use std::fs::File;
use std::io;
use std::os::fd::OwnedFd;
use std::path::PathBuf;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use tokio::io::AsyncReadExt as _;
use tokio::net::unix::pipe::Receiver;

use crate::error::StepError;
use crate::isolation::Isolation;
use crate::keeper;
use crate::logs::Log;
use crate::processes::end_leftovers;
use crate::session::{Stop, StopSignal};

/// After the child and all it left are gone, the pipe holds at most its own buffer.
const DRAIN_PATIENCE: Duration = Duration::from_secs(5);
const READ_BYTES: usize = 64 << 10;
const LAST_WORDS_BYTES_MAX: usize = 4 << 10;

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
    /// Whether we killed it because it did not stop.
    pub(crate) was_killed: bool,
    /// Processes that outlived it and had to be killed.
    pub(crate) leftovers: Vec<String>,
    /// The end of what went to the log: tells failures apart that have one exit code.
    pub(crate) last_words: String,
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
        let keeper = Pid::from_raw(child.id().unwrap_or_default().cast_signed());
        let (mut from_out, mut from_err) = (vec![0; READ_BYTES], vec![0; READ_BYTES]);
        let mut stop_wanted = stop.clone();
        let (mut stopped, mut kill_at, mut was_killed) = (None, None, false);
        let mut last_words = Vec::new();
        let mut tell = |bytes: &[u8]| {
            log.write(bytes);
            keep_end(&mut last_words, bytes);
        };
        let status = loop {
            tokio::select! {
                status = child.wait() => break status.map_err(StepError::machine("a program was lost"))?,
                length = read(&mut stderr, &mut from_err) => feed(&mut stderr, length, &from_err, &mut tell),
                length = read(&mut stdout, &mut from_out) => match &mut output {
                    Output::Reader(reader) => feed(&mut stdout, length, &from_out, reader),
                    Output::Log | Output::File(_) => feed(&mut stdout, length, &from_out, &mut tell),
                },
                wanted = stop_wanted.wanted(), if stopped.is_none() => {
                    stopped = Some(wanted);
                    log.line(&format!("plumbline: stopping: {}", StepError::from(wanted)));
                    // It may have ended already.
                    let _ = kill(keeper, Signal::SIGINT);
                    kill_at = stop.grace(wanted).map(|grace| tokio::time::Instant::now() + grace);
                }
                () = sleep_until(kill_at) => {
                    kill_at = None;
                    was_killed = true;
                    log.line("plumbline: it did not stop in time and is killed");
                    let _ = kill(keeper, Signal::SIGKILL);
                }
            }
        };
        let leftovers = end_leftovers(isolation).await?;
        let drain = async {
            while stderr.is_some() {
                let length = read(&mut stderr, &mut from_err).await;
                feed(&mut stderr, length, &from_err, &mut tell);
            }
            while stdout.is_some() {
                let length = read(&mut stdout, &mut from_out).await;
                match &mut output {
                    Output::Reader(reader) => feed(&mut stdout, length, &from_out, reader),
                    Output::Log | Output::File(_) => feed(&mut stdout, length, &from_out, &mut tell),
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
        let last_words = String::from_utf8_lossy(&last_words).into_owned();
        Ok(Ended { code: status.code(), stop: stopped, was_killed, leftovers, last_words })
    }

    fn spawn(
        self,
        output: &mut Output<'_>,
    ) -> io::Result<(tokio::process::Child, Option<Receiver>, Option<Receiver>)> {
        let mut command = keeper::command(self.isolation, self.has_network, &self.path, &self.args);
        command.current_dir(&self.directory).env_clear().envs(self.environment).stdin(Stdio::null());
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
        // The command holds our copies of the writing ends and goes at the end of this function.
        Ok((command.spawn()?, stdout, Some(stderr)))
    }
}

fn keep_end(words: &mut Vec<u8>, bytes: &[u8]) {
    words.extend_from_slice(&bytes[bytes.len().saturating_sub(LAST_WORDS_BYTES_MAX)..]);
    words.drain(..words.len().saturating_sub(LAST_WORDS_BYTES_MAX));
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
