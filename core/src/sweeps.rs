//! What the reconciler does each minute. Every sweep is itself a claim, commits by itself, and is safe at any
//! parallelism.

use std::future::Future;
use std::time::{Duration, Instant};

use crate::ports::Launcher;
use crate::{
    Deps, api_keys, audit, executors, idempotency, issuer_keys, oidc_logins, presence, rekeys, resources,
    runs, sessions, tasks, tfstates,
};

/// What became of one sweep.
#[derive(Clone, Debug)]
pub struct SweepReport {
    /// Which one.
    pub name: &'static str,
    /// How many rows it changed, or why it stopped.
    pub outcome: Result<usize, String>,
    /// How long it took.
    pub elapsed: Duration,
}

/// Runs every sweep, one after the other. One that fails does not keep the others from running: what it left is found
/// by the next tick. The order matters only for speed: fates are known before leases are judged, leases are judged
/// before unwanted executors are stopped.
pub async fn run_all(deps: &Deps, launcher: &dyn Launcher) -> Vec<SweepReport> {
    vec![
        run("executors.adopt", executors::liveness::adopt_unrecorded(deps, launcher)).await,
        run("executors.fates", executors::liveness::refresh_fates(deps, launcher)).await,
        run("tasks.leases", tasks::sweeps::judge_silent(deps)).await,
        run("executors.stop", executors::liveness::stop_unwanted(deps, launcher)).await,
        // Before waiting ones are started: those of archived units are not.
        run("runs.archived", runs::sweeps::end_archived(deps)).await,
        run("runs.waiting", runs::sweeps::start_waiting(deps)).await,
        run("runs.plan_expiry", runs::sweeps::expire_plans(deps)).await,
        run("tfstates.uploads", tfstates::service::sweep_uploads(deps)).await,
        run("resources.due", resources::sweeps::enqueue_due(deps)).await,
        run("audit.checkpoint", async { audit::service::checkpoint(deps).await.map(usize::from) }).await,
        run("sessions.retention", async { sessions::service::forget(deps).await.map(rows) }).await,
        run("oidc_logins.retention", async { oidc_logins::service::forget(deps).await.map(rows) }).await,
        run("issuer_keys.retention", async { issuer_keys::service::forget(deps).await.map(rows) }).await,
        run("presence.retention", async { presence::service::forget(deps).await.map(rows) }).await,
        run("api_keys.retention", async { api_keys::service::forget(deps).await.map(rows) }).await,
        run("idempotency.retention", async { idempotency::service::forget(deps).await.map(rows) }).await,
        run("runs.values", runs::sweeps::forget_values(deps)).await,
        run("tasks.logins", tasks::sweeps::forget_logins(deps)).await,
        run("tasks.counters", tasks::sweeps::repair_counters(deps)).await,
        run("tasks.retention", tasks::sweeps::forget_finished(deps)).await,
        // After the checkpoint: it is signed with the new key before a job says that the old ones are not needed.
        run("rekeys.reseal", rekeys::sweeps::reseal(deps)).await,
        run("tfstates.retention", tfstates::service::sweep_versions(deps)).await,
        // Last: it moves the most bytes, and must not keep the others from running.
        run("runs.logs", runs::sweeps::compact_logs(deps)).await,
    ]
}

async fn run<E: std::error::Error>(
    name: &'static str,
    sweep: impl Future<Output = Result<usize, E>>,
) -> SweepReport {
    let began = Instant::now();
    // On the heap: the sweeps' futures are large, and there are many.
    let outcome = Box::pin(sweep).await.map_err(|error| error.to_string());
    let elapsed = began.elapsed();
    match &outcome {
        Ok(0) => {}
        Ok(touched) => tracing::info!(sweep.name = name, touched, ?elapsed, "sweep"),
        Err(error) => tracing::error!(sweep.name = name, error, ?elapsed, "sweep failed"),
    }
    SweepReport { name, outcome, elapsed }
}

fn rows(count: u64) -> usize {
    usize::try_from(count).unwrap_or(usize::MAX)
}
