//! Measures the budgets of the design and fails over budget. Words on the command line choose groups by their names;
//! only a whole run writes `docs/benchmarks.md`.
//!
//! The figure that counts is CPU time of the server's processes, or a ratio to a baseline of the same run: both stay
//! what they are on a busy machine, wall time does not.

mod audit;
mod audited_requests;
mod audited_writes;
mod cycles;
mod emulator;
mod functions;
mod harness;
mod lambda;
mod login;
mod machine;
mod neighbour;
mod processes;
mod queue;
mod runs;
mod server;
mod state;
mod terraform;

use std::process::ExitCode;

use harness::Report;

const GROUPS: [&str; 8] = ["queue", "state", "terraform", "runs", "audit", "login", "functions", "emulator"];
const DOCUMENT: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../docs/benchmarks.md");

#[tokio::main]
async fn main() -> anyhow::Result<ExitCode> {
    // Cargo adds `--bench`.
    let wanted: Vec<String> = std::env::args().skip(1).filter(|word| !word.starts_with('-')).collect();
    let mut report = Report::default();
    let mut broken = false;
    for group in GROUPS {
        if !wanted.is_empty() && !wanted.iter().any(|word| group.contains(word.as_str())) {
            continue;
        }
        eprintln!("measuring: {group}");
        if let Err(error) = Box::pin(measure(group, &mut report)).await {
            eprintln!("{group}: {error:#}");
            report.holds(group, "measured", "failed".into(), format!("{error:#}"), false);
            broken = true;
        }
    }
    if wanted.is_empty() {
        report.not_measured(
            "signed push that matches 500 workspaces",
            "≤ 60 ms server CPU",
            "webhooks do not exist yet",
        );
    }
    let table = report.table();
    eprintln!("\n{table}");
    if wanted.is_empty() && !broken {
        std::fs::write(DOCUMENT, machine::document(&table))?;
    }
    Ok(if report.is_over() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

async fn measure(group: &str, report: &mut Report) -> anyhow::Result<()> {
    match group {
        "queue" => queue::run(report).await,
        "state" => cycles::run(report).await,
        "terraform" => terraform::run(report).await,
        "runs" => runs::run(report).await,
        "audit" => {
            audit::run(report).await?;
            audited_requests::run(report).await?;
            audited_writes::run(report).await
        }
        "login" => login::run(report).await,
        "functions" => functions::run(report).await,
        "emulator" => emulator::run(report).await,
        other => anyhow::bail!("there is no group {other}"),
    }
}
