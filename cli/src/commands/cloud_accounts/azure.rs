//! `plumb account azure`.

use clap::{Args, Subcommand};
use serde_json::Value;

use super::fields::{Named, SecretSource};
use super::kind::{Kind, text};
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
        "oidc_audience",
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
    #[command(after_help = "Examples:
  plumb account azure create SUBSCRIPTION --name payments --tenant-id TENANT --client-id CLIENT --secret-stdin
  plumb account azure create SUBSCRIPTION --name payments --tenant-id TENANT --client-id CLIENT --oidc-audience api://AzureADTokenExchange")]
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
    /// Ask Azure whether the service principal gets in and sees the subscription.
    Test {
        /// Its subscription id, name or id.
        subscription: String,
        /// Do not wait for the result; print the task.
        #[arg(long)]
        no_wait: bool,
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
    /// Remove the secret: the service principal trusts tokens instead.
    #[arg(long, conflicts_with_all = ["secret_stdin", "secret_file"])]
    no_secret: bool,
    /// The service principal trusts tokens of this installation's issuer for this audience, and has no secret; `none`
    /// clears it.
    #[arg(long, value_name = "AUDIENCE")]
    oidc_audience: Option<String>,
    /// Where things are made that name no location.
    #[arg(long)]
    location: Option<String>,
    /// The storage account where states lie from then on, with a container; `none` clears it.
    #[arg(long, value_name = "NAME")]
    state_storage_account: Option<String>,
    /// The container in it; `none`: states lie in the installation's own store.
    #[arg(long, value_name = "NAME")]
    state_container: Option<String>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let secret = self.secret.read("client secret")?;
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .text("tenant_id", self.tenant_id)
            .text("client_id", self.client_id)
            .value("client_secret", secret.map(Value::from).or_else(|| self.no_secret.then_some(Value::Null)))
            .clearable("oidc_audience", self.oidc_audience)
            .text("default_location", self.location)
            .clearable("state_storage_account", self.state_storage_account)
            .clearable("state_container", self.state_container))
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
        AzureCommand::Test { subscription, no_wait } => {
            let asked = (routes::TEST_AZURE_SUBSCRIPTION, "asking Azure");
            AZURE
                .test(app, asked, &subscription, no_wait, |found| {
                    vec![format!("It works: it sees the subscription {}.", text(found, "subscription_name"))]
                })
                .await
        }
    }
}
