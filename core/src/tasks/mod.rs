//! The queue. A task is a row; live rows in `tasks`, finished ones in `finished_tasks`.
//!
//! Invariants: a task is enqueued in the transaction of the business row it follows from. Only claimable tasks are
//! due. At most one attempt holds a task: every write after a claim carries the lease token, and zero rows updated
//! means that the lease was lost. `queue_units.running` equals the number of running tasks of the unit and class, and
//! `launch_budget.running` that of all executors' tasks: both change only in the claim and in `sql/leave.sql`.
//! Locks are taken in this order: task, queue unit, launch budget. Only the claim begins with the budget, and it waits
//! for nothing after that.

mod model;
#[cfg(feature = "store")]
pub mod operators;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod sweeps;
#[cfg(feature = "store")]
mod sweeps_store;
#[cfg(test)]
mod tests;

pub use model::{
    Backoff, ClaimedTask, Enqueued, FailedAttempt, FinishedOutcome, Lease, LeasePhase, LiveLease, NewTask,
    TaskClass, TaskError, TaskKind, TaskStatus, TaskView,
};
pub use rules::{
    AttemptExecutor, NOT_BEGUN_DELAY, Silent, UNSTARTED_MAX, Verdict, after_failure, attempts_max, backoff,
    on_silence,
};
#[cfg(feature = "store")]
pub use store::TaskFilter;
