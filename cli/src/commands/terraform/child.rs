//! The tool as a child of ours: it has the terminal, and every signal reaches it once.

use std::ffi::OsString;
use std::fs::File;
use std::os::unix::process::ExitStatusExt as _;
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use anyhow::Context as _;
use nix::sys::signal::{Signal, kill};
use nix::unistd::{Pid, getpgrp, tcgetpgrp};
use tokio::process::Command;
use tokio::signal::unix::{Signal as Arrivals, SignalKind, signal};

use crate::failure::Usage;

/// What may end us. From here on it does not.
pub(super) struct Signals {
    interrupt: Arrivals,
    terminate: Arrivals,
    hangup: Arrivals,
    quit: Arrivals,
}

impl Signals {
    pub(super) fn catch() -> std::io::Result<Self> {
        Ok(Self {
            interrupt: signal(SignalKind::interrupt())?,
            terminate: signal(SignalKind::terminate())?,
            hangup: signal(SignalKind::hangup())?,
            quit: signal(SignalKind::quit())?,
        })
    }

    /// The next one.
    pub(super) async fn next(&mut self) -> Signal {
        tokio::select! {
            _ = self.interrupt.recv() => Signal::SIGINT,
            _ = self.terminate.recv() => Signal::SIGTERM,
            _ = self.hangup.recv() => Signal::SIGHUP,
            _ = self.quit.recv() => Signal::SIGQUIT,
        }
    }
}

/// Runs the tool to its end. Its exit code, as a shell would give it.
pub(super) async fn run(
    tool: &Path,
    args: &[OsString],
    environment: Vec<(OsString, OsString)>,
    signals: &mut Signals,
) -> anyhow::Result<u8> {
    let mut child = Command::new(tool)
        .args(args)
        .envs(environment)
        .spawn()
        .with_context(|| format!("cannot start {}", tool.display()))?;
    loop {
        tokio::select! {
            status = child.wait() => return Ok(code(status?)),
            signal = signals.next() => {
                // A terminal sends these to the whole group, and a second one makes terraform drop everything.
                if signal != Signal::SIGTERM && has_terminal() {
                    continue;
                }
                if let Some(pid) = child.id().and_then(|pid| i32::try_from(pid).ok()) {
                    // It may have ended by itself just now.
                    let _ = kill(Pid::from_raw(pid), signal);
                }
            }
        }
    }
}

/// Whether we are what a terminal's keys reach.
fn has_terminal() -> bool {
    File::open("/dev/tty").is_ok_and(|terminal| tcgetpgrp(&terminal) == Ok(getpgrp()))
}

fn code(status: ExitStatus) -> u8 {
    let code = status.code().or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(1)
}

/// The tool that was asked for: a path, or a program on the PATH. Without a wish, whichever is there.
pub(super) fn find(wish: Option<&str>) -> anyhow::Result<PathBuf> {
    let names: &[&str] = match &wish {
        Some(wish) if wish.contains('/') => return Ok(PathBuf::from(wish)),
        Some(wish) => &[wish],
        None => &["terraform", "tofu"],
    };
    let path = std::env::var_os("PATH").unwrap_or_default();
    let candidates =
        names.iter().flat_map(|name| std::env::split_paths(&path).map(move |place| place.join(name)));
    let mut found = candidates.filter(|candidate| candidate.is_file());
    found.next().ok_or_else(|| {
        Usage::error(format!("{} is not on the PATH; name it with --tool", names.join(" or ")))
    })
}
