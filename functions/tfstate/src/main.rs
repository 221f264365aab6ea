//! The Lambda `tfstate`.

#[tokio::main]
async fn main() -> anyhow::Result<()> {
    plumbline_runtime::init_logs();
    let deps = plumbline_runtime::deps_from_environment().await?;
    lambda_http::run(plumbline_tfstate::router(deps)).await.map_err(|error| anyhow::anyhow!(error))
}
