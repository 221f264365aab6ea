//! Whose runs may read a workspace's outputs.

use clap::Args;
use serde_json::json;

use super::find_id;
use crate::api::routes;
use crate::api::views::StateConsumers;
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::{Screen, Table};

/// `plumb workspace share-state`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  plumb workspace share-state network --with web --with batch
  plumb workspace share-state network            shows the list
  plumb workspace share-state network --nobody   ends all sharing")]
pub struct ShareArgs {
    /// The name or id of the workspace whose outputs they are.
    workspace: String,
    /// A workspace whose runs may read them; repeat for more. Those that you do not name lose the right.
    #[arg(long, value_name = "WORKSPACE")]
    with: Vec<String>,
    /// Share with none.
    #[arg(long, conflicts_with = "with")]
    nobody: bool,
}

pub(super) async fn run(app: &App, args: &ShareArgs) -> anyhow::Result<Outcome> {
    let id = find_id(app, &args.workspace).await?;
    if args.with.is_empty() && !args.nobody {
        let list = app.client.call(routes::LIST_STATE_CONSUMERS, [&id]).send().await?;
        return app.show(&list, show);
    }
    let mut consumers = Vec::new();
    for consumer in &args.with {
        consumers.push(find_id(app, consumer).await?);
    }
    let call = app.client.call(routes::SHARE_STATE, [&id]).body(json!({ "workspace_ids": consumers }));
    app.show(&call.send().await?, show)
}

fn show(screen: &Screen, consumers: StateConsumers) -> anyhow::Result<()> {
    let mut table = Table::new(&["WORKSPACE", "ID"]);
    for consumer in consumers.items {
        table.row([consumer.name, consumer.workspace_id]);
    }
    table.print(screen, "No other workspace may read these outputs.", None)
}
