//! The document, and the machine that the figures are of.

use std::process::Command;

/// `docs/benchmarks.md`. It names no date: figures are compared by what is beside them, not by age.
pub(crate) fn document(table: &str) -> String {
    format!(
        "# Benchmarks\n\n\
         Written by `make bench`; do not edit. The budgets are those of the design. A figure is the median of interleaved\n\
         runs of release builds against a real Postgres with `fsync` on; CPU is user and system time of the server's own\n\
         process (the gateway of one machine included) or, where the object store would be counted, of the functions as\n\
         programs of their own; Postgres stands beside it. \"over\" makes the recipe fail.\n\n\
         Measured on {}.\n\n{table}",
        describe()
    )
}

fn describe() -> String {
    let cores = std::thread::available_parallelism().map_or(0, usize::from);
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpuinfo
        .lines()
        .find_map(|line| line.strip_prefix("model name")?.split_once(':'))
        .map_or("an unnamed CPU", |(_, model)| model.trim());
    let postgres = Command::new("pgbench")
        .arg("--version")
        .output()
        .ok()
        .and_then(|output| String::from_utf8(output.stdout).ok())
        .and_then(|text| text.split_whitespace().nth(2).map(str::to_owned))
        .unwrap_or_else(|| "of an unknown version".into());
    format!("{cores} cores of {model}, Postgres {postgres}")
}
