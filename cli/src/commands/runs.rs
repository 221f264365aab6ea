//! Runs.

mod follow;
mod logs;
mod trigger;
pub(super) mod view;

use std::path::PathBuf;

use clap::{Args, Subcommand};
use serde_json::json;
use uuid::Uuid;

use super::workspaces;
use crate::api::views::{Artifact, Run, Step};
use crate::api::{Page, routes, save};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;

pub use follow::{Follow, Logs, finish};

const FOLLOWS: &str = "The command follows the run and shows its logs. Ctrl-C stops watching, not the run.
Exit codes: 0 done, 1 failed, 3 the plan waits for approval.

Examples:
  plumb run apply web-prod
  plumb run apply web-prod --branch feature/cache --var replicas=3
  plumb run plan web-prod --json | jq .plan_summary";

/// `plumb run …`
#[derive(Debug, Subcommand)]
pub enum RunCommand {
    /// See what would change. Changes nothing and never waits for other runs.
    #[command(after_help = FOLLOWS)]
    Plan(trigger::TriggerArgs),
    /// Plan, wait for approval, apply.
    #[command(after_help = FOLLOWS)]
    Apply(trigger::TriggerArgs),
    /// Plan the removal of everything in the workspace, wait for approval, remove it.
    #[command(after_help = FOLLOWS)]
    Destroy(trigger::TriggerArgs),
    /// Show one run, and its plan.
    Show {
        /// The run's id.
        run: Uuid,
        /// Also the plan as Terraform prints it. With --json: the plan's document instead of the run's.
        #[arg(long)]
        plan: bool,
    },
    /// List runs, newest first.
    List(ListArgs),
    /// Stop a run. During an apply, Terraform is asked to stop gracefully.
    Cancel {
        /// The run's id.
        run: Uuid,
        /// Why; kept in the history.
        #[arg(long)]
        reason: Option<String>,
    },
    /// Make an apply of a finished plan-only run: planned anew, then waits for approval.
    Promote {
        /// The plan-only run's id.
        run: Uuid,
        /// Do not follow the new run; print it.
        #[arg(long)]
        no_wait: bool,
    },
    /// What Terraform gets in a run, and where each value comes from. Secrets are not shown.
    Variables {
        /// The run's id.
        run: Uuid,
    },
    /// List the steps of a run.
    Steps {
        /// The run's id.
        run: Uuid,
    },
    /// Print a run's logs.
    Logs(logs::LogsArgs),
    /// List what a run's apply made and the state does not have, with the commands that import it.
    #[command(
        after_help = "For the time after a lost apply: what is listed exists, or may exist, and the next apply would make
it a second time. Import it, then `plumb workspace unblock`."
    )]
    Unrecorded {
        /// The run's id.
        run: Uuid,
    },
    /// List what a run left behind: artifacts, and the logs of its steps.
    Artifacts {
        /// The run's id.
        run: Uuid,
    },
    /// Download an artifact, or the whole log of a step.
    #[command(after_help = "Examples:
  plumb run download 0190f3c2-… plan_text -o plan.txt
  plumb run download 0190f3c2-… log-9 -o apply.log")]
    Download {
        /// The run's id.
        run: Uuid,
        /// Which one, as `plumb run artifacts` names it.
        kind: String,
        /// The file to write; stdout if absent.
        #[arg(long, short, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
}

/// Which runs.
#[derive(Debug, Args)]
pub struct ListArgs {
    /// Only of this workspace (name or id).
    #[arg(long, short)]
    workspace: Option<String>,
    /// Only in this status, such as `awaiting_approval`.
    #[arg(long)]
    status: Option<String>,
    /// Only of this command: plan, apply, destroy.
    #[arg(long)]
    command: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// Runs one of them.
pub async fn run(app: &App, command: RunCommand) -> anyhow::Result<Outcome> {
    match command {
        RunCommand::Plan(args) => trigger::trigger(app, "plan", &args).await,
        RunCommand::Apply(args) => trigger::trigger(app, "apply", &args).await,
        RunCommand::Destroy(args) => trigger::trigger(app, "destroy", &args).await,
        RunCommand::Show { run, plan } => show(app, &run.to_string(), plan).await,
        RunCommand::List(args) => list(app, args).await,
        RunCommand::Cancel { run, reason } => {
            let body = reason.map_or_else(|| json!({}), |reason| json!({ "reason": reason }));
            let run = app.client.call(routes::CANCEL_RUN, [&run.to_string()]).body(body).send().await?;
            app.show(&run, |screen, run: Run| screen.print(&view::cancelled(&run)))
        }
        RunCommand::Promote { run, no_wait } => {
            let promoted =
                app.client.call(routes::PROMOTE_RUN, [&run.to_string()]).creates(None).send().await?;
            trigger::started(app, &promoted, no_wait).await
        }
        RunCommand::Variables { run } => {
            let variables = app.client.call(routes::LIST_RUN_VARIABLES, [&run.to_string()]).send().await?;
            app.show(&variables, super::variables::effective)
        }
        RunCommand::Steps { run } => {
            let steps = app.client.call(routes::LIST_STEPS, [&run.to_string()]).send().await?;
            app.show(&steps, |screen, page: Page<Step>| view::steps(screen, page.items))
        }
        RunCommand::Logs(args) => logs::logs(app, &args).await,
        RunCommand::Unrecorded { run } => {
            let unrecorded = app.client.call(routes::LIST_UNRECORDED, [&run.to_string()]).send().await?;
            app.show(&unrecorded, view::unrecorded)
        }
        RunCommand::Artifacts { run } => {
            let artifacts = app.client.call(routes::LIST_ARTIFACTS, [&run.to_string()]).send().await?;
            app.show(&artifacts, |screen, page: Page<Artifact>| view::artifacts(screen, page.items))
        }
        RunCommand::Download { run, kind, output } => {
            let response =
                app.client.call(routes::DOWNLOAD_ARTIFACT, [&run.to_string(), &kind]).download().await?;
            let bytes = save(response, &output).await?;
            app.screen.note(&format!("{bytes} bytes"));
            Ok(Outcome::Done)
        }
    }
}

async fn show(app: &App, id: &str, plan: bool) -> anyhow::Result<Outcome> {
    if plan && app.screen.json {
        let document = app.client.call(routes::GET_PLAN, [id]).send().await?;
        app.screen.document(&document)?;
        return Ok(Outcome::Done);
    }
    let document = app.client.call(routes::GET_RUN, [id]).send().await?;
    if app.screen.json {
        app.screen.document(&document)?;
        return Ok(Outcome::Done);
    }
    let run: Run = document.read()?;
    app.screen.print(&view::describe(&app.screen, &run))?;
    if run.plan_summary.is_some() {
        app.screen.print("")?;
        let text = if plan { view::plan_text(app, &run).await? } else { view::plan(app, &run).await? };
        app.screen.print(&text)?;
    }
    Ok(Outcome::Done)
}

async fn list(app: &App, args: ListArgs) -> anyhow::Result<Outcome> {
    let workspace = match &args.workspace {
        Some(text) => Some(workspaces::find_id(app, text).await?),
        None => None,
    };
    let call = app.client.call(routes::LIST_RUNS, []).query("workspace_id", workspace);
    let call = call.query("status", args.status).query("command", args.command);
    let runs = call.query("limit", args.page.limit).query("cursor", args.page.cursor).send().await?;
    app.show(&runs, view::table)
}
