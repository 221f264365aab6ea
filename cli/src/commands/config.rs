//! Tunables of the platform, and what integrations share with them: values, secrets, histories.

use std::collections::BTreeMap;
use std::path::PathBuf;

use chrono::Utc;
use clap::{Args, Subcommand};
use serde_json::{Value, json};

use crate::api::views::{ConfigChange, Tunable};
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{Table, ago, facts, read_secret_line};

/// `plumb config …`
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// List the platform's tunables and what holds (admins).
    List,
    /// Show one: what holds, its default, and what it may be.
    Get {
        /// Its key, such as `auth.access_token_expire_minutes`.
        key: String,
    },
    /// Set one (superadmins). A secret is read from stdin or a file, never from the command line.
    #[command(after_help = "Examples:
  plumb config set auth.access_token_expire_minutes 60
  pass show oidc | plumb config set auth.oidc.client_secret --stdin")]
    Set(SetArgs),
    /// Take a value away, so that its default holds (superadmins).
    Unset {
        /// Its key.
        key: String,
    },
    /// List who changed one, and when (superadmins).
    History {
        /// Its key.
        key: String,
        #[command(flatten)]
        page: PageArgs,
    },
}

/// What to set.
#[derive(Debug, Args)]
pub struct SetArgs {
    /// Its key.
    key: String,
    /// Its value, unless it is a secret.
    #[arg(required_unless_present_any = ["stdin", "file"], conflicts_with_all = ["stdin", "file"])]
    value: Option<String>,
    /// Read the value from the first line of stdin.
    #[arg(long, conflicts_with = "file")]
    stdin: bool,
    /// Read the value from a file.
    #[arg(long, value_name = "PATH")]
    file: Option<PathBuf>,
}

/// Runs one of them.
pub async fn run(app: &App, command: ConfigCommand) -> anyhow::Result<Outcome> {
    match command {
        ConfigCommand::List => list(app).await,
        ConfigCommand::Get { key } => {
            let tunable = app.client.call(routes::GET_TUNABLE, [&key]).send().await?;
            app.show(&tunable, |screen, tunable: Tunable| screen.print(&describe(&key, &tunable)))
        }
        ConfigCommand::Set(set) => {
            let seen = app.client.call(routes::GET_TUNABLE, [&set.key]).send().await?;
            let value = value_of(&set, &seen.read()?)?;
            let body = json!({ "value": value });
            let call = app.client.call(routes::SET_TUNABLE, [&set.key]).if_match(&seen).body(body);
            let after = call.send().await?;
            app.show(&after, |screen, after: Tunable| screen.print(&describe(&set.key, &after)))
        }
        ConfigCommand::Unset { key } => {
            let seen = app.client.call(routes::GET_TUNABLE, [&key]).send().await?;
            app.client.call(routes::UNSET_TUNABLE, [&key]).if_match(&seen).send().await?;
            done(app, &format!("The default of {key} holds."))
        }
        ConfigCommand::History { key, page } => {
            let call = app.client.call(routes::TUNABLE_HISTORY, [&key]);
            let changes = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            history(app, &changes)
        }
    }
}

async fn list(app: &App) -> anyhow::Result<Outcome> {
    let tunables = app.client.call(routes::LIST_TUNABLES, []).send().await?;
    app.show(&tunables, |screen, tunables: BTreeMap<String, Tunable>| {
        let mut table = Table::new(&["KEY", "VALUE", "DEFAULT", "WHAT"]).shrinking("WHAT");
        for (key, tunable) in tunables {
            let default = shown(&tunable.default);
            table.row([key, held(&tunable), default, tunable.description]);
        }
        table.print(screen, "No tunables.", None)
    })
}

fn value_of(set: &SetArgs, tunable: &Tunable) -> anyhow::Result<Value> {
    let text = match (&set.value, &set.file) {
        (Some(_), _) if tunable.kind == "secret" => return Err(on_the_command_line(&set.key)),
        (Some(value), _) => value.clone(),
        (None, Some(path)) => read_file(path)?,
        (None, None) => read_secret_line("value")?,
    };
    match tunable.kind.as_str() {
        "bool" => boolean(&set.key, &text),
        "integer" | "duration" => number(&set.key, &text),
        _ => Ok(text.into()),
    }
}

/// A value for a field that holds booleans.
pub(super) fn boolean(name: &str, text: &str) -> anyhow::Result<Value> {
    let value = text.parse::<bool>().map_err(|_| Usage::error(format!("{name} must be true or false")))?;
    Ok(value.into())
}

/// A value for a field that holds numbers.
pub(super) fn number(name: &str, text: &str) -> anyhow::Result<Value> {
    let value = text.parse::<i64>().map_err(|_| Usage::error(format!("{name} must be a whole number")))?;
    Ok(value.into())
}

/// Whoever lists processes would have read it.
pub(super) fn on_the_command_line(name: &str) -> anyhow::Error {
    Usage::error(format!("{name} is a secret: give it on stdin or in a file, never on the command line"))
}

/// A value from a file, without the newline at its end.
pub(super) fn read_file(path: &std::path::Path) -> anyhow::Result<String> {
    let text = std::fs::read_to_string(path)
        .map_err(|error| Usage::error(format!("{} cannot be read: {error}", path.display())))?;
    Ok(text.trim_end_matches(['\r', '\n']).to_owned())
}

/// Says that something without an answer was done.
pub(super) fn done(app: &App, what: &str) -> anyhow::Result<Outcome> {
    if !app.screen.json {
        app.screen.print(what)?;
    }
    Ok(Outcome::Done)
}

/// A value for people.
pub(super) fn shown(value: &Value) -> String {
    match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}

/// The end of a secret, or whether there is one.
pub(super) fn masked(configured: bool, tail: Option<&str>) -> String {
    match (configured, tail) {
        (false, _) => String::new(),
        (true, Some(tail)) => tail.to_owned(),
        (true, None) => "(set)".to_owned(),
    }
}

/// Shows who changed what.
pub(super) fn history(app: &App, changes: &Document) -> anyhow::Result<Outcome> {
    app.show(changes, |screen, page: Page<ConfigChange>| {
        let now = Utc::now();
        let mut table = Table::new(&["WHEN", "KEY", "CHANGE", "FROM", "TO", "BY"]);
        for change in page.items {
            table.row([
                ago(change.changed_at, now),
                change.key,
                change.change,
                shown(&change.old_value),
                shown(&change.new_value),
                change.changed_by.unwrap_or_else(|| "system".into()),
            ]);
        }
        table.print(screen, "Never changed.", page.next_cursor.as_deref())
    })
}

fn held(tunable: &Tunable) -> String {
    if tunable.kind == "secret" {
        masked(tunable.configured, tunable.masked_tail.as_deref())
    } else {
        shown(&tunable.value)
    }
}

fn describe(key: &str, tunable: &Tunable) -> String {
    let bounds = tunable.min.zip(tunable.max).map(|(min, max)| format!("{min} to {max}"));
    facts(&[
        ("key", Some(key.to_owned())),
        ("value", Some(held(tunable))),
        ("default", Some(shown(&tunable.default))),
        ("type", Some(tunable.kind.clone())),
        ("may be", bounds.or_else(|| tunable.words.as_ref().map(|words| words.join(", ")))),
        ("what", Some(tunable.description.clone())),
        ("changed", tunable.updated_at.map(|at| ago(Some(at), Utc::now()))),
        ("by", tunable.updated_by.clone()),
    ])
}
