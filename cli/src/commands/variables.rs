//! Variables of the business unit, of variable sets and of workspaces.

use std::io::Read as _;
use std::path::PathBuf;

use chrono::Utc;
use clap::{Args, Subcommand};
use serde_json::{Map, Value, json};

use super::{variable_sets, workspaces};
use crate::api::routes::{self, Route};
use crate::api::views::{Effective, Variable};
use crate::api::{Document, Page};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, ago, confirm};

/// Longer values are refused by the server; reading stops there.
const VALUE_BYTES_MAX: u64 = 64 << 10;

/// `plumb var …`
#[derive(Debug, Subcommand)]
pub enum VariableCommand {
    /// List variables of the business unit, or of one workspace or variable set.
    List {
        #[command(flatten)]
        owner: OwnerArgs,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Create a variable, or change what you name of it.
    #[command(
        after_help = "A secret's value comes from a file or stdin, never from an argument. Every byte counts,
also a newline at the end.

Examples:
  plumb var set region eu-west-1
  plumb var set sizes '[1, 2]' --hcl --workspace web-prod
  printf %s \"$PASSWORD\" | plumb var set db_password --secret --value-stdin --workspace web-prod
  plumb var set tls_key --secret --value-file key.pem --variable-set certificates"
    )]
    Set(SetArgs),
    /// Delete a variable.
    Delete {
        /// Its key.
        key: String,
        #[command(flatten)]
        owner: OwnerArgs,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// What the next run of a workspace gets, where each value comes from, and what it wins over.
    Effective {
        /// The workspace's name or id.
        workspace: String,
    },
}

/// Whose variables; without either, the business unit's.
#[derive(Debug, Args)]
pub struct OwnerArgs {
    /// Of this workspace (name or id).
    #[arg(long, short, conflicts_with = "variable_set")]
    workspace: Option<String>,
    /// Of this variable set (name or id).
    #[arg(long, visible_alias = "set", value_name = "SET")]
    variable_set: Option<String>,
}

/// What to set.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its key: the name of the Terraform variable.
    key: String,
    /// Its value, exactly as it stands; not for secrets.
    #[arg(conflicts_with_all = ["value_file", "value_stdin"])]
    value: Option<String>,
    /// Read the value from this file, byte for byte.
    #[arg(long, value_name = "FILE", conflicts_with = "value_stdin")]
    value_file: Option<PathBuf>,
    /// Read the value from stdin, byte for byte.
    #[arg(long)]
    value_stdin: bool,
    /// Never show the value again.
    #[arg(long)]
    secret: bool,
    /// Show the value; for what was a secret, only with a new value.
    #[arg(long, conflicts_with = "secret")]
    no_secret: bool,
    /// The value is an HCL expression.
    #[arg(long)]
    hcl: bool,
    /// The value is text.
    #[arg(long, conflicts_with = "hcl")]
    no_hcl: bool,
    /// For people; empty removes it.
    #[arg(long)]
    description: Option<String>,
    #[command(flatten)]
    owner: OwnerArgs,
}

/// Runs one of them.
pub async fn run(app: &App, command: VariableCommand) -> anyhow::Result<Outcome> {
    match command {
        VariableCommand::List { owner, page } => {
            let owner = Owner::find(app, &owner).await?;
            let document = owner.page(app, page.limit, page.cursor).await?;
            app.show(&document, table)
        }
        VariableCommand::Set(args) => set(app, &args).await,
        VariableCommand::Delete { key, owner, yes } => delete(app, &key, &owner, yes).await,
        VariableCommand::Effective { workspace } => {
            let id = workspaces::find_id(app, &workspace).await?;
            let document = app.client.call(routes::GET_EFFECTIVE_VARIABLES, [&id]).send().await?;
            app.show(&document, effective)
        }
    }
}

/// Whose variables, by id.
enum Owner {
    Unit,
    Set(String),
    Workspace(String),
}

impl Owner {
    async fn find(app: &App, args: &OwnerArgs) -> anyhow::Result<Self> {
        match (&args.workspace, &args.variable_set) {
            (Some(workspace), _) => Ok(Self::Workspace(workspaces::find_id(app, workspace).await?)),
            (None, Some(set)) => Ok(Self::Set(variable_sets::find(app, set).await?.id)),
            (None, None) => Ok(Self::Unit),
        }
    }

