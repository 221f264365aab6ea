//! Launching executors for claimed tasks.

use std::time::Instant;

use futures::future::join_all;
use plumbline_core::Deps;
use plumbline_core::db::DbError;
use plumbline_core::executors::{self, ExecutorError};
use plumbline_core::ports::{LaunchError, Launcher};
use plumbline_core::tasks::{self, ClaimedTask, TaskClass};

/// Executors launched at the same time.
const BATCH: i32 = 10;

/// What became of one launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Launch {
    Started,
    Failed,
    Throttled,
}

/// Launches an executor for every task that can be claimed, until the platform asks for fewer.
pub(crate) async fn launch_due(
    deps: &Deps,
    launcher: &dyn Launcher,
    worker: &str,
    deadline: Instant,
) -> Result<usize, DbError> {
    let mut launched = 0;
    while Instant::now() < deadline {
        let batch = tasks::service::claim(&deps.db, TaskClass::Executor, worker, BATCH, &deps.limits).await?;
        if batch.is_empty() {
            break;
        }
        let launches = join_all(batch.iter().map(|task| launch(deps, launcher, task))).await;
        launched += launches.iter().filter(|launch| **launch == Launch::Started).count();
        if launches.contains(&Launch::Throttled) {
            break;
        }
    }
    Ok(launched)
}

/// Launches one executor. Whatever fails here and cannot be recorded is found by the sweep: the lease of a launch that
/// nobody traded runs out, and the attempt does not count.
async fn launch(deps: &Deps, launcher: &dyn Launcher, task: &ClaimedTask) -> Launch {
    match try_launch(deps, launcher, task).await {
        Ok(launch) => launch,
        Err(error) => {
            tracing::error!(task.id = %task.lease.task_id, %error, "a launch was left to the sweep");
            Launch::Failed
        }
    }
}

async fn try_launch(
    deps: &Deps,
    launcher: &dyn Launcher,
    task: &ClaimedTask,
) -> Result<Launch, ExecutorError> {
    let request = executors::service::prepare_launch(deps, task, launcher.name()).await?;
    match launcher.launch(&request).await {
        Ok(handle) => {
            executors::service::record_launched(deps, request.executor_id, &handle).await?;
            tracing::info!(
                task.id = %task.lease.task_id, task.kind = task.kind.as_str(), task.attempt = task.attempts,
                executor.id = %request.executor_id, executor.handle = handle,
                waited_milliseconds = u64::try_from(task.waited.as_millis()).unwrap_or(u64::MAX),
                "executor launched"
            );
            Ok(Launch::Started)
        }
        Err(error) => {
            tracing::warn!(task.id = %task.lease.task_id, %error, "an executor was not launched");
            executors::service::launch_failed(deps, task, &error).await?;
            Ok(match error {
                LaunchError::Throttled(_) => Launch::Throttled,
                LaunchError::Unavailable(_) | LaunchError::Refused(_) => Launch::Failed,
            })
        }
    }
}
