//! Faults at named points of whole runs: the real executor, the real terraform, the real worker and emulator programs.
//!
//! A test stops a run at exactly one point (a request that [`gate::Gate`] holds, or a statement that
//! [`sql_barrier::SqlBarrier`] holds), kills or stops the victim there, lets the sweeps act, and compares what became
//! of the run with the table of `docs/faults.md`, which is [`points::POINTS`].

#![expect(clippy::unwrap_used, reason = "in a test, a panic is the report")]

mod checks;
mod cluster;
mod database_away;
mod document;
mod emulator;
mod gate;
mod large_state;
mod lost_answers;
mod machine;
mod points;
mod schedule;
mod sql_barrier;
mod stage;
mod stale;
mod states;
pub mod worker_program;

mod kills;
