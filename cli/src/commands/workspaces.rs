//! Workspaces.

mod find;
mod import;
mod share;
mod view;

use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use crate::api::routes;
use crate::api::views::Workspace;
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::confirm;

pub use find::{find_id, get};

/// `plumb workspace …`
#[derive(Debug, Subcommand)]
pub enum WorkspaceCommand {
    /// List workspaces.
    List(ListArgs),
    /// Show one workspace.
    Show {
        /// Its name or id.
        workspace: String,
    },
    /// Create one workspace by hand.
    #[command(after_help = "Example:
  plumb workspace create web-prod --environment prod --repo-url https://git.example.com/infra.git --dir stacks/web")]
    Create {
        /// Its name.
        name: String,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// See which directories of a repository could become workspaces.
    Discover(import::DiscoverArgs),
    /// Make workspaces of a repository's directories.
    Import(import::ImportArgs),
    /// Change fields of a workspace; what you do not name stays.
    Update {
        /// Its name or id.
        workspace: String,
        /// Its new name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Box<Fields>,
    },
    /// Delete a workspace. Its infrastructure stays: run `plumb run destroy` first.
    Delete {
        /// Its name or id.
        workspace: String,
        /// Delete it although its state still has resources (admins).
        #[arg(long)]
        force: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// List the branches of a workspace's repository.
    Branches {
        /// Its name or id.
        workspace: String,
        /// Do not wait for the answer; print the task.
        #[arg(long)]
        no_wait: bool,
    },
    /// Say which workspaces' runs may read this one's outputs with `terraform_remote_state` (admins), or show it.
    ShareState(share::ShareArgs),
    /// Keep runs that change something away from a workspace, until you unlock it. Runs that only plan go on.
    Lock {
        /// Its name or id.
        workspace: String,
        /// Why, for everybody who meets the lock.
        #[arg(long)]
        reason: String,
    },
    /// Let runs go on: your own lock, or as an admin anybody's.
    Unlock {
        /// Its name or id.
        workspace: String,
    },
    /// Let a blocked workspace take changes again, after you looked at what a lost apply left behind (admins).
    Unblock {
        /// Its name or id.
        workspace: String,
        /// What you found and did; kept in the audit log.
        #[arg(long)]
        note: String,
    },
}

/// Which workspaces.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only those whose name contains this.
    #[arg(long, short = 's')]
    search: Option<String>,
    /// Only of this environment.
    #[arg(long)]
    environment: Option<String>,
    /// Only in this region.
    #[arg(long)]
    region: Option<String>,
    /// Only in this AWS account.
    #[arg(long)]
    aws_account_id: Option<String>,
    /// Only with this tag.
    #[arg(long, value_name = "KEY=VALUE", value_parser = pair)]
    tag: Option<(String, String)>,
    #[command(flatten)]
    page: PageArgs,
}

/// What can be said about a workspace.
#[derive(Debug, Args)]
pub struct Fields {
    /// Its environment, such as `prod`.
    #[arg(long)]
    environment: Option<String>,
    /// Where its code is.
    #[arg(long, value_name = "URL")]
    repo_url: Option<String>,
    /// The branch or tag to clone.
    #[arg(long, value_name = "REF")]
    repo_ref: Option<String>,
    /// The directory with the Terraform module.
    #[arg(long = "dir", value_name = "DIRECTORY")]
    tf_working_dir: Option<String>,
    /// The region that it stands in.
    #[arg(long)]
    region: Option<String>,
    /// The AWS account that it stands in.
    #[arg(long, value_name = "ACCOUNT")]
    aws_account_id: Option<String>,
    /// `terraform` or `tofu`.
    #[arg(long)]
    tool: Option<String>,
    /// The tool's exact version, or `newest` for the newest that is found.
    #[arg(long, value_name = "VERSION")]
    tool_version: Option<String>,
    /// Who may write its state: `runs_only` or `runs_and_people`.
    #[arg(long, value_name = "WHO")]
    state_writes: Option<String>,
    /// Which kind of store its state goes to: `automatic`, `platform`, `s3`, `azureblob` or `gcs`.
    #[arg(long, value_name = "KIND")]
    state_backend: Option<String>,
    /// A registered AWS account whose credentials runs get instead of the account's own; `none` clears it.
    #[arg(long, value_name = "NUMBER")]
    state_aws_account_id: Option<String>,
    /// A registered Azure subscription whose credentials runs get; `none` clears it.
    #[arg(long, value_name = "ID")]
    azure_subscription_id: Option<String>,
    /// A registered GCP project whose credentials runs get; `none` clears it.
    #[arg(long, value_name = "ID")]
    gcp_project_id: Option<String>,
    /// The id of a registered cluster that runs get into; `none` clears it.
    #[arg(long, value_name = "ID")]
    cluster_id: Option<String>,
    /// A tag; repeat for more. With `update`, all tags are replaced.
    #[arg(long = "tag", value_name = "KEY=VALUE", value_parser = pair)]
    tags: Vec<(String, String)>,
}

impl Fields {
    /// The fields that were named, under the API's names.
    fn named(&self) -> Map<String, Value> {
        let texts = [
            ("environment", &self.environment),
            ("repo_url", &self.repo_url),
            ("repo_ref", &self.repo_ref),
            ("tf_working_dir", &self.tf_working_dir),
            ("region", &self.region),
            ("aws_account_id", &self.aws_account_id),
            ("tool", &self.tool),
            ("tool_version", &self.tool_version),
            ("state_writes", &self.state_writes),
            ("state_backend", &self.state_backend),
        ];
        let mut named: Map<String, Value> = texts
            .into_iter()
            .filter_map(|(name, value)| Some((name.to_owned(), value.clone()?.into())))
            .collect();
        let links = [
            ("state_aws_account_id", &self.state_aws_account_id),
            ("azure_subscription_id", &self.azure_subscription_id),
            ("gcp_project_id", &self.gcp_project_id),
            ("cluster_id", &self.cluster_id),
        ];
        for (name, value) in links {
            let value =
                value.as_deref().map(|value| if value == "none" { Value::Null } else { value.into() });
            named.extend(value.map(|value| (name.to_owned(), value)));
        }
        if self.tool_version.as_deref() == Some("newest") {
            named.insert("tool_version".into(), Value::Null);
        }
        if !self.tags.is_empty() {
            let tags: Map<String, Value> =
                self.tags.iter().map(|(key, value)| (key.clone(), value.clone().into())).collect();
            named.insert("tags".into(), tags.into());
        }
        named
    }
}

/// Splits `KEY=VALUE`.
pub(super) fn pair(text: &str) -> Result<(String, String), String> {
    match text.split_once('=') {
        Some((key, value)) if !key.is_empty() => Ok((key.into(), value.into())),
        _ => Err("expected KEY=VALUE".into()),
    }
}

/// Runs one of them.
pub async fn run(app: &App, command: WorkspaceCommand) -> anyhow::Result<Outcome> {
    match command {
        WorkspaceCommand::List(args) => list(app, args).await,
        WorkspaceCommand::Show { workspace } => {
            let document = get(app, &workspace).await?;
            app.show(&document, |screen, workspace: Workspace| {
                screen.print(&view::describe(screen, &workspace))
            })
        }
        WorkspaceCommand::Create { name, fields } => create(app, name, &fields).await,
        WorkspaceCommand::Discover(args) => import::discover(app, &args).await,
        WorkspaceCommand::Import(args) => import::import(app, &args).await,
        WorkspaceCommand::Update { workspace, name, fields } => update(app, &workspace, name, &fields).await,
        WorkspaceCommand::Delete { workspace, force, yes } => delete(app, &workspace, force, yes).await,
        WorkspaceCommand::Branches { workspace, no_wait } => import::branches(app, &workspace, no_wait).await,
        WorkspaceCommand::ShareState(args) => share::run(app, &args).await,
        WorkspaceCommand::Lock { workspace, reason } => {
            let id = find_id(app, &workspace).await?;
            let call = app.client.call(routes::LOCK_WORKSPACE, [&id]).body(json!({ "reason": reason }));
            app.show(&call.send().await?, |screen, workspace: Workspace| {
                screen.print(&format!("{} is locked. Only runs that change nothing begin.", workspace.name))
            })
        }
        WorkspaceCommand::Unlock { workspace } => {
            let id = find_id(app, &workspace).await?;
            let document = app.client.call(routes::UNLOCK_WORKSPACE, [&id]).send().await?;
            app.show(&document, |screen, workspace: Workspace| {
                screen.print(&format!("{} is unlocked.", workspace.name))
            })
        }
        WorkspaceCommand::Unblock { workspace, note } => {
            let id = find_id(app, &workspace).await?;
            let call = app.client.call(routes::UNBLOCK_WORKSPACE, [&id]).body(json!({ "note": note }));
            let document = call.send().await?;
            app.show(&document, |screen, workspace: Workspace| {
                screen.print(&format!("{} takes changes again.", workspace.name))
            })
        }
    }
}

async fn list(app: &App, args: ListArgs) -> anyhow::Result<Outcome> {
    let call = app.client.call(routes::LIST_WORKSPACES, []).query("q", args.search);
    let call = call.query("environment", args.environment).query("region", args.region);
    let call = call.query("aws_account_id", args.aws_account_id);
    let call = call.query("tag", args.tag.map(|(key, value)| format!("{key}:{value}")));
    let page = call.query("limit", args.page.limit).query("cursor", args.page.cursor).send().await?;
    app.show(&page, view::table)
}

async fn create(app: &App, name: String, fields: &Fields) -> anyhow::Result<Outcome> {
    if fields.environment.is_none() || fields.repo_url.is_none() {
        return Err(Usage::error("a workspace needs --environment and --repo-url"));
    }
    let mut body = fields.named();
    body.insert("name".into(), name.into());
    let call = app.client.call(routes::CREATE_WORKSPACE, []).body(body.into()).creates(None);
    let created = call.send().await?;
    app.show(&created, |screen, workspace: Workspace| {
        screen.print(&format!("Created workspace {}, id {}.", workspace.name, workspace.id))?;
        screen.note(&format!("Next: plumb run plan {}", workspace.name));
        Ok(())
    })
}

async fn update(app: &App, text: &str, name: Option<String>, fields: &Fields) -> anyhow::Result<Outcome> {
    let mut named = fields.named();
    named.extend(name.map(|name| ("name".to_owned(), name.into())));
    if named.is_empty() {
        return Err(Usage::error("nothing to change: name at least one field, see --help"));
    }
    let document = get(app, text).await?;
    let current: Workspace = document.read()?;
    let call = app.client.call(routes::UPDATE_WORKSPACE, [&current.id]).if_match(&document);
    let updated = call.body(named.into()).send().await?;
    app.show(&updated, |screen, workspace: Workspace| screen.print(&view::describe(screen, &workspace)))
}

async fn delete(app: &App, text: &str, force: bool, yes: bool) -> anyhow::Result<Outcome> {
    let workspace: Workspace = get(app, text).await?.read()?;
    let question = format!(
        "Delete workspace {} ({}, {})?",
        workspace.name, workspace.environment, workspace.tf_working_dir
    );
    if !yes && !confirm(&question, "--yes").await? {
        app.screen.note("Nothing was deleted.");
        return Ok(Outcome::Failed);
    }
    let call = app.client.call(routes::DELETE_WORKSPACE, [&workspace.id]);
    let answer = call.query("force", force.then_some(true)).send().await?;
    if app.screen.json {
        app.screen.document(&answer)?;
    } else {
        app.screen.print(&format!("Deleted workspace {}.", workspace.name))?;
    }
    Ok(Outcome::Done)
}
