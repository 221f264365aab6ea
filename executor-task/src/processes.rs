//! Finds and ends every process that a child left behind, whatever it did to hide: double forks and new sessions
//! stay below us because we are the subreaper, and a user of its own marks the rest.

use std::collections::HashMap;
use std::time::Duration;

use nix::sys::signal::{Signal, kill};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use tokio::time::Instant;

use crate::error::StepError;
use crate::isolation::Isolation;

/// What ended by itself is no finding: terraform's plugins need a moment after it.
const SETTLE: Duration = Duration::from_millis(300);
/// A process that the kernel has not ended after this long cannot be ended.
const KILL_PATIENCE: Duration = Duration::from_secs(20);
const POLL: Duration = Duration::from_millis(10);
/// Names in the finding.
const NAMED_MAX: usize = 10;

/// One process of the child.
#[derive(Clone, Debug)]
struct Leftover {
    pid: i32,
    name: String,
}

/// Ends everything that the child left. Returns the names of what would not go by itself.
///
/// Call it only while no child is awaited: it reaps every zombie.
pub(crate) async fn end_leftovers(isolation: Isolation) -> Result<Vec<String>, StepError> {
    let settle = Instant::now() + SETTLE;
    let mut found = scan(isolation);
    while !found.is_empty() && Instant::now() < settle {
        tokio::time::sleep(POLL).await;
        found = scan(isolation);
    }
    let names = found.iter().take(NAMED_MAX).map(|left| format!("{} ({})", left.name, left.pid)).collect();
    let deadline = Instant::now() + KILL_PATIENCE;
    while !found.is_empty() {
        if Instant::now() > deadline {
            return Err(StepError::Transient("processes of the child could not be ended".into()));
        }
        for left in &found {
            // It may have ended since the scan.
            let _ = kill(Pid::from_raw(left.pid), Signal::SIGKILL);
        }
        tokio::time::sleep(POLL).await;
        found = scan(isolation);
    }
    Ok(names)
}

/// Every living process below us or of the child's user, after reaping the dead ones.
fn scan(isolation: Isolation) -> Vec<Leftover> {
    while waitpid(None, Some(WaitPidFlag::WNOHANG)).is_ok_and(|status| status.pid().is_some()) {}
    let own = std::process::id().cast_signed();
    let table = table();
    let below_us = |mut pid: i32| {
        for _ in 0..table.len() {
            match table.get(&pid) {
                Some(entry) if entry.parent == own => return true,
                Some(entry) => pid = entry.parent,
                None => return false,
            }
        }
        false
    };
    let mut found: Vec<Leftover> = table
        .iter()
        .filter(|(pid, entry)| {
            **pid != own && entry.alive && (Some(entry.uid) == isolation.uid() || below_us(**pid))
        })
        .map(|(pid, entry)| Leftover { pid: *pid, name: entry.name.clone() })
        .collect();
    found.sort_by_key(|left| left.pid);
    found
}

struct Entry {
    parent: i32,
    uid: u32,
    name: String,
    alive: bool,
}

fn table() -> HashMap<i32, Entry> {
    let Ok(entries) = std::fs::read_dir("/proc") else { return HashMap::new() };
    entries
        .flatten()
        .filter_map(|entry| entry.file_name().to_str()?.parse::<i32>().ok())
        .filter_map(|pid| Some((pid, entry(&std::fs::read_to_string(format!("/proc/{pid}/status")).ok()?)?)))
        .collect()
}

/// Reads `/proc/<pid>/status`.
fn entry(status: &str) -> Option<Entry> {
    let field = |name: &str| status.lines().find_map(|line| line.strip_prefix(name)).map(str::trim);
    Some(Entry {
        parent: field("PPid:")?.parse().ok()?,
        uid: field("Uid:")?.split_whitespace().next()?.parse().ok()?,
        name: field("Name:")?.to_owned(),
        alive: !field("State:")?.starts_with(['Z', 'X']),
    })
}
