//! The parent of every program that the supervisor starts: this program again, with nothing of the supervisor in it.
//!
//! It confines the program, passes an interrupt on to it, and ends with its exit code. If the supervisor is killed,
//! the kernel tells the keeper, and it kills the program and everything below it: a dead supervisor leaves nothing.

use std::ffi::{OsStr, OsString};
use std::io;
use std::path::Path;
use std::process::ExitCode;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::process::Command;
use tokio::signal::unix::{SignalKind, signal};

use crate::isolation::Isolation;
use crate::processes::end_leftovers;

/// The first argument of a keeper.
pub(crate) const MODE: &str = "keep";
/// Exit code when the program could not be started; the reason is on standard error.
const NOT_STARTED: u8 = 127;
/// Exit codes of programs that a signal ended begin here, as in shells.
const SIGNALLED: i32 = 128;
/// Processes of one run, where it has a user of its own.
const PROCESSES_MAX: libc::rlim_t = 4096;
const OPEN_FILES_MAX: libc::rlim_t = 16_384;
/// Largest file that a child may write.
const FILE_BYTES_MAX: libc::rlim_t = 20 << 30;

/// A command that runs the program under a keeper.
pub(crate) fn command(isolation: Isolation, has_network: bool, program: &Path, args: &[OsString]) -> Command {
    // Our own file, even when it was replaced since we started.
    let mut command = Command::new("/proc/self/exe");
    command.arg0("executor-task");
    command.arg(MODE);
    command.arg(isolation.uid().map_or_else(|| "-".into(), |uid| uid.to_string()));
    command.arg(if has_network { "network" } else { "offline" });
    command.arg(program).args(args);
    let supervisor = std::process::id().cast_signed();
    // SAFETY: the closure makes system calls only; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || {
            check(libc::setsid())?;
            end_with(supervisor, libc::SIGTERM)
        });
    }
    command
}

/// Runs as a keeper. `args` are those after [`MODE`].
pub(crate) fn keep(args: &[OsString]) -> ExitCode {
    let [uid, network, program, args @ ..] = args else { return ExitCode::from(NOT_STARTED) };
    let isolation = match uid.to_str().map(str::parse) {
        Some(Ok(uid)) => Isolation::OwnUser(uid),
        Some(Err(_)) | None => Isolation::Off,
    };
    // SAFETY: prctl with this option takes integers only.
    unsafe {
        libc::prctl(libc::PR_SET_CHILD_SUBREAPER, 1);
    }
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
    let run = |runtime: tokio::runtime::Runtime| {
        runtime.block_on(run(isolation, network == "network", program, args))
    };
    match runtime.and_then(run) {
        Ok(code) => code,
        Err(error) => {
            tracing_subscriber::fmt().with_writer(io::stderr).without_time().init();
            tracing::error!(%error, program = %program.display(), "it could not be started");
            ExitCode::from(NOT_STARTED)
        }
    }
}

async fn run(
    isolation: Isolation,
    has_network: bool,
    program: &OsStr,
    args: &[OsString],
) -> io::Result<ExitCode> {
    let (mut interrupt, mut terminate) = (signal(SignalKind::interrupt())?, signal(SignalKind::terminate())?);
    let mut command = Command::new(program);
    command.args(args);
    let keeper = std::process::id().cast_signed();
    // SAFETY: the closure makes system calls only; it allocates nothing and takes no lock.
    unsafe {
        command.pre_exec(move || confine(isolation, has_network, keeper));
    }
    let mut child = command.spawn()?;
    let group = Pid::from_raw(child.id().unwrap_or_default().cast_signed());
    loop {
        tokio::select! {
            status = child.wait() => {
                use std::os::unix::process::ExitStatusExt as _;
                let status = status?;
                let code = status.code().unwrap_or_else(|| SIGNALLED + status.signal().unwrap_or_default());
                return Ok(ExitCode::from(u8::try_from(code).unwrap_or(u8::MAX)));
            }
            _ = interrupt.recv() => {
                // It may have ended already.
                let _ = killpg(group, Signal::SIGINT);
            }
            _ = terminate.recv() => {
                let _ = killpg(group, Signal::SIGKILL);
                let _ = child.wait().await;
                // Nobody is left to tell.
                let _ = end_leftovers(isolation).await;
                return Ok(ExitCode::FAILURE);
            }
        }
    }
}

/// Runs in the forked child before it becomes the program.
fn confine(isolation: Isolation, has_network: bool, keeper: libc::pid_t) -> io::Result<()> {
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
                if libc::unshare(libc::CLONE_NEWNET) == 0 {
                    raise_loopback();
                }
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
    }
    // After the change of user, which would clear it.
    end_with(keeper, libc::SIGKILL)
}

/// Loopback is down in a new network, and some plugins talk to terraform over it. It leads to no other process than
/// those in that network.
unsafe fn raise_loopback() {
    // SAFETY: system calls with a pointer to a local; all zeros is a valid request.
    unsafe {
        let mut request: libc::ifreq = std::mem::zeroed();
        request.ifr_name[0] = b'l'.cast_signed();
        request.ifr_name[1] = b'o'.cast_signed();
        request.ifr_ifru.ifru_flags = libc::IFF_UP as libc::c_short;
        let socket = libc::socket(libc::AF_INET, libc::SOCK_DGRAM | libc::SOCK_CLOEXEC, 0);
        if socket >= 0 {
            // A plugin that needs it says what is missing.
            libc::ioctl(socket, libc::SIOCSIFFLAGS, &raw const request);
            libc::close(socket);
        }
    }
}

/// Asks the kernel for a signal when the parent dies.
fn end_with(parent: libc::pid_t, signal: libc::c_int) -> io::Result<()> {
    // SAFETY: system calls with integers.
    unsafe {
        check(libc::prctl(libc::PR_SET_PDEATHSIG, signal))?;
        // It may have died before we asked.
        if libc::getppid() != parent {
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
