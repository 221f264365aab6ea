//! The Lambda `signin`.

use plumbline_runtime::Function;

// A function has one request at a time: a second thread would only be woken for nothing.
#[tokio::main(flavor = "current_thread")]
async fn main() -> anyhow::Result<()> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment(Function::Signin).await?;
    lambda_http::run(plumbline_signin::router(deps)).await.map_err(|error| anyhow::anyhow!(error))
}
