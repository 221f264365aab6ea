//! Cloud accounts and clusters: where runs get their rights. Secrets come from stdin or files and go nowhere but to the
//! server.

mod aws;
mod azure;
mod clusters;
mod fields;
mod gcp;
mod kind;

use clap::Subcommand;

use crate::app::App;
use crate::outcome::Outcome;

pub use clusters::ClusterCommand;

/// `plumb account …`
#[derive(Debug, Subcommand)]
pub enum AccountCommand {
    /// AWS accounts.
    #[command(subcommand)]
    Aws(aws::AwsCommand),
    /// Azure subscriptions.
    #[command(subcommand)]
    Azure(azure::AzureCommand),
    /// GCP projects.
    #[command(subcommand)]
    Gcp(gcp::GcpCommand),
}

/// Runs one of them.
pub async fn run(app: &App, command: AccountCommand) -> anyhow::Result<Outcome> {
    match command {
        AccountCommand::Aws(command) => aws::run(app, command).await,
        AccountCommand::Azure(command) => azure::run(app, command).await,
        AccountCommand::Gcp(command) => gcp::run(app, command).await,
    }
}

/// Runs a command of `plumb cluster`.
pub async fn run_cluster(app: &App, command: ClusterCommand) -> anyhow::Result<Outcome> {
    clusters::run(app, command).await
}
