//! Runs: one pass of a command over a workspace.
//!
//! Invariants: a status changes only along [`RunStatus::next`], by one guarded statement. At most one run that can
//! change a workspace is active in it. What is applied is what was approved: approval stores a digest of everything
//! that was shown, and applying checks it. A begun apply is never tried again. Anything unreadable is *not* "no
//! changes".

pub mod lifecycle;
mod model;
mod plan;
pub mod redaction;
mod rules;

#[cfg(feature = "store")]
pub mod approvals;
#[cfg(feature = "store")]
pub mod artifacts;
#[cfg(feature = "store")]
pub mod downloads;
#[cfg(feature = "store")]
mod ending;
#[cfg(feature = "store")]
mod error;
#[cfg(feature = "store")]
pub mod locks;
#[cfg(feature = "store")]
pub mod logs;
#[cfg(feature = "store")]
pub mod plans;
#[cfg(feature = "store")]
mod reading;
#[cfg(feature = "store")]
pub mod reports;
#[cfg(feature = "store")]
pub mod service;
#[cfg(feature = "store")]
pub mod steps;
#[cfg(feature = "store")]
mod store;
#[cfg(feature = "store")]
pub mod sweeps;
#[cfg(feature = "store")]
mod sweeps_store;
#[cfg(feature = "store")]
pub mod tasks;
#[cfg(test)]
mod tests;
#[cfg(feature = "store")]
pub mod touched;
#[cfg(feature = "store")]
pub mod variables;
#[cfg(feature = "store")]
mod waiting;

pub use crate::variables::RunVariable;
#[cfg(feature = "store")]
pub use error::RunError;
pub use lifecycle::RunStatus;
pub use model::{
    ArtifactName, ArtifactView, EndReason, LogPage, NewRun, Run, RunFilter, Step, StepPhase, Waiting,
};
pub use plan::{PlanSummary, PlanUnreadable, ResourceChange, read_changes, summarise};
pub use rules::{ApprovalFacts, approval_digest, has_changes, steps_of};
