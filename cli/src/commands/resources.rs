//! What states contain: resources of all workspaces, and outputs.

use clap::Args;
use serde_json::Value;
use uuid::Uuid;

use super::workspaces;
use crate::api::views::{Resource, StateOutputs};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, Tone};

/// `plumb state search`
#[derive(Debug, Args)]
pub struct SearchArgs {
    /// Words that must all occur in address, id, ARN, provider or names.
    query: Vec<String>,
    /// Only resources of this type, such as aws_instance.
    #[arg(long = "type", value_name = "TYPE")]
    kind: Option<String>,
    /// Only resources of this provider, such as aws or hashicorp/aws.
    #[arg(long)]
    provider: Option<String>,
    /// Only resources of this workspace: its name or id.
    #[arg(long)]
    workspace: Option<String>,
    #[command(flatten)]
    page: PageArgs,
}

/// `plumb state outputs`
#[derive(Debug, Args)]
pub struct OutputsArgs {
    /// The workspace's name or id.
    workspace: String,
    /// An older version than the current one.
    #[arg(long, value_name = "ID")]
    version: Option<Uuid>,
    /// Also show sensitive values; reading them is recorded.
    #[arg(long)]
    sensitive: bool,
}

/// Searches the newest states.
pub(super) async fn search(app: &App, args: SearchArgs) -> anyhow::Result<Outcome> {
    let workspace_id = match &args.workspace {
        Some(workspace) => Some(workspaces::find_id(app, workspace).await?),
        None => None,
    };
    let words = args.query.join(" ");
    let call = app.client.call(routes::SEARCH_RESOURCES, []);
    let call = call.query("q", (!words.is_empty()).then_some(words)).query("type", args.kind);
    let call = call.query("provider", args.provider).query("workspace_id", workspace_id);
    let found = call.query("limit", args.page.limit).query("cursor", args.page.cursor).send().await?;
    app.show(&found, |screen, page: Page<Resource>| {
        let mut table = Table::new(&["WORKSPACE", "ADDRESS", "ID"]).shrinking("ID");
        for resource in page.items {
            let id = resource.arn.or(resource.resource_id).unwrap_or_default();
            table.row([resource.workspace_name, resource.address, id]);
        }
        table.print(screen, "No state has such a resource.", page.next_cursor.as_deref())
    })
}

/// Shows the outputs of a state.
pub(super) async fn outputs(app: &App, args: OutputsArgs) -> anyhow::Result<Outcome> {
    let call = match args.version {
        Some(version) => app.client.call(routes::VERSION_OUTPUTS, [&version.to_string()]),
        None => {
            let id = workspaces::find_id(app, &args.workspace).await?;
            app.client.call(routes::WORKSPACE_OUTPUTS, [&id])
        }
    };
    let outputs = call.query("sensitive", args.sensitive.then_some(true)).send().await?;
    app.show(&outputs, print_outputs)
}

fn print_outputs(screen: &Screen, outputs: StateOutputs) -> anyhow::Result<()> {
    let Some(serial) = outputs.serial else { return screen.print("No state yet.") };
    if outputs.items.is_empty() {
        return screen.print(&format!("The state with serial {serial} has no outputs."));
    }
    let mut table = Table::new(&["NAME", "TYPE", "VALUE"]).shrinking("VALUE");
    for output in outputs.items {
        let value = match output.withheld.as_deref() {
            None => plain(&output.value),
            Some("sensitive") => screen.paint(Tone::Attention, "(sensitive)"),
            Some(_) => screen.paint(Tone::Attention, "(too long to show)"),
        };
        table.row([output.name, plain(&output.kind), value]);
    }
    table.print(screen, "", None)?;
    if outputs.truncated {
        screen.note("There are more outputs than are shown.");
    }
    Ok(())
}

fn plain(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