    async fn page(&self, app: &App, limit: Option<u32>, cursor: Option<String>) -> anyhow::Result<Document> {
        let call = match self {
            Self::Unit => app.client.call(routes::LIST_VARIABLES, []),
            Self::Set(id) => app.client.call(routes::LIST_SET_VARIABLES, [id]),
            Self::Workspace(id) => app.client.call(routes::LIST_WORKSPACE_VARIABLES, [id]),
        };
        call.query("limit", limit).query("cursor", cursor).send().await
    }

    /// A call about one variable.
    async fn send(
        &self,
        app: &App,
        one: [Route<1>; 1],
        two: [Route<2>; 2],
        id: &str,
        edit: Option<(&Document, Value)>,
    ) -> anyhow::Result<Document> {
        let [of_unit] = one;
        let [of_set, of_workspace] = two;
        let call = match self {
            Self::Unit => app.client.call(of_unit, [id]),
            Self::Set(set) => app.client.call(of_set, [set, id]),
            Self::Workspace(workspace) => app.client.call(of_workspace, [workspace, id]),
        };
        match edit {
            Some((seen, body)) => call.if_match(seen).body(body).send().await,
            None => call.send().await,
        }
    }

    async fn create(&self, app: &App, body: Value) -> anyhow::Result<Document> {
        let call = match self {
            Self::Unit => app.client.call(routes::CREATE_VARIABLE, []),
            Self::Set(id) => app.client.call(routes::CREATE_SET_VARIABLE, [id]),
            Self::Workspace(id) => app.client.call(routes::CREATE_WORKSPACE_VARIABLE, [id]),
        };
        call.body(body).creates(None).send().await
    }

    async fn get(&self, app: &App, id: &str) -> anyhow::Result<Document> {
        let two = [routes::GET_SET_VARIABLE, routes::GET_WORKSPACE_VARIABLE];
        self.send(app, [routes::GET_VARIABLE], two, id, None).await
    }

    /// The variable with this key, if there is one.
    async fn find_key(&self, app: &App, key: &str) -> anyhow::Result<Option<Variable>> {
        let mut cursor = None;
        loop {
            let page: Page<Variable> = self.page(app, None, cursor).await?.read()?;
            if let Some(found) = page.items.into_iter().find(|variable| variable.key == key) {
                return Ok(Some(found));
            }
            cursor = page.next_cursor;
            if cursor.is_none() {
                return Ok(None);
            }
        }
    }
}

async fn set(app: &App, args: &SetArgs) -> anyhow::Result<Outcome> {
    let refuse = || {
        Usage::error(
            "a secret's value comes from --value-file or --value-stdin: arguments can be read by everybody on a machine",
        )
    };
    if args.secret && args.value.is_some() {
        return Err(refuse());
    }
    let value = value(app, args)?;
    let owner = Owner::find(app, &args.owner).await?;
    let mut body = named(args, value);
    match owner.find_key(app, &args.key).await? {
        Some(existing) => {
            if existing.is_secret && args.value.is_some() && !args.no_secret {
                return Err(refuse());
            }
            if body.is_empty() {
                return Err(Usage::error("nothing to change: give a value or a flag, see --help"));
            }
            let seen = owner.get(app, &existing.id).await?;
            let two = [routes::UPDATE_SET_VARIABLE, routes::UPDATE_WORKSPACE_VARIABLE];
            let edit = Some((&seen, body.into()));
            let changed = owner.send(app, [routes::UPDATE_VARIABLE], two, &existing.id, edit).await?;
            tell(app, &changed, "Changed")
        }
        None => {
            if !body.contains_key("value") {
                return Err(Usage::error(
                    "a new variable needs a value: as an argument, or with --value-file or --value-stdin",
                ));
            }
            body.insert("key".into(), args.key.clone().into());
            tell(app, &owner.create(app, body.into()).await?, "Created")
        }
    }
}

/// The fields that were named, under the API's names.
fn named(args: &SetArgs, value: Option<String>) -> Map<String, Value> {
    let flag = |yes: bool, no: bool| (yes || no).then(|| json!(yes));
    let fields = [
        ("value", value.map(Value::from)),
        ("is_secret", flag(args.secret, args.no_secret)),
        ("is_hcl", flag(args.hcl, args.no_hcl)),
        ("description", args.description.clone().map(Value::from)),
    ];
    fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect()
}

