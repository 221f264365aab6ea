//! How long the emulator takes to start.

use crate::harness::{Report, median};
use crate::server::Server;

const STARTS: usize = 5;

pub(crate) async fn run(report: &mut Report) -> anyhow::Result<()> {
    let taken = Server::start_again(STARTS).await?;
    let worst = taken.iter().copied().fold(0.0, f64::max);
    let beside = format!("slowest of {STARTS}: {worst:.2} s");
    report.at_most("emulator: start to ready, cluster exists", "s", 2.0, median(taken), beside);
    Ok(())
}
