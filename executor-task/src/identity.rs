//! On ECS an executor proves who it is. The credentials of its role never leave this process.

use plumbline_state_proxy::Pauses;
use plumbline_sts::{Credentials, TaskRole};
use tokio::time::Instant;

use crate::callback::RETRY_PAUSE_MAX;
use crate::error::StepError;

/// The credentials of this task's role; tried again while ECS does not give them.
pub(crate) async fn credentials(role: &TaskRole, deadline: Instant) -> Result<Credentials, StepError> {
    let mut pauses = Pauses::up_to(RETRY_PAUSE_MAX);
    loop {
        match role.credentials().await {
            Ok(credentials) => return Ok(credentials),
            Err(error) if pauses.would_pass(deadline) => {
                return Err(StepError::Transient(error.to_string()));
            }
            Err(error) => tracing::warn!(%error, "trying again"),
        }
        pauses.pause().await;
    }
}
