//! The functions as the emulator mounts them: by path prefix, as the routes of API Gateway do.
//!
//! Everything that depends on how a function is called or configured stands in this file.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use async_trait::async_trait;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::adapters::LocalLauncher;
use plumbline_core::ports::BlobStore;
use plumbline_core::tasks::{ClaimedTask, FailedAttempt};
use plumbline_outbound::TaskReference;
use plumbline_runtime::Function;
use plumbline_worker::Outbound;
use serde_json::Value;
use tower::ServiceExt as _;

use crate::object_store::{Access, BUCKET, REGION};
use crate::options::Options;
use crate::roles::Roles;
use crate::timers::Work;

/// The functions that answer requests.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    pub(crate) api: Router,
    pub(crate) tfstate: Router,
    pub(crate) signin: Router,
    pub(crate) callback: Router,
}

impl Functions {
    /// All of them in this process.
    pub(crate) fn in_process(deps: &Deps, roles: &Roles) -> anyhow::Result<Self> {
        Ok(Self {
            api: plumbline_api::router(roles.deps(deps, Function::Api)?),
            tfstate: plumbline_tfstate::router(roles.deps(deps, Function::Tfstate)?),
            signin: plumbline_signin::router(roles.deps(deps, Function::Signin)?),
            callback: plumbline_callback::router(roles.deps(deps, Function::Callback)?),
        })
    }

    /// One router over all.
    pub(crate) fn into_router(self) -> Router {
        Router::new().fallback(dispatch).with_state(self)
    }

    fn of_path(&self, path: &str) -> &Router {
        if path.starts_with("/api/v1/state/") {
            &self.tfstate
        } else if plumbline_signin::serves(path) {
            &self.signin
        } else if path.starts_with("/executor/v1/") {
            &self.callback
        } else {
            &self.api
        }
    }
}

async fn dispatch(State(functions): State<Functions>, request: Request) -> Response {
    let router = functions.of_path(request.uri().path()).clone();
    match router.oneshot(request).await {
        Ok(response) => response,
        Err(never) => match never {},
    }
}

/// The worker, the reconciler and the function that they hand short tasks to, in this process.
pub(crate) struct InProcess {
    worker: Deps,
    reconciler: Deps,
    outbound: OwnOutbound,
    launcher: LocalLauncher,
}

impl InProcess {
    pub(crate) fn new(deps: &Deps, roles: &Roles, launcher: LocalLauncher) -> anyhow::Result<Self> {
        Ok(Self {
            worker: roles.deps(deps, Function::Worker)?,
            reconciler: roles.deps(deps, Function::Reconciler)?,
            outbound: OwnOutbound(roles.deps(deps, Function::Outbound)?),
            launcher,
        })
    }
}

#[async_trait]
impl Work for InProcess {
    async fn work(&self) -> anyhow::Result<()> {
        let worked = plumbline_worker::handle(&self.worker, &self.launcher, &self.outbound).await;
        worked.map(drop).context("the worker failed")
    }

    async fn sweep(&self) -> anyhow::Result<()> {
        // The reconciler logs what fails in it; the next tick tries again.
        let done = plumbline_reconciler::handle(&self.reconciler, &self.launcher, &self.outbound).await;
        tracing::debug!(?done, "swept");
        Ok(())
    }
}

/// The `outbound` function in this process, with its own role: called as by an invocation.
struct OwnOutbound(Deps);

#[async_trait]
impl Outbound for OwnOutbound {
    async fn handle(&self, _deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
        let reference = TaskReference { task_id: task.lease.task_id, lease_token: task.lease.token };
        match plumbline_outbound::invoke(&self.0, reference).await {
            Ok(answer) => answer.into(),
            Err(error) => Err(FailedAttempt::Retry(error.to_string())),
        }
    }
}

/// The launcher of executors on this machine. Their files lie below `directory`.
pub(crate) fn launcher(options: &Options, directory: &Path) -> anyhow::Result<LocalLauncher> {
    let program = options.programs.join("executor-task");
    anyhow::ensure!(
        program.is_file(),
        "the program executor-task is missing: {} does not exist; build it with `cargo build --workspace --bins`",
        program.display()
    );
    let launcher = LocalLauncher::new(program, directory.to_owned(), executor_environment(options));
    launcher.tidy();
    Ok(launcher)
}

/// What executors find in their environment, beside what the launcher itself sets.
pub(crate) fn executor_environment(options: &Options) -> Vec<(String, String)> {
    let mut variables = Vec::new();
    if let Some(root) = &options.repositories {
        variables.push(("PLUMBLINE_LOCAL_REPOS_ROOT".to_owned(), root.display().to_string()));
    }
    if let Some(mirror) = &options.provider_mirror {
        variables.push(("PLUMBLINE_PROVIDER_MIRROR".to_owned(), mirror.display().to_string()));
    }
    if let Some(endpoint) = &options.sts_endpoint {
        variables.push(("PLUMBLINE_STS_ENDPOINT".to_owned(), endpoint.clone()));
    }
    variables.push(("PLUMBLINE_TOOL_CACHE".to_owned(), options.cache.join("tools").display().to_string()));
    variables
}

/// The client of the object store.
pub(crate) fn blobs(access: &Access) -> Arc<dyn BlobStore> {
    Arc::new(plumbline_s3::S3Store::with_keys(&plumbline_s3::Keys {
        endpoint: access.url.clone(),
        region: REGION.to_owned(),
        bucket: BUCKET.to_owned(),
        access_key_id: access.key_id.clone(),
        secret_access_key: access.secret.clone(),
    }))
}
