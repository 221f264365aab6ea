//! `plumb account azure`.

use clap::{Args, Subcommand};

use super::fields::{Named, SecretSource};
use super::kind::Kind;
use crate::api::routes;
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;

const AZURE: Kind = Kind {
    noun: "Azure subscription",
    list: routes::LIST_AZURE_SUBSCRIPTIONS,
    create: routes::CREATE_AZURE_SUBSCRIPTION,
    get: routes::GET_AZURE_SUBSCRIPTION,
    update: routes::UPDATE_AZURE_SUBSCRIPTION,
    delete: routes::DELETE_AZURE_SUBSCRIPTION,
    known_by: "subscription_id",
    secrets: &["client_secret"],
    fields: &[
        "subscription_id",
        "tenant_id",
        "client_id",
        "description",
        "default_location",
        "state_storage_account",
        "state_container",
    ],
};

/// `plumb account azure …`
#[derive(Debug, Subcommand)]
pub enum AzureCommand {
    /// List those of the business unit.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one.
    Show {
        /// Its subscription id, name or id.
        subscription: String,
    },
    /// Register a subscription.
    #[command(after_help = "Example:
  plumb account azure create SUBSCRIPTION --name payments --tenant-id TENANT --client-id CLIENT --secret-stdin")]
    Create {
        /// Its id at Azure.
        subscription_id: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Change fields; what you do not name stays.
    Update {
        /// Its subscription id, name or id.
        subscription: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Forget one that nothing uses.
    Delete {
        /// Its subscription id, name or id.
        subscription: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// What can be given and changed. `none` clears what need not be.
#[derive(Debug, Args)]
pub struct Fields {
    /// For people.
    #[arg(long)]
    name: Option<String>,
    /// For people; `none` clears it.
    #[arg(long)]
    description: Option<String>,
    /// The directory of the service principal.
    #[arg(long, value_name = "ID")]
    tenant_id: Option<String>,
    /// The service principal; its secret comes from stdin or a file.
    #[arg(long, value_name = "ID")]
    client_id: Option<String>,
    #[command(flatten)]
    secret: SecretSource,
    /// Where things are made that name no location.
    #[arg(long)]
    location: Option<String>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let secret = self.secret.read("client secret")?;
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .text("tenant_id", self.tenant_id)
            .text("client_id", self.client_id)
            .text("client_secret", secret)
            .text("default_location", self.location))
    }
}

/// Runs one of them.
pub(super) async fn run(app: &App, command: AzureCommand) -> anyhow::Result<Outcome> {
    match command {
        AzureCommand::List { page } => AZURE.list(app, page).await,
        AzureCommand::Show { subscription } => AZURE.show(app, &subscription).await,
        AzureCommand::Create { subscription_id, fields } => {
            AZURE
                .create(app, fields.named()?.text("subscription_id", Some(subscription_id)).into_body()?)
                .await
        }
        AzureCommand::Update { subscription, fields } => {
            AZURE.update(app, &subscription, fields.named()?.into_body()?).await
        }
        AzureCommand::Delete { subscription, yes } => AZURE.delete(app, &subscription, yes).await,
    }
}
