//! `plumb account gcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::Value;

use super::fields::{Named, read_file};
use super::kind::{Kind, text};
use crate::api::routes;
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;

const GCP: Kind = Kind {
    noun: "GCP project",
    list: routes::LIST_GCP_PROJECTS,
    create: routes::CREATE_GCP_PROJECT,
    get: routes::GET_GCP_PROJECT,
    update: routes::UPDATE_GCP_PROJECT,
    delete: routes::DELETE_GCP_PROJECT,
    known_by: "project_id",
    secrets: &["service_account_json"],
    fields: &[
        "project_id",
        "client_email",
        "workload_identity_provider",
        "description",
        "default_region",
        "state_bucket",
        "state_prefix",
    ],
};

/// `plumb account gcp …`
#[derive(Debug, Subcommand)]
pub enum GcpCommand {
    /// List those of the business unit.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one.
    Show {
        /// Its project id, name or id.
        project: String,
    },
    /// Register a project.
    #[command(after_help = "Examples:
  plumb account gcp create payments-prod --name payments --key-file key.json
  plumb account gcp create payments-prod --name payments --service-account EMAIL --workload-identity-provider NAME")]
    Create {
        /// Its id at GCP.
        project_id: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Change fields; what you do not name stays.
    Update {
        /// Its project id, name or id.
        project: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Forget one that nothing uses.
    Delete {
        /// Its project id, name or id.
        project: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Ask Google whether the key of the service account works.
    Test {
        /// Its project id, name or id.
        project: String,
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
    /// The key of a service account, as GCP gives it; `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    key_file: Option<PathBuf>,
    /// Remove the key: a workload identity pool trusts tokens instead.
    #[arg(long, conflicts_with = "key_file")]
    no_key: bool,
    /// The provider of a pool that trusts tokens of this installation's issuer, by its full name; `none` clears it.
    #[arg(long, value_name = "NAME")]
    workload_identity_provider: Option<String>,
    /// The service account that runs act as, where there is no key.
    #[arg(long, value_name = "EMAIL")]
    service_account: Option<String>,
    /// Where things are made that name no region.
    #[arg(long)]
    region: Option<String>,
    /// The bucket where states lie from then on; `none`: in the installation's own store.
    #[arg(long, value_name = "BUCKET")]
    state_bucket: Option<String>,
    /// What names of objects in it begin with; `none` clears it.
    #[arg(long, value_name = "PREFIX")]
    state_prefix: Option<String>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let key = self.key_file.as_deref().map(read_file).transpose()?;
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .value(
                "service_account_json",
                key.map(Value::from).or_else(|| self.no_key.then_some(Value::Null)),
            )
            .clearable("workload_identity_provider", self.workload_identity_provider)
            .text("client_email", self.service_account)
            .text("default_region", self.region)
            .clearable("state_bucket", self.state_bucket)
            .clearable("state_prefix", self.state_prefix))
    }
}

/// Runs one of them.
pub(super) async fn run(app: &App, command: GcpCommand) -> anyhow::Result<Outcome> {
    match command {
        GcpCommand::List { page } => GCP.list(app, page).await,
        GcpCommand::Show { project } => GCP.show(app, &project).await,
        GcpCommand::Create { project_id, fields } => {
            GCP.create(app, fields.named()?.text("project_id", Some(project_id)).into_body()?).await
        }
        GcpCommand::Update { project, fields } => {
            GCP.update(app, &project, fields.named()?.into_body()?).await
        }
        GcpCommand::Delete { project, yes } => GCP.delete(app, &project, yes).await,
        GcpCommand::Test { project, no_wait } => {
            let asked = (routes::TEST_GCP_PROJECT, "asking Google");
            GCP.test(app, asked, &project, no_wait, |found| {
                vec![format!("It works: Google knows the key of {}.", text(found, "client_email"))]
            })
            .await
        }
    }
}
