//! How often a task is tried, how long it waits in between, and what follows when an attempt falls silent.

use std::time::Duration;

use super::{Backoff, FailedAttempt, LeasePhase, TaskClass, TaskKind};
use crate::access::Permission;

/// How many attempts a kind has.
pub fn attempts_max(kind: TaskKind) -> i32 {
    match kind {
        TaskKind::RunPlan => 3,
        // Attempts before the apply has begun; a begun one is never repeated.
        TaskKind::RunApply => 3,
        TaskKind::RepositoryDiscover
        | TaskKind::WorkspaceBranches
        | TaskKind::WorkspaceImport
        | TaskKind::GitCredentialTest
        | TaskKind::AwsAccountTest
        | TaskKind::AzureSubscriptionTest
        | TaskKind::GcpProjectTest
        | TaskKind::ClusterTest
        | TaskKind::SlackTest
        | TaskKind::InfracostTest
        | TaskKind::IssuerKeys
        | TaskKind::StateIndex => 2,
    }
}

/// What trying a dead letter of this kind once more needs: as much as the first time. `None`: nobody can. A run ends with
/// its task; what repeats it is a new run.
pub(super) fn replay_needs(kind: TaskKind) -> Option<Permission> {
    match kind {
        TaskKind::RunPlan | TaskKind::RunApply => None,
        TaskKind::WorkspaceBranches | TaskKind::StateIndex => Some(Permission::ReplayTasks),
        TaskKind::RepositoryDiscover | TaskKind::WorkspaceImport => Some(Permission::AdministerWorkspaces),
        TaskKind::GitCredentialTest => Some(Permission::AdministerGitCredentials),
        TaskKind::AwsAccountTest
        | TaskKind::AzureSubscriptionTest
        | TaskKind::GcpProjectTest
        | TaskKind::ClusterTest => Some(Permission::AdministerCloudAccounts),
        TaskKind::SlackTest | TaskKind::InfracostTest => Some(Permission::AdministerIntegrations),
        TaskKind::IssuerKeys => Some(Permission::AdministerKeys),
    }
}

/// The wait before the next attempt: exponential, capped, with full jitter. `jitter` is in `0.0..1.0`; `attempts` is
/// how many were made.
pub fn backoff(attempts: i32, base: Duration, max: Duration, jitter: f64) -> Duration {
    let doublings = u32::try_from(attempts.saturating_sub(1)).unwrap_or(0).min(30);
    let ceiling = base.saturating_mul(1 << doublings).min(max);
    ceiling.mul_f64(jitter.clamp(0.0, 1.0))
}

/// How long work waits that was refused for now.
pub const NOT_BEGUN_DELAY: Duration = Duration::from_secs(5);

/// What follows from a failed attempt, given the wait that [`backoff`] would impose.
pub fn after_failure(failure: &FailedAttempt, attempts: i32, attempts_max: i32, wait: Duration) -> Backoff {
    match failure {
        FailedAttempt::Permanent(_) => Backoff::DeadLettered,
        FailedAttempt::Retry(_) if attempts >= attempts_max => Backoff::DeadLettered,
        FailedAttempt::Retry(_) => Backoff::Requeued(wait),
        FailedAttempt::NotBegun(_) => Backoff::GivenBack(NOT_BEGUN_DELAY),
    }
}

/// How many executors of one task may be launched without reporting for work. An image that cannot start, or a network
/// that lets it reach nobody, is not cured by the next launch.
pub const UNSTARTED_MAX: i64 = 20;

/// What is known of the executor of an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AttemptExecutor {
    /// There is none: the worker itself runs the task, or died before it launched one.
    None,
    /// It may still act.
    MayLive,
    /// The platform says that it cannot act any more.
    Stopped,
}

/// An attempt that the lease sweep looks at.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Silent {
    /// What the task does.
    pub kind: TaskKind,
    /// Where the attempt stands.
    pub phase: LeasePhase,
    /// Whether an apply has begun to change things.
    pub apply_begun: bool,
    /// What is known of its executor.
    pub executor: AttemptExecutor,
    /// Whether the lease has run out, the grace after an outage included.
    pub lease_expired: bool,
    /// Whether the wall-clock limit of the attempt has passed.
    pub wall_clock_passed: bool,
    /// Executors of this task that were launched and never traded their ticket, this attempt's included.
    pub unstarted: i64,
}

/// What the lease sweep does about an attempt.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Nothing yet.
    Leave,
    /// It provably never began: void its ticket and queue the task again; the attempt does not count.
    GiveBack,
    /// It never began either, like too many before it: a dead letter.
    GiveUp,
    /// Ask its executor to stop and look again later.
    StopFirst,
    /// Nothing can act under this attempt any more: a failed attempt.
    Fail,
    /// A begun apply that does not answer: it may still be changing things.
    MarkUnresponsive,
    /// A begun apply that will not answer any more: a dead letter, never repeated.
    Lost,
}

/// What follows when an attempt is silent. An expired lease is not a dead executor: what may still act is stopped
/// first, and a begun apply is given up only when the platform says that it has stopped or its wall clock has passed.
pub fn on_silence(silent: &Silent) -> Verdict {
    let stopped = silent.executor != AttemptExecutor::MayLive;
    // A worker that runs a short task itself proves nothing by having no executor: only its lease tells.
    let dead = match silent.kind.class() {
        TaskClass::Executor => {
            stopped && (silent.executor == AttemptExecutor::Stopped || silent.lease_expired)
        }
        TaskClass::Short => silent.lease_expired,
    };
    match silent.phase {
        LeasePhase::Launching if dead || silent.lease_expired => {
            if silent.unstarted >= UNSTARTED_MAX {
                Verdict::GiveUp
            } else {
                Verdict::GiveBack
            }
        }
        LeasePhase::Launching => Verdict::Leave,
        LeasePhase::Live | LeasePhase::Unresponsive if silent.apply_begun => {
            if dead || (silent.lease_expired && silent.wall_clock_passed) {
                Verdict::Lost
            } else if silent.wall_clock_passed {
                Verdict::StopFirst
            } else if silent.lease_expired && silent.phase == LeasePhase::Live {
                Verdict::MarkUnresponsive
            } else {
                Verdict::Leave
            }
        }
        // Fenced and unable to change anything, so its wall clock is proof enough.
        LeasePhase::Live | LeasePhase::Unresponsive => {
            if dead || (silent.lease_expired && silent.wall_clock_passed) {
                Verdict::Fail
            } else if silent.lease_expired || silent.wall_clock_passed {
                Verdict::StopFirst
            } else {
                Verdict::Leave
            }
        }
    }
}
