//! Lambda's runtime API, for the functions' own programs: the same binaries as on AWS, started here.
//!
//! One environment is one process with a runtime API of its own, and handles one invocation at a time. Environments
//! are started when no idle one is left, up to a limit, and are replaced when their process ends.

mod environment;
pub(crate) mod events;
mod front;

use std::path::PathBuf;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::Semaphore;

use environment::Environment;
pub(crate) use front::front;

/// Reserved concurrency of one function.
const ENVIRONMENTS_MAX: usize = 4;

/// One function.
#[derive(Clone, Debug)]
pub(crate) struct FunctionHost {
    inner: Arc<Inner>,
}

struct Inner {
    name: &'static str,
    program: PathBuf,
    variables: Vec<(String, String)>,
    timeout: Duration,
    idle: Mutex<Vec<Environment>>,
    room: Semaphore,
}

impl std::fmt::Debug for Inner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Inner").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why an invocation gave no answer.
#[derive(Debug, thiserror::Error)]
pub(crate) enum InvokeError {
    /// No environment could be started.
    #[error("the function {function} cannot be started: {reason}")]
    Start {
        /// Its name.
        function: &'static str,
        /// What went wrong.
        reason: String,
    },
    /// The function answered with an error, as a panic does.
    #[error("the function {function} failed: {reason}")]
    Failed {
        /// Its name.
        function: &'static str,
        /// What it said.
        reason: String,
    },
}

impl FunctionHost {
    /// A function whose program gets exactly these variables, and is killed when an event takes longer than `timeout`.
    /// No process is started yet.
    pub(crate) fn new(
        name: &'static str,
        program: PathBuf,
        variables: Vec<(String, String)>,
        timeout: Duration,
    ) -> Self {
        let inner = Inner {
            name,
            program,
            variables,
            timeout,
            idle: Mutex::default(),
            room: Semaphore::new(ENVIRONMENTS_MAX),
        };
        Self { inner: Arc::new(inner) }
    }

    /// Hands one event to an environment and waits for its answer.
    pub(crate) async fn invoke(&self, event: Vec<u8>) -> Result<Bytes, InvokeError> {
        let function = self.inner.name;
        let start_error = |reason: String| InvokeError::Start { function, reason };
        let _room = self.inner.room.acquire().await.map_err(|_| start_error("it is stopping".into()))?;
        let mut environment = match self.take_idle() {
            Some(idle) => idle,
            None => {
                Environment::start(function, &self.inner.program, &self.inner.variables, self.inner.timeout)
                    .await
                    .map_err(|error| start_error(format!("{error:#}")))?
            }
        };
        let outcome = environment.invoke(event).await;
        if environment.is_alive() && !self.inner.room.is_closed() {
            self.inner.idle.lock().expect("no holder panics").push(environment);
        } else {
            environment.stop().await;
        }
        outcome.map_err(|reason| InvokeError::Failed { function, reason })
    }

    fn take_idle(&self) -> Option<Environment> {
        let mut idle = self.inner.idle.lock().expect("no holder panics");
        // Those whose process ended while it was idle are dropped, which also frees their port.
        while let Some(mut environment) = idle.pop() {
            if environment.is_alive() {
                return Some(environment);
            }
        }
        None
    }

    /// Ends every idle process; one that is busy ends when it has answered.
    pub(crate) async fn stop(&self) {
        self.inner.room.close();
        let idle = std::mem::take(&mut *self.inner.idle.lock().expect("no holder panics"));
        for environment in idle {
            environment.stop().await;
        }
    }
}
