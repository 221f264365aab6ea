//! The lock of a workspace's state.

use chrono::Utc;
use clap::Subcommand;
use serde_json::Value;

use super::workspaces;
use crate::api::routes;
use crate::api::views::{LockWaiter, StateLock};
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::{ago, confirm, facts};

/// `plumb lock …`
#[derive(Debug, Subcommand)]
pub enum LockCommand {
    /// Who holds the lock.
    Show {
        /// The workspace's name or id.
        workspace: String,
    },
    /// Break the lock (admins). Refused while the executor that holds it may still live.
    #[command(
        after_help = "Whoever holds the lock may be writing. What they write after the release is quarantined, not lost:
see plumb state quarantine list WORKSPACE."
    )]
    Release {
        /// The workspace's name or id.
        workspace: String,
        /// Do not ask.
        #[arg(long, visible_alias = "yes")]
        force: bool,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: LockCommand) -> anyhow::Result<Outcome> {
    match command {
        LockCommand::Show { workspace } => {
            let id = workspaces::find_id(app, &workspace).await?;
            let lock = app.client.call(routes::GET_STATE_LOCK, [&id]).send().await?;
            app.show(&lock, |screen, lock: StateLock| screen.print(&describe(&lock)))
        }
        LockCommand::Release { workspace, force } => release(app, &workspace, force, "--force").await,
    }
}

/// Breaks the lock; asks before, unless `flag` was given.
pub(super) async fn release(app: &App, workspace: &str, force: bool, flag: &str) -> anyhow::Result<Outcome> {
    let id = workspaces::find_id(app, workspace).await?;
    if !force {
        let lock: StateLock = app.client.call(routes::GET_STATE_LOCK, [&id]).send().await?.read()?;
        app.screen.note(&describe(&lock));
        if !lock.held {
            return Ok(Outcome::Done);
        }
        if !confirm("Break this lock?", flag).await? {
            app.screen.note("The lock stays.");
            return Ok(Outcome::Failed);
        }
    }
    app.client.call(routes::RELEASE_STATE_LOCK, [&id]).send().await?;
    if !app.screen.json {
        app.screen.print("The lock is released.")?;
    }
    Ok(Outcome::Done)
}

fn describe(lock: &StateLock) -> String {
    [Some(describe_holder(lock)), describe_workspace_lock(lock), describe_waiters(lock)]
        .into_iter()
        .flatten()
        .collect::<Vec<_>>()
        .join("\n")
}

/// The state may be free, and its workspace locked all the same.
fn describe_workspace_lock(lock: &StateLock) -> Option<String> {
    let locked = lock.workspace_lock.as_ref()?;
    let since = ago(locked.at, Utc::now());
    Some(format!("The workspace is locked by {}: {} ({since}).", locked.who, locked.reason))
}

fn describe_waiters(lock: &StateLock) -> Option<String> {
    let line = |waiter: &LockWaiter| {
        let who = waiter.who.as_deref().unwrap_or(&waiter.lock_id);
        let what = waiter.operation.as_deref().map(|what| format!(" for {what}")).unwrap_or_default();
        let since = ago(waiter.first_tried_at, Utc::now());
        format!("waiting: {who}{what}, asked {} times, first {since}", waiter.tries)
    };
    let lines: Vec<String> = lock.waiters.iter().map(line).collect();
    (!lines.is_empty()).then(|| lines.join("\n"))
}

fn describe_holder(lock: &StateLock) -> String {
    if !lock.held {
        return "The state is not locked.".into();
    }
    let info = |name: &str| {
        let value = lock.info.as_ref()?.get(name)?;
        value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
    };
    let unreadable = lock.info.as_ref().filter(|info| !info.is_object()).map(Value::to_string);
    facts(&[
        ("locked", Some(ago(lock.locked_at, Utc::now()))),
        ("by", info("Who").or(unreadable)),
        ("for", info("Operation")),
        ("which says", info("Info")),
        ("run", lock.run_url.clone().or_else(|| lock.run_id.clone())),
        ("lock id", lock.lock_id.clone()),
    ])
}
