//! Short tasks that reach the outside.

use plumbline_core::Deps;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use serde_json::Value;

/// Does the work of one short task.
pub async fn handle(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let _ = deps;
    Err(FailedAttempt::Permanent(format!("{} is not handled here", task.kind.as_str())))
}
