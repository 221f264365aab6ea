//! Why a step or the attempt did not work.

use plumbline_core::protocol::FailureKind;

/// What ends a step early.
#[derive(Debug, thiserror::Error)]
pub(crate) enum StepError {
    /// The same would happen again.
    #[error("{0}")]
    Permanent(String),
    /// May work another time.
    #[error("{0}")]
    Transient(String),
    /// Told to stop.
    #[error("the run was cancelled")]
    Cancelled,
    /// The wall-clock limit of the attempt passed.
    #[error("the attempt took longer than its limit of {0} seconds")]
    TimedOut(u64),
    /// Another attempt owns the task, or the server has ended this one: nothing may be reported any more.
    #[error("the attempt does not own its task any more: {0}")]
    Fenced(String),
}

impl StepError {
    /// What to report; `None` if nothing may be reported.
    pub(crate) fn kind(&self) -> Option<FailureKind> {
        match self {
            Self::Permanent(_) => Some(FailureKind::Permanent),
            Self::Transient(_) => Some(FailureKind::Transient),
            Self::Cancelled => Some(FailureKind::Cancelled),
            Self::TimedOut(_) => Some(FailureKind::TimedOut),
            Self::Fenced(_) => None,
        }
    }

    /// A failure of this machine: disk, processes.
    pub(crate) fn machine(what: &str) -> impl FnOnce(std::io::Error) -> Self {
        let what = what.to_owned();
        move |error| Self::Transient(format!("{what}: {error}"))
    }
}
