//! The queue. A task is a row; live rows in `tasks`, finished ones in `finished_tasks`.
//!
//! Invariants: a task is enqueued in the transaction of the business row it follows from. Only claimable tasks are
//! due. At most one attempt holds a task: every write after a claim carries the lease token, and zero rows updated
//! means that the lease was lost. `queue_units.running` equals the number of running tasks of the unit and class.

mod model;
mod rules;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
mod store;

pub use model::{
    Backoff, ClaimedTask, Enqueued, FailedAttempt, FinishedOutcome, Lease, LeasePhase, NewTask, TaskClass,
    TaskError, TaskKind, TaskStatus, TaskView,
};
pub use rules::{attempts_max, backoff};
