//! The run password: what a run's terraform reads the shared outputs of other workspaces with, and nothing else.
//!
//! It is not the run's token: untrusted code holds it. It works while the attempt's lease is live, for reading, through
//! `tfstate`, and only its SHA-256 is stored.

use super::service::hash;
use super::{ExecutorError, service, store};
use crate::Deps;
use crate::db::{DbError, Query};
use crate::ids::{BusinessUnitId, ExecutorId, RunId, WorkspaceId};

/// What every run password begins with.
pub const RUN_PASSWORD_PREFIX: &str = "plw_";

/// An attempt of a run that reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct RunReader {
    /// The attempt.
    pub executor_id: ExecutorId,
    /// Its unit.
    pub business_unit_id: BusinessUnitId,
    /// Its run.
    pub run_id: RunId,
    /// The run's workspace.
    pub workspace_id: WorkspaceId,
}

/// The password that a trade hands out; the same for the same nonce.
pub(super) fn password(
    deps: &Deps,
    executor: ExecutorId,
    nonce: &str,
    epoch: i32,
) -> Result<String, ExecutorError> {
    let derived = service::derive(deps, &["run password", &executor.to_string(), nonce, &epoch.to_string()])?;
    Ok([RUN_PASSWORD_PREFIX, &derived].concat())
}

/// The attempt behind a run password; `None` once its lease is lost, has run out or is to end.
pub async fn find(query: &impl Query, password: &str) -> Result<Option<RunReader>, DbError> {
    store::find_reader(query, &hash(password)).await
}
