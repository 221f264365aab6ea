//! What can go wrong with a task, on the wire.

use axum::http::StatusCode;
use plumbline_core::runs::RunError;
use plumbline_core::tasks::TaskError;

use super::Problem;

impl From<TaskError> for Problem {
    fn from(error: TaskError) -> Self {
        match error {
            TaskError::NotFound => Self::not_found("task"),
            TaskError::NotReplayable(reason) => Self::new(
                StatusCode::CONFLICT,
                "task-not-replayable",
                "Task cannot be replayed",
                format!("This task cannot be replayed: {reason}."),
            ),
            TaskError::LeaseLost => RunError::LeaseLost.into(),
            TaskError::Access(error) => error.into(),
            TaskError::Db(error) => error.into(),
        }
    }
}
