//! What the process table says: CPU time and memory.

use anyhow::Context as _;

/// The kernel counts in these.
fn ticks_per_second() -> f64 {
    nix::unistd::sysconf(nix::unistd::SysconfVar::CLK_TCK).ok().flatten().map_or(100.0, |ticks| ticks as f64)
}

/// What follows the name in parentheses, which may contain anything.
fn stat(pid: i32) -> Option<Vec<String>> {
    let text = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    Some(text.rsplit_once(')')?.1.split_whitespace().map(str::to_owned).collect())
}

fn name(pid: i32) -> String {
    std::fs::read_to_string(format!("/proc/{pid}/comm")).unwrap_or_default().trim().to_owned()
}

/// User and system time of a process so far, with that of its ended children; in milliseconds.
pub(crate) fn cpu_milliseconds(pid: i32) -> f64 {
    let fields = stat(pid).unwrap_or_default();
    let ticks: f64 = (11..15).filter_map(|at| fields.get(at)?.parse::<f64>().ok()).sum();
    ticks * 1000.0 / ticks_per_second()
}

/// User and system time of a process alone.
pub(crate) fn own_cpu_milliseconds(pid: i32) -> f64 {
    let fields = stat(pid).unwrap_or_default();
    let ticks: f64 = (11..13).filter_map(|at| fields.get(at)?.parse::<f64>().ok()).sum();
    ticks * 1000.0 / ticks_per_second()
}

/// Every process below the given one whose name begins with `prefix`.
pub(crate) fn below(pid: i32, prefix: &str) -> Vec<i32> {
    let all: Vec<(i32, i32)> = std::fs::read_dir("/proc")
        .into_iter()
        .flatten()
        .filter_map(|entry| {
            let id: i32 = entry.ok()?.file_name().to_str()?.parse().ok()?;
            Some((id, stat(id)?.get(1)?.parse().ok()?))
        })
        .collect();
    let (mut found, mut parents) = (Vec::new(), vec![pid]);
    while let Some(parent) = parents.pop() {
        for (id, _) in all.iter().filter(|(_, its_parent)| *its_parent == parent) {
            parents.push(*id);
            if name(*id).starts_with(prefix) {
                found.push(*id);
            }
        }
    }
    found
}

/// Resident memory now and at its highest, in megabytes.
pub(crate) fn memory_megabytes(pid: i32) -> anyhow::Result<(f64, f64)> {
    let status = std::fs::read_to_string(format!("/proc/{pid}/status")).context("the process has ended")?;
    let field = |name: &str| -> Option<f64> {
        let line = status.lines().find(|line| line.starts_with(name))?;
        Some(line.split_whitespace().nth(1)?.parse::<f64>().ok()? / 1024.0)
    };
    Ok((field("VmRSS").context("no VmRSS")?, field("VmHWM").context("no VmHWM")?))
}

/// Begins the highest memory of a process anew.
pub(crate) fn forget_highest_memory(pid: i32) -> anyhow::Result<()> {
    std::fs::write(format!("/proc/{pid}/clear_refs"), "5").context("the highest memory cannot be begun anew")
}