fn value(app: &App, args: &SetArgs) -> anyhow::Result<Option<String>> {
    let mut bytes = Vec::new();
    match &args.value_file {
        Some(path) => {
            let file = std::fs::File::open(path)
                .map_err(|error| Usage::error(format!("{} cannot be read: {error}", path.display())))?;
            file.take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        }
        None if args.value_stdin => {
            std::io::stdin().lock().take(VALUE_BYTES_MAX + 1).read_to_end(&mut bytes)?;
        }
        None => return Ok(args.value.clone()),
    }
    if bytes.len() as u64 > VALUE_BYTES_MAX {
        return Err(Usage::error("a value has at most 64 KiB"));
    }
    if bytes.ends_with(b"\n") {
        app.screen.note("The value ends with a newline, which is part of it.");
    }
    let text = String::from_utf8(bytes)
        .map_err(|_| Usage::error("the value is not UTF-8 text; encode it, for instance with base64"))?;
    Ok(Some(text))
}

async fn delete(app: &App, key: &str, args: &OwnerArgs, yes: bool) -> anyhow::Result<Outcome> {
    let owner = Owner::find(app, args).await?;
    let found = owner.find_key(app, key).await?;
    let found =
        found.ok_or_else(|| anyhow::anyhow!("there is no variable `{key}` here; see plumb var list"))?;
    if !yes && !confirm(&format!("Delete the variable {key}?"), "--yes").await? {
        app.screen.note("Nothing was deleted.");
        return Ok(Outcome::Failed);
    }
    let two = [routes::DELETE_SET_VARIABLE, routes::DELETE_WORKSPACE_VARIABLE];
    owner.send(app, [routes::DELETE_VARIABLE], two, &found.id, None).await?;
    if !app.screen.json {
        app.screen.print(&format!("Deleted the variable {key}."))?;
    }
    Ok(Outcome::Done)
}

fn tell(app: &App, document: &Document, done: &str) -> anyhow::Result<Outcome> {
    app.show(document, |screen, variable: Variable| {
        screen.print(&format!("{done} the variable {}, id {}.", variable.key, variable.id))
    })
}

fn table(screen: &Screen, page: Page<Variable>) -> anyhow::Result<()> {
    let mut table = Table::new(&["KEY", "VALUE", "KIND", "DESCRIPTION"]).shrinking("VALUE");
    for one in page.items {
        let shown = shown(one.value, one.masked_tail.as_deref(), one.is_secret, one.is_readable);
        table.row([one.key, shown, kind(one.is_secret, one.is_hcl), one.description.unwrap_or_default()]);
    }
    table.print(screen, "No variables.", page.next_cursor.as_deref())
}

/// The merged view, of a workspace or of a run.
pub(super) fn effective(screen: &Screen, all: Effective) -> anyhow::Result<()> {
    let mut table = Table::new(&["KEY", "VALUE", "KIND", "SOURCE", "WINS OVER"]).shrinking("VALUE");
    for one in all.items {
        let shown = match all.removed_at {
            Some(_) => "(removed)".into(),
            None => shown(one.value, one.masked_tail.as_deref(), one.is_secret, one.is_readable),
        };
        let overrides: Vec<String> = one.overrides.iter().map(ToString::to_string).collect();
        let kind = kind(one.is_secret, one.is_hcl);
        table.row([one.key, shown, kind, one.source.to_string(), overrides.join(", ")]);
    }
    table.print(screen, "No variables.", None)?;
    if !all.fits {
        screen.note("These are more than a run may have: the next run will be refused.");
    }
    if all.removed_at.is_some() {
        let when = ago(all.removed_at, Utc::now());
        screen.note(&format!("The run ended long ago: its values were removed {when}."));
    }
    if all.pinned == Some(false) {
        screen.note("The run has not begun: these are its own, the others are added when it begins.");
    }
    Ok(())
}

fn shown(value: Option<String>, tail: Option<&str>, is_secret: bool, is_readable: bool) -> String {
    match (value, is_secret, is_readable) {
        (_, _, false) => "(cannot be opened: set it anew)".into(),
        (_, true, true) => format!("(secret{})", tail.unwrap_or_default()),
        (Some(value), false, true) => value,
        (None, false, true) => String::new(),
    }
}

fn kind(is_secret: bool, is_hcl: bool) -> String {
    let words = [(is_secret, "secret"), (is_hcl, "hcl")];
    words.iter().filter(|(is, _)| *is).map(|(_, word)| *word).collect::<Vec<_>>().join(" ")
}
