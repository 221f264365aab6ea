//! The Lambda `callback`.

use plumbline_core::Deps;
use plumbline_runtime::{Environment, Function};

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment(Function::Callback).await?;
    let task_identity = plumbline_runtime::task_identity(&Environment::of_process())?;
    let deps = Deps { task_identity, ..deps };
    lambda_http::run(plumbline_callback::router(deps)).await.map_err(|error| anyhow::anyhow!(error))
}
