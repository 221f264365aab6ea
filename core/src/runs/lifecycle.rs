//! The statuses of a run and the moves between them. SQL guards are derived from this table.

use serde::{Deserialize, Serialize};

/// Where a run stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize, utoipa::ToSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Asked for; waits for its workspace or for an executor.
    Pending,
    /// An executor prepares.
    Running,
    /// The plan is being made.
    Planning,
    /// The plan is there. A plan-only run rests here.
    Planned,
    /// A person must decide.
    AwaitingApproval,
    /// The approved plan is being carried out.
    Applying,
    /// Done.
    Applied,
    /// Did not work.
    Failed,
    /// Withdrawn before it changed anything.
    Cancelled,
}

impl RunStatus {
    /// Every status.
    pub const ALL: [Self; 9] = [
        Self::Pending,
        Self::Running,
        Self::Planning,
        Self::Planned,
        Self::AwaitingApproval,
        Self::Applying,
        Self::Applied,
        Self::Failed,
        Self::Cancelled,
    ];

    /// Where a run may go from here. An empty slice is the end.
    pub fn next(self) -> &'static [Self] {
        match self {
            Self::Pending => &[Self::Running, Self::Failed, Self::Cancelled],
            Self::Running => {
                &[Self::Planning, Self::Planned, Self::AwaitingApproval, Self::Failed, Self::Cancelled]
            }
            Self::Planning => &[Self::Planned, Self::AwaitingApproval, Self::Failed, Self::Cancelled],
            Self::Planned => &[Self::AwaitingApproval, Self::Failed, Self::Cancelled],
            Self::AwaitingApproval => &[Self::Applying, Self::Failed, Self::Cancelled],
            // Cancelling mid-apply would leave real resources half-made: it ends as failed, with a reason.
            Self::Applying => &[Self::Applied, Self::Failed],
            Self::Applied | Self::Failed | Self::Cancelled => &[],
        }
    }

    /// Whether the move is legal.
    pub fn may_become(self, to: Self) -> bool {
        self.next().contains(&to)
    }

    /// The words of every status that may become this one: the SQL guard `status = ANY($n)`.
    pub fn sources(self) -> Vec<&'static str> {
        Self::ALL.into_iter().filter(|from| from.may_become(self)).map(Self::as_str).collect()
    }

    /// Whether nothing can happen to the run any more.
    pub fn is_terminal(self) -> bool {
        self.next().is_empty()
    }

    /// The word in the database and on the wire.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Running => "running",
            Self::Planning => "planning",
            Self::Planned => "planned",
            Self::AwaitingApproval => "awaiting_approval",
            Self::Applying => "applying",
            Self::Applied => "applied",
            Self::Failed => "failed",
            Self::Cancelled => "cancelled",
        }
    }

    /// `None` for an unknown word.
    pub fn parse(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|status| status.as_str() == word)
    }
}

impl std::fmt::Display for RunStatus {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.as_str())
    }
}
