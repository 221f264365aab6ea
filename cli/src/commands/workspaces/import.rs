//! Looking into repositories: short tasks that the command waits for.

use std::path::PathBuf;

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value, json};

use super::find::find_id;
use crate::api::{Document, routes};
use crate::app::App;
use crate::commands::tasks;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, read_secret_line};

/// A repository and how to get in.
#[derive(Debug, Args)]
pub(super) struct Repository {
    /// The repository's address.
    #[arg(value_name = "URL")]
    repo_url: String,
    /// The branch or tag to look at.
    #[arg(long = "ref", value_name = "REF")]
    reference: Option<String>,
    /// The user name for a private repository.
    #[arg(long)]
    username: Option<String>,
    /// Read the token for a private repository from the first line of stdin (or set PLUMB_GIT_TOKEN).
    #[arg(long)]
    token_stdin: bool,
    /// Do not wait for the result; print the task.
    #[arg(long)]
    no_wait: bool,
}

/// `plumb workspace discover`
#[derive(Debug, Args)]
pub struct DiscoverArgs {
    #[command(flatten)]
    repository: Repository,
}

/// `plumb workspace import`
#[derive(Debug, Args)]
#[command(after_help = "Without --entries, everything that discover finds is imported. To choose:
  plumb workspace discover URL --json > found.json     keep the entries that you want, as a list
  plumb workspace import URL --entries entries.json

An entry is {\"path\", \"name\", \"aws_account_id\", \"region\", \"environment\", \"kind\"}.")]
pub struct ImportArgs {
    #[command(flatten)]
    repository: Repository,
    /// A JSON file with the list of entries to import.
    #[arg(long, value_name = "FILE")]
    entries: Option<PathBuf>,
}

/// Lists what could be imported.
pub(super) async fn discover(app: &App, args: &DiscoverArgs) -> anyhow::Result<Outcome> {
    let call = app.client.call(routes::DISCOVER_WORKSPACES, []).body(body(&args.repository)?.into());
    let started = call.creates(None).send().await?;
    finish(app, started, args.repository.no_wait, "looking into the repository", print_discovered).await
}

/// Imports it.
pub(super) async fn import(app: &App, args: &ImportArgs) -> anyhow::Result<Outcome> {
    let mut body = body(&args.repository)?;
    if let Some(path) = &args.entries {
        let text =
            std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
        let entries: Vec<Value> =
            serde_json::from_str(&text).with_context(|| format!("{} is not a JSON list", path.display()))?;
        body.insert("entries".into(), entries.into());
    }
    let call = app.client.call(routes::IMPORT_WORKSPACES, []).body(body.into()).creates(None);
    let started = call.send().await?;
    finish(app, started, args.repository.no_wait, "importing workspaces", print_imported).await
}

/// Lists branches.
pub(super) async fn branches(app: &App, workspace: &str, no_wait: bool) -> anyhow::Result<Outcome> {
    let id = find_id(app, workspace).await?;
    let started = app.client.call(routes::LIST_BRANCHES, [&id]).creates(None).send().await?;
    finish(app, started, no_wait, "listing branches", print_branches).await
}

fn body(repository: &Repository) -> anyhow::Result<Map<String, Value>> {
    let token = if repository.token_stdin {
        Some(read_secret_line("token")?)
    } else {
        std::env::var("PLUMB_GIT_TOKEN").ok().filter(|token| !token.is_empty())
    };
    let mut body = Map::from_iter([("repo_url".to_owned(), json!(repository.repo_url))]);
    let optional =
        [("ref", repository.reference.clone()), ("username", repository.username.clone()), ("token", token)];
    body.extend(optional.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?.into()))));
    Ok(body)
}

async fn finish(
    app: &App,
    started: Document,
    no_wait: bool,
    doing: &str,
    print: fn(&Screen, &Value) -> anyhow::Result<()>,
) -> anyhow::Result<Outcome> {
    if no_wait {
        return app.show(&started, |screen, task: tasks::Started| {
            screen.print(&format!("Started task {}; its result: plumb tasks show {}", task.id(), task.id()))
        });
    }
    let (document, task) = tasks::wait(app, &started, doing).await?;
    if app.screen.json {
        app.screen.document(&document)?;
    } else {
        print(&app.screen, &task.result.unwrap_or_default())?;
    }
    Ok(Outcome::Done)
}

fn print_discovered(screen: &Screen, result: &Value) -> anyhow::Result<()> {
    let mut table =
        Table::new(&["PATH", "NAME", "ENVIRONMENT", "REGION", "ACCOUNT", "KIND"]).shrinking("PATH");
    for entry in rows(result, &["entries", "items", "workspaces", "candidates"]) {
        table.row(
            ["path", "name", "environment", "region", "aws_account_id", "kind"].map(|name| text(entry, name)),
        );
    }
    table.print(screen, "Nothing in this repository looks like a workspace.", None)
}

fn print_imported(screen: &Screen, result: &Value) -> anyhow::Result<()> {
    let created = rows(result, &["created"]);
    let mut table = Table::new(&["ID", "NAME", "PATH"]).shrinking("PATH");
    for entry in created {
        table.row(["id", "name", "path"].map(|name| text(entry, name)));
    }
    table.print(screen, "Nothing was imported.", None)?;
    for entry in rows(result, &["skipped"]) {
        screen.note(&format!("skipped {}: {}", text(entry, "path"), text(entry, "reason")));
    }
    if let Some(first) = created.first() {
        screen.note(&format!("Next: plumb run plan {}", text(first, "name")));
    }
    Ok(())
}

fn print_branches(screen: &Screen, result: &Value) -> anyhow::Result<()> {
    let default = text(result, "default_branch");
    let mut table = Table::new(&["BRANCH", ""]);
    for branch in rows(result, &["branches"]) {
        let name = branch.as_str().map_or_else(|| text(branch, "name"), str::to_owned);
        let mark = if name == default { "default".to_owned() } else { String::new() };
        table.row([name, mark]);
    }
    table.print(screen, "The repository has no branches.", None)
}

fn rows<'v>(result: &'v Value, names: &[&str]) -> &'v [Value] {
    let list = names.iter().find_map(|name| result.get(name)?.as_array()).or_else(|| result.as_array());
    list.map(Vec::as_slice).unwrap_or_default()
}

fn text(value: &Value, name: &str) -> String {
    value.get(name).and_then(Value::as_str).unwrap_or_default().to_owned()
}
