//! How often a task is tried, and how long it waits in between.

use std::time::Duration;

use super::TaskKind;

/// How many attempts a kind has.
pub fn attempts_max(kind: TaskKind) -> i32 {
    match kind {
        TaskKind::RunPlan => 3,
        // Attempts before the apply has begun; a begun one is never repeated.
        TaskKind::RunApply => 3,
        TaskKind::RepositoryDiscover | TaskKind::WorkspaceBranches | TaskKind::WorkspaceImport => 2,
    }
}

/// The wait before the next attempt: exponential, capped, with full jitter. `jitter` is in `0.0..1.0`; `attempts` is
/// how many were made.
pub fn backoff(attempts: i32, base: Duration, max: Duration, jitter: f64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(0).min(30);
    let ceiling = base.saturating_mul(1 << doublings).min(max);
    ceiling.mul_f64(jitter.clamp(0.0, 1.0))
}
