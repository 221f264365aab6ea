//! Variable sets.

use clap::{Args, Subcommand};
use serde_json::{Map, Value};
use uuid::Uuid;

use super::workspaces;
use crate::api::views::{Attachment, VariableSet};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{Table, confirm, facts};

/// `plumb variable-set …`
#[derive(Debug, Subcommand)]
pub enum VariableSetCommand {
    /// List variable sets.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one, and the workspaces that it is attached to. Its variables: `plumb var list --variable-set NAME`.
    Show {
        /// Its name or id.
        set: String,
    },
    /// Create one (admins).
    Create {
        /// Its name.
        name: String,
        #[command(flatten)]
        fields: Fields,
    },
    /// Change what you name (admins).
    Update {
        /// Its name or id.
        set: String,
        /// Its new name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Fields,
    },
    /// Delete one with its variables (admins).
    Delete {
        /// Its name or id.
        set: String,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Attach one to a workspace (admins).
    Attach {
        /// Its name or id.
        set: String,
        /// The workspace's name or id.
        workspace: String,
    },
    /// Detach one from a workspace (admins).
    Detach {
        /// Its name or id.
        set: String,
        /// The workspace's name or id.
        workspace: String,
    },
}

/// What can be said about a set.
#[derive(Debug, Args)]
pub struct Fields {
    /// For people; empty removes it.
    #[arg(long)]
    description: Option<String>,
    /// 0 to 1000: of two sets with the same key the one with the higher priority wins.
    #[arg(long, value_name = "N")]
    priority: Option<u16>,
    /// Whether every workspace of the business unit gets it.
    #[arg(long, value_name = "BOOL")]
    all_workspaces: Option<bool>,
}

impl Fields {
    fn named(&self) -> Map<String, Value> {
        let fields = [
            ("description", self.description.clone().map(Value::from)),
            ("priority", self.priority.map(Value::from)),
            ("all_workspaces", self.all_workspaces.map(Value::from)),
        ];
        fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
    }
}

/// Runs one of them.
pub async fn run(app: &App, command: VariableSetCommand) -> anyhow::Result<Outcome> {
    match command {
        VariableSetCommand::List { page } => list(app, page).await,
        VariableSetCommand::Show { set } => show(app, &set).await,
        VariableSetCommand::Create { name, fields } => {
            let mut body = fields.named();
            body.insert("name".into(), name.into());
            let call = app.client.call(routes::CREATE_VARIABLE_SET, []).body(body.into()).creates(None);
            app.show(&call.send().await?, |screen, set: VariableSet| {
                screen.print(&format!("Created variable set {}, id {}.", set.name, set.id))?;
                screen.note(&format!("Next: plumb var set KEY VALUE --variable-set {}", set.name));
                Ok(())
            })
        }
        VariableSetCommand::Update { set, name, fields } => update(app, &set, name, &fields).await,
        VariableSetCommand::Delete { set, yes } => delete(app, &set, yes).await,
        VariableSetCommand::Attach { set, workspace } => {
            let (set, id) = (find(app, &set).await?, workspaces::find_id(app, &workspace).await?);
            app.client.call(routes::ATTACH_VARIABLE_SET, [&set.id, &id]).send().await?;
            done(app, &format!("The workspace {workspace} gets the variables of {}.", set.name))
        }
        VariableSetCommand::Detach { set, workspace } => {
            let (set, id) = (find(app, &set).await?, workspaces::find_id(app, &workspace).await?);
            app.client.call(routes::DETACH_VARIABLE_SET, [&set.id, &id]).send().await?;
            done(app, &format!("{} is not attached to the workspace {workspace} any more.", set.name))
        }
    }
}

fn done(app: &App, sentence: &str) -> anyhow::Result<Outcome> {
    if !app.screen.json {
        app.screen.print(sentence)?;
    }
    Ok(Outcome::Done)
}

async fn list(app: &App, page: PageArgs) -> anyhow::Result<Outcome> {
    let call = app.client.call(routes::LIST_VARIABLE_SETS, []);
    let sets = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
    app.show(&sets, |screen, page: Page<VariableSet>| {
        let mut table = Table::new(&["ID", "NAME", "PRIORITY", "WORKSPACES", "DESCRIPTION"]);
        for set in page.items {
            let reach = if set.all_workspaces { "all" } else { "attached" };
            let description = set.description.unwrap_or_default();
            table.row([set.id, set.name, set.priority.to_string(), reach.into(), description]);
        }
        table.shrinking("DESCRIPTION").print(screen, "No variable sets.", page.next_cursor.as_deref())
    })
}

async fn show(app: &App, text: &str) -> anyhow::Result<Outcome> {
    let id = find(app, text).await?.id;
    let document = app.client.call(routes::GET_VARIABLE_SET, [&id]).send().await?;
    let attached = app.client.call(routes::LIST_VARIABLE_SET_WORKSPACES, [&id]).send().await?;
    let attached: Page<Attachment> = attached.read()?;
    let more = if attached.next_cursor.is_some() { ", and more" } else { "" };
    let names: Vec<String> = attached.items.into_iter().map(|one| one.workspace_name).collect();
    app.show(&document, |screen, set: VariableSet| {
        screen.print(&facts(&[
            ("variable set", Some(set.name)),
            ("id", Some(set.id)),
            ("priority", Some(set.priority.to_string())),
            ("all workspaces", Some(set.all_workspaces.to_string())),
            ("attached to", (!names.is_empty()).then(|| format!("{}{more}", names.join(", ")))),
            ("description", set.description),
        ]))
    })
}

async fn update(app: &App, text: &str, name: Option<String>, fields: &Fields) -> anyhow::Result<Outcome> {
    let mut named = fields.named();
    named.extend(name.map(|name| ("name".to_owned(), name.into())));
    if named.is_empty() {
        return Err(Usage::error("nothing to change: name at least one field, see --help"));
    }
    let id = find(app, text).await?.id;
    let seen = app.client.call(routes::GET_VARIABLE_SET, [&id]).send().await?;
    let call = app.client.call(routes::UPDATE_VARIABLE_SET, [&id]).if_match(&seen).body(named.into());
    app.show(&call.send().await?, |screen, set: VariableSet| {
        screen.print(&format!("Changed variable set {}.", set.name))
    })
}

async fn delete(app: &App, text: &str, yes: bool) -> anyhow::Result<Outcome> {
    let set = find(app, text).await?;
    let question = format!("Delete the variable set {} with its variables?", set.name);
    if !yes && !confirm(&question, "--yes").await? {
        app.screen.note("Nothing was deleted.");
        return Ok(Outcome::Failed);
    }
    app.client.call(routes::DELETE_VARIABLE_SET, [&set.id]).send().await?;
    done(app, &format!("Deleted the variable set {}.", set.name))
}

/// The set with this name or id.
pub(super) async fn find(app: &App, text: &str) -> anyhow::Result<VariableSet> {
    if let Ok(id) = text.parse::<Uuid>() {
        return app.client.call(routes::GET_VARIABLE_SET, [&id.to_string()]).send().await?.read();
    }
    let mut cursor = None;
    loop {
        let page = app.client.call(routes::LIST_VARIABLE_SETS, []).query("cursor", cursor).send().await?;
        let page: Page<VariableSet> = page.read()?;
        if let Some(set) = page.items.into_iter().find(|set| set.name == text) {
            return Ok(set);
        }
        cursor = page.next_cursor;
        anyhow::ensure!(
            cursor.is_some(),
            "there is no variable set `{text}` here; see plumb variable-set list"
        );
    }
}
