//! Terraform state.

mod push;

use std::path::PathBuf;

use chrono::Utc;
use clap::Subcommand;
use uuid::Uuid;

use super::{resources, state_locks, workspaces};
use crate::api::views::{QuarantinedState, StateDiff, StateVersion};
use crate::api::{Page, routes, save};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, Tone, ago, bytes, confirm, facts};

/// `plumb state …`
#[derive(Debug, Subcommand)]
pub enum StateCommand {
    /// List the versions of a workspace's state, newest first.
    #[command(visible_alias = "history")]
    List {
        /// The workspace's name or id.
        workspace: String,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one version (not its content).
    Show {
        /// The version's id.
        version: Uuid,
    },
    /// Download the state itself. It may hold secrets; reading it is recorded.
    #[command(after_help = "Examples:
  plumb state pull web-prod -o web-prod.tfstate
  plumb state pull web-prod | jq '.resources | length'")]
    Pull {
        /// The workspace's name or id.
        workspace: String,
        /// An older version than the current one.
        #[arg(long, value_name = "ID")]
        version: Option<Uuid>,
        /// The file to write; stdout if absent.
        #[arg(long, short, value_name = "FILE", default_value = "-")]
        output: PathBuf,
    },
    /// Make a file the newest version of a workspace's state, under its lock; of any size.
    Push(push::PushArgs),
    /// Break the lock (admins), as `plumb lock release` does.
    RmLock {
        /// The workspace's name or id.
        workspace: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// What a version changed, by resource address.
    Diff {
        /// The version's id.
        version: Uuid,
        /// Compare with this version instead of the one before.
        #[arg(long, value_name = "ID")]
        against: Option<Uuid>,
    },
    /// The outputs of a workspace's state; sensitive values are withheld.
    #[command(after_help = "Examples:
  plumb state outputs web-prod
  plumb state outputs web-prod --json | jq '.items[] | {name, value}'")]
    Outputs(resources::OutputsArgs),
    /// Find resources in the newest states of all workspaces.
    #[command(after_help = "Examples:
  plumb state search web eu-central-1
  plumb state search --type aws_instance --provider aws
  plumb state search i-0123456789abcdef0")]
    Search(resources::SearchArgs),
    /// Make an older version the newest again. Changes the state only, not the infrastructure.
    Rollback {
        /// The version to go back to.
        version: Uuid,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Writes that came with a lost lock: kept aside, not dropped.
    #[command(subcommand)]
    Quarantine(QuarantineCommand),
    /// Let the next write start another lineage, once (admins): for pushing a foreign state.
    AcceptNextLineage {
        /// The workspace's name or id.
        workspace: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// `plumb state quarantine …`
#[derive(Debug, Subcommand)]
pub enum QuarantineCommand {
    /// List the quarantined states of a workspace.
    List {
        /// The workspace's name or id.
        workspace: String,
    },
    /// Make a quarantined state the current one.
    Promote {
        /// The quarantined state's id.
        quarantined: Uuid,
    },
    /// Put a quarantined state away for good.
    Discard {
        /// The quarantined state's id.
        quarantined: Uuid,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: StateCommand) -> anyhow::Result<Outcome> {
    match command {
        StateCommand::List { workspace, page } => {
            let id = workspaces::find_id(app, &workspace).await?;
            let call = app.client.call(routes::LIST_STATE_VERSIONS, [&id]);
            let versions = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&versions, table)
        }
        StateCommand::Show { version } => {
            let version = app.client.call(routes::GET_STATE_VERSION, [&version.to_string()]).send().await?;
            app.show(&version, |screen, version: StateVersion| screen.print(&describe(&version)))
        }
        StateCommand::Pull { workspace, version, output } => pull(app, &workspace, version, output).await,
        StateCommand::Push(args) => push::push(app, &args).await,
        StateCommand::RmLock { workspace, yes } => state_locks::release(app, &workspace, yes, "--yes").await,
        StateCommand::Diff { version, against } => {
            let call = app.client.call(routes::DIFF_STATE_VERSION, [&version.to_string()]);
            let diff = call.query("against", against).send().await?;
            app.show(&diff, |screen, diff: StateDiff| print_diff(screen, &diff))
        }
        StateCommand::Outputs(args) => resources::outputs(app, args).await,
        StateCommand::Search(args) => resources::search(app, args).await,
        StateCommand::Rollback { version, yes } => rollback(app, &version.to_string(), yes).await,
        StateCommand::Quarantine(command) => quarantine(app, command).await,
        StateCommand::AcceptNextLineage { workspace, yes } => {
            let id = workspaces::find_id(app, &workspace).await?;
            if !yes && !confirm("Accept a state of another lineage at the next write?", "--yes").await? {
                return Ok(Outcome::Failed);
            }
            let answer = app.client.call(routes::ACCEPT_NEXT_LINEAGE, [&id]).send().await?;
            done(app, &answer, "The next write may start another lineage.")
        }
    }
}

async fn pull(app: &App, workspace: &str, version: Option<Uuid>, output: PathBuf) -> anyhow::Result<Outcome> {
    let id = match version {
        Some(version) => version.to_string(),
        None => {
            let workspace_id = workspaces::find_id(app, workspace).await?;
            let current = find_current(app, &workspace_id).await?;
            current.ok_or_else(|| anyhow::anyhow!("workspace {workspace} has no state yet"))?.id
        }
    };
    let response = app.client.call(routes::DOWNLOAD_STATE_VERSION, [&id]).download().await?;
    let size = save(response, &output).await?;
    app.screen.note(&format!("version {id}, {}", bytes(i64::try_from(size).unwrap_or(i64::MAX))));
    Ok(Outcome::Done)
}

/// The newest version; `None` before the first write.
async fn find_current(app: &App, workspace_id: &str) -> anyhow::Result<Option<StateVersion>> {
    let versions = app.client.call(routes::LIST_STATE_VERSIONS, [workspace_id]).send().await?;
    let versions: Page<StateVersion> = versions.read()?;
    Ok(versions.items.into_iter().find(|version| version.is_current))
}

async fn rollback(app: &App, id: &str, yes: bool) -> anyhow::Result<Outcome> {
    if !yes {
        let version: StateVersion = app.client.call(routes::GET_STATE_VERSION, [id]).send().await?.read()?;
        app.screen.note(&describe(&version));
        if !confirm("Make this version the newest again?", "--yes").await? {
            app.screen.note("The state stays as it is.");
            return Ok(Outcome::Failed);
        }
    }
    let version = app.client.call(routes::ROLL_BACK_STATE, [id]).creates(None).send().await?;
    app.show(&version, |screen, version: StateVersion| {
        screen.print(&format!(
            "The state is back; its new version is {} (serial {}).",
            version.id, version.serial
        ))?;
        screen.note("Plan before you apply: the infrastructure did not change.");
        Ok(())
    })
}

async fn quarantine(app: &App, command: QuarantineCommand) -> anyhow::Result<Outcome> {
    match command {
        QuarantineCommand::List { workspace } => {
            let id = workspaces::find_id(app, &workspace).await?;
            let states = app.client.call(routes::LIST_QUARANTINED_STATES, [&id]).send().await?;
            app.show(&states, |screen, page: Page<QuarantinedState>| {
                let mut table =
                    Table::new(&["ID", "SERIAL", "SIZE", "WHEN", "RUN", "REASON"]).shrinking("REASON");
                for state in page.items {
                    let serial = state.serial.map(|serial| serial.to_string()).unwrap_or_default();
                    let when = ago(state.created_at, Utc::now());
                    let run = state.run_id.unwrap_or_default();
                    table.row([state.id, serial, bytes(state.size_bytes), when, run, state.reason]);
                }
                table.print(screen, "Nothing is quarantined.", page.next_cursor.as_deref())
            })
        }
        QuarantineCommand::Promote { quarantined } => {
            let call = app.client.call(routes::PROMOTE_QUARANTINED_STATE, [&quarantined.to_string()]);
            let answer = call.send().await?;
            done(app, &answer, "The quarantined state is the current one now.")
        }
        QuarantineCommand::Discard { quarantined, yes } => {
            if !yes && !confirm("Put this state away for good?", "--yes").await? {
                return Ok(Outcome::Failed);
            }
            let call = app.client.call(routes::DISCARD_QUARANTINED_STATE, [&quarantined.to_string()]);
            let answer = call.send().await?;
            done(app, &answer, "The quarantined state is put away.")
        }
    }
}

fn done(app: &App, answer: &crate::api::Document, text: &str) -> anyhow::Result<Outcome> {
    if app.screen.json {
        app.screen.document(answer)?;
    } else {
        app.screen.print(text)?;
    }
    Ok(Outcome::Done)
}

fn table(screen: &Screen, page: Page<StateVersion>) -> anyhow::Result<()> {
    let mut table = Table::new(&["ID", "SERIAL", "", "RESOURCES", "SIZE", "CREATED", "RUN", "TERRAFORM"]);
    for version in page.items {
        let current = if version.is_current { screen.paint(Tone::Good, "current") } else { String::new() };
        let count = version.resource_count.map_or_else(|| "-".into(), |count| count.to_string());
        let count = if version.emptied { screen.paint(Tone::Attention, "0 (emptied)") } else { count };
        table.row([
            version.id,
            version.serial.to_string(),
            current,
            count,
            bytes(version.size_bytes),
            ago(version.created_at, Utc::now()),
            version.run_id.unwrap_or_else(|| "-".into()),
            version.terraform_version.unwrap_or_default(),
        ]);
    }
    table.print(screen, "No state yet.", page.next_cursor.as_deref())
}

fn describe(version: &StateVersion) -> String {
    facts(&[
        ("version", Some(version.id.clone())),
        ("workspace", Some(version.workspace_id.clone())),
        ("serial", Some(version.serial.to_string())),
        ("lineage", Some(version.lineage.clone())),
        ("size", Some(bytes(version.size_bytes))),
        ("resources", version.resource_count.map(|count| count.to_string())),
        ("emptied", version.emptied.then(|| "yes: the version before had resources".into())),
        ("stored in", version.stored_in.clone()),
        ("contradiction", version.contradiction.clone()),
        ("sha256", Some(version.sha256.clone())),
        ("terraform", version.terraform_version.clone()),
        ("written by run", version.run_id.clone()),
        ("written by user", version.created_by.clone()),
        ("rolled back from", version.rolled_back_from.clone()),
        ("current", version.is_current.then(|| "yes".into())),
        ("created", Some(ago(version.created_at, Utc::now()))),
    ])
}

fn print_diff(screen: &Screen, diff: &StateDiff) -> anyhow::Result<()> {
    let groups = [
        ("+", Tone::Good, &diff.added),
        ("~", Tone::Attention, &diff.changed),
        ("-", Tone::Bad, &diff.removed),
    ];
    let mut lines = Vec::new();
    for (mark, tone, addresses) in groups {
        lines.extend(addresses.iter().map(|address| format!("{} {address}", screen.paint(tone, mark))));
    }
    let output = |name: &String| format!("{} output.{name}", screen.paint(Tone::Attention, "~"));
    lines.extend(diff.outputs_changed.iter().map(output));
    if lines.is_empty() {
        lines.push("No resource and no output differs.".into());
    }
    screen.print(&lines.join("\n"))?;
    if diff.truncated {
        screen.note("More differs than is shown.");
    }
    Ok(())
}
