//! Child processes that never outlive us, and that can run as another account.
//!
//! Linux sends the parent-death signal when the *thread* that forked ends, so every child is forked by one thread
//! that lives as long as the process.

use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::Path;
use std::process::ExitStatus;
use std::sync::{LazyLock, Mutex, mpsc};
use std::time::Duration;

use nix::sys::prctl;
use nix::sys::signal::{Signal, kill, killpg};
use nix::unistd::{Pid, getppid};
use tokio::process::{Child, Command};
use tokio::runtime::Handle;
use tokio::sync::oneshot;

/// An account that children run as.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Account {
    /// Numeric user id.
    pub uid: u32,
    /// Numeric group id.
    pub gid: u32,
}

struct Order {
    command: Command,
    runtime: Handle,
    answer: oneshot::Sender<io::Result<Child>>,
}

static NURSERY: LazyLock<Mutex<mpsc::Sender<Order>>> = LazyLock::new(|| {
    let (orders, inbox) = mpsc::channel::<Order>();
    std::thread::Builder::new()
        .name("nursery".into())
        .spawn(move || {
            for mut order in inbox {
                let _entered = order.runtime.enter();
                // A caller that went away drops the child, which its `kill_on_drop` setting decides about.
                let _ = order.answer.send(order.command.spawn());
            }
        })
        .expect("the process may start one thread");
    Mutex::new(orders)
});

/// Starts a child in a process group of its own. It gets `on_our_death` when this process ends in any way.
pub async fn spawn(mut command: Command, on_our_death: Signal) -> io::Result<Child> {
    let parent = Pid::this();
    command.process_group(0);
    // SAFETY: between fork and exec only async-signal-safe calls are made: prctl and getppid.
    unsafe {
        command.as_std_mut().pre_exec(move || {
            prctl::set_pdeathsig(on_our_death)?;
            if getppid() == parent {
                Ok(())
            } else {
                // We died before the signal was set: do not start an orphan.
                Err(io::Error::from_raw_os_error(libc::ESRCH))
            }
        });
    }
    let (answer, spawned) = oneshot::channel();
    let order = Order { command, runtime: Handle::current(), answer };
    NURSERY.lock().expect("sending does not panic").send(order).map_err(io::Error::other)?;
    spawned.await.map_err(io::Error::other)?
}

/// Makes the command run as the account, without supplementary groups.
pub fn run_as(command: &mut Command, account: Option<Account>) {
    if let Some(Account { uid, gid }) = account {
        // Setting the user id as root also drops the supplementary groups.
        command.uid(uid).gid(gid);
    }
}

/// Sends the signals one after the other until the child has ended. Each has its time; the last resort is SIGKILL.
pub async fn stop(child: &mut Child, signals: &[(Signal, Duration)]) -> io::Result<ExitStatus> {
    for (signal, patience) in signals {
        signal_child(child, *signal);
        if let Ok(status) = tokio::time::timeout(*patience, child.wait()).await {
            return status;
        }
    }
    signal_group(child, Signal::SIGKILL);
    child.wait().await
}

/// Sends a signal to the child alone. A child that has ended is success.
pub fn signal_child(child: &Child, signal: Signal) {
    if let Some(pid) = pid_of(child) {
        let _ = kill(pid, signal);
    }
}

/// Sends a signal to the child's whole process group.
pub fn signal_group(child: &Child, signal: Signal) {
    if let Some(pid) = pid_of(child) {
        let _ = killpg(pid, signal);
    }
}

fn pid_of(child: &Child) -> Option<Pid> {
    // `id` is `None` once the child was waited for: its number may already be somebody else's.
    child.id().and_then(|id| i32::try_from(id).ok()).map(Pid::from_raw)
}

/// Whether a process exists whose command line contains the text.
pub fn is_alive(pid: i32, command_line_part: &str) -> bool {
    std::fs::read(Path::new("/proc").join(pid.to_string()).join("cmdline"))
        .is_ok_and(|line| String::from_utf8_lossy(&line).contains(command_line_part))
}
