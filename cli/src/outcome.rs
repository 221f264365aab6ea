//! How a command ended, as an exit code that scripts can rely on.

use std::process::ExitCode;

/// How a command ended without an error.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// What was asked for is done: exit code 0.
    Done,
    /// The command worked, and what it looked at failed (a run, a task, an audit chain): exit code 1.
    Failed,
    /// A run waits for approval: exit code 3.
    WaitsForApproval,
    /// The person pressed Ctrl-C; what runs at the server goes on: exit code 130, as shells do.
    Interrupted,
    /// The tool that ran for the person ended with this code.
    Tool(u8),
}

impl Outcome {
    /// The process's exit code. 2 is usage, and belongs to [`crate::failure::Usage`].
    pub fn exit_code(self) -> ExitCode {
        ExitCode::from(match self {
            Self::Done => 0,
            Self::Failed => 1,
            Self::WaitsForApproval => 3,
            Self::Interrupted => 130,
            Self::Tool(code) => code,
        })
    }
}
