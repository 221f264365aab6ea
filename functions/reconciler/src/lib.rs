//! The reconciler: runs every sweep, then the claim routine. It does not assume that it is alone.

use plumbline_core::Deps;
use plumbline_core::ports::Launcher;
use plumbline_core::sweeps::{self, SweepReport};
use plumbline_worker::{Outbound, Worked};

/// What one tick did.
#[derive(Clone, Debug)]
pub struct Reconciled {
    /// Each sweep.
    pub sweeps: Vec<SweepReport>,
    /// The claim routine; an error if the database was away.
    pub worked: Result<Worked, String>,
}

/// One tick. What fails is logged and found again by the next tick.
pub async fn handle(deps: &Deps, launcher: &dyn Launcher, outbound: &dyn Outbound) -> Reconciled {
    let sweeps = sweeps::run_all(deps, launcher).await;
    let worked = plumbline_worker::handle(deps, launcher, outbound).await.map_err(|error| {
        tracing::error!(%error, "the claim routine failed");
        error.to_string()
    });
    Reconciled { sweeps, worked }
}
