//! The functions as the emulator mounts them: by path prefix, as the routes of API Gateway do.
//!
//! Everything that depends on how a function is called or configured stands in this file.

use std::path::Path;
use std::sync::Arc;

use anyhow::Context as _;
use axum::Router;
use axum::extract::{Request, State};
use axum::response::Response;
use plumbline_core::Deps;
use plumbline_core::adapters::LocalLauncher;
use plumbline_core::ports::{BlobStore, Launcher};
use plumbline_worker::InProcessOutbound;
use tower::ServiceExt as _;

use crate::launching::StoppingLauncher;
use crate::object_store::{Access, BUCKET, REGION};
use crate::options::Options;

/// The functions that answer requests.
#[derive(Clone, Debug)]
pub(crate) struct Functions {
    pub(crate) api: Router,
    pub(crate) tfstate: Router,
    pub(crate) callback: Router,
}

impl Functions {
    /// All of them in this process.
    pub(crate) fn in_process(deps: &Deps) -> Self {
        Self {
            api: plumbline_api::router(deps.clone()),
            tfstate: plumbline_tfstate::router(deps.clone()),
            callback: plumbline_callback::router(deps.clone()),
        }
    }

    /// One router over all.
    pub(crate) fn into_router(self) -> Router {
        Router::new().fallback(dispatch).with_state(self)
    }

    fn of_path(&self, path: &str) -> &Router {
        if path.starts_with("/api/v1/state/") {
            &self.tfstate
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

/// One claim routine, as a wake-up causes it.
pub(crate) async fn work(deps: &Deps, launcher: &dyn Launcher) -> anyhow::Result<()> {
    plumbline_worker::handle(deps, launcher, &InProcessOutbound).await.context("the worker failed")?;
    Ok(())
}

/// One tick of the sweeps.
pub(crate) async fn sweep(deps: &Deps, launcher: &dyn Launcher) {
    // The reconciler logs what fails in it; the next tick tries again.
    let done = plumbline_reconciler::handle(deps, launcher, &InProcessOutbound).await;
    tracing::debug!(?done, "swept");
}

/// The launcher of executors on this machine. Their files lie below `directory`.
pub(crate) fn launcher(
    options: &Options,
    directory: &Path,
) -> anyhow::Result<Arc<StoppingLauncher<LocalLauncher>>> {
    let program = options.programs.join("executor-task");
    anyhow::ensure!(
        program.is_file(),
        "the program executor-task is missing: {} does not exist; build it with `cargo build --workspace --bins`",
        program.display()
    );
    let launcher = LocalLauncher::new(program, directory.to_owned(), executor_environment(options));
    Ok(Arc::new(StoppingLauncher::new(launcher)))
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
