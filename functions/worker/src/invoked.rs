//! The `outbound` function as a function of its own: it may reach addresses that a tenant chose, and the worker may not.

use anyhow::Context as _;
use async_trait::async_trait;
use plumbline_core::Deps;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use plumbline_lambda::{Function, InvokeError};
use plumbline_outbound::{TaskAnswer, TaskReference};
use serde_json::Value;

use crate::Outbound;

const FUNCTION: &str = "PLUMBLINE_OUTBOUND_FUNCTION";

/// Calls the `outbound` function and waits.
#[derive(Clone, Debug)]
pub struct InvokedOutbound(Function);

impl InvokedOutbound {
    /// The given function.
    pub fn new(function: Function) -> Self {
        Self(function)
    }

    /// The function that `PLUMBLINE_OUTBOUND_FUNCTION` names.
    pub async fn from_environment() -> anyhow::Result<Self> {
        let name = std::env::var(FUNCTION)
            .with_context(|| format!("{FUNCTION} is not set: the name of the function `outbound`"))?;
        Ok(Self(Function::from_environment(name).await))
    }
}

#[async_trait]
impl Outbound for InvokedOutbound {
    async fn handle(&self, _deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        let retry = |error: &dyn std::fmt::Display| {
            tracing::warn!(task.id = %task.lease.task_id, %error, "a short task was not done");
            FailedAttempt::Retry("the function that does short tasks gave no answer".into())
        };
        let reference = TaskReference { task_id: task.lease.task_id, lease_token: task.lease.token };
        let event = serde_json::to_vec(&reference).map_err(|error| retry(&error))?;
        let answer = match self.0.invoke(event).await {
            Ok(answer) => answer,
            Err(throttled @ InvokeError::Throttled { .. }) => {
                tracing::warn!(task.id = %task.lease.task_id, error = %throttled, "a short task was not begun");
                return Err(FailedAttempt::NotBegun("the function that does short tasks is busy".into()));
            }
            Err(error) => return Err(retry(&error)),
        };
        serde_json::from_slice::<TaskAnswer>(&answer).map_err(|error| retry(&error))?.into()
    }
}
