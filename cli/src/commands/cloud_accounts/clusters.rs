//! `plumb cluster`.

use std::path::PathBuf;

use clap::{Args, Subcommand};

use super::fields::{Named, read_file};
use super::kind::{Kind, text};
use crate::api::routes;
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;

const CLUSTER: Kind = Kind {
    noun: "cluster",
    list: routes::LIST_CLUSTERS,
    create: routes::CREATE_CLUSTER,
    get: routes::GET_CLUSTER,
    update: routes::UPDATE_CLUSTER,
    delete: routes::DELETE_CLUSTER,
    known_by: "server_url",
    secrets: &["kubeconfig"],
    fields: &["server_url", "description", "default_namespace", "aws_account_id", "allow_insecure_tls"],
};

/// `plumb cluster …`
#[derive(Debug, Subcommand)]
pub enum ClusterCommand {
    /// List those of the business unit.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one.
    Show {
        /// Its name or id.
        cluster: String,
    },
    /// Register a cluster.
    #[command(after_help = "Example:
  plumb cluster create --name prod --kubeconfig ~/.kube/prod.yaml")]
    Create {
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Change fields; what you do not name stays.
    Update {
        /// Its name or id.
        cluster: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Forget one that nothing uses.
    Delete {
        /// Its name or id.
        cluster: String,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
    /// Ask the API server whether the kubeconfig gets in.
    Test {
        /// Its name or id.
        cluster: String,
        /// Do not wait for the result; print the task.
        #[arg(long)]
        no_wait: bool,
    },
}

/// What can be given and changed. `none` clears what need not be.
#[derive(Debug, Args)]
pub struct Fields {
    /// Its name.
    #[arg(long)]
    name: Option<String>,
    /// For people; `none` clears it.
    #[arg(long)]
    description: Option<String>,
    /// How to get in; its current context is kept. `-` reads stdin.
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The namespace of charts that name none.
    #[arg(long)]
    namespace: Option<String>,
    /// A registered AWS account whose credentials open it; `none` clears it.
    #[arg(long, value_name = "NUMBER")]
    aws_account_id: Option<String>,
    /// Whether the kubeconfig may leave the server's certificate unchecked.
    #[arg(long, value_name = "BOOL")]
    allow_insecure_tls: Option<bool>,
}

impl Fields {
    fn named(self) -> anyhow::Result<Named> {
        let kubeconfig = self.kubeconfig.as_deref().map(read_file).transpose()?;
        Ok(Named::default()
            .text("name", self.name)
            .clearable("description", self.description)
            .text("kubeconfig", kubeconfig)
            .text("default_namespace", self.namespace)
            .clearable("aws_account_id", self.aws_account_id)
            .value("allow_insecure_tls", self.allow_insecure_tls.map(Into::into)))
    }
}

/// Runs one of them.
pub(super) async fn run(app: &App, command: ClusterCommand) -> anyhow::Result<Outcome> {
    match command {
        ClusterCommand::List { page } => CLUSTER.list(app, page).await,
        ClusterCommand::Show { cluster } => CLUSTER.show(app, &cluster).await,
        ClusterCommand::Create { fields } => CLUSTER.create(app, fields.named()?.into_body()?).await,
        ClusterCommand::Update { cluster, fields } => {
            CLUSTER.update(app, &cluster, fields.named()?.into_body()?).await
        }
        ClusterCommand::Delete { cluster, yes } => CLUSTER.delete(app, &cluster, yes).await,
        ClusterCommand::Test { cluster, no_wait } => {
            let asked = (routes::TEST_CLUSTER, "asking the cluster");
            CLUSTER
                .test(app, asked, &cluster, no_wait, |found| {
                    vec![format!("It works: the server is Kubernetes {}.", text(found, "server_version"))]
                })
                .await
        }
    }
}
