//! `plumb account gcp`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::fields::{Named, read_file};
use super::kind::Kind;
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
    fields: &["project_id", "client_email", "description", "default_region", "state_bucket", "state_prefix"],
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
    #[command(after_help = "Example:
  plumb account gcp create payments-prod --name payments --key-file key.json")]
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
    /// Where things are made that name no region.
    #[arg(long)]
    region: Option<String>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let key = self.key_file.as_deref().map(read_file).transpose()?;
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .text("service_account_json", key)
            .text("default_region", self.region))
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
    }
}
