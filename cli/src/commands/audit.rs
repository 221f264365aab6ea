//! The record of everything that was done.

mod export;
mod offline;

use std::path::PathBuf;

use chrono::{DateTime, Utc};
use clap::{Args as ClapArgs, Subcommand};
use uuid::Uuid;

use super::workspaces;
use crate::api::views::{AuditEntry, AuditVerdict};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Screen, Table, ago};

pub use offline::verify_file;

/// `plumb audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first.
    List(Box<ListArgs>),
    /// Write every chain that you can see to a file, as JSON lines that can be verified elsewhere.
    Export {
        /// The file; `-` is stdout. Only you can read it.
        #[arg(long, value_name = "FILE")]
        output: PathBuf,
        /// Only this chain: a business unit's id, or all zeros for the platform's.
        #[arg(long, value_name = "ID")]
        chain: Option<Uuid>,
    },
    /// Check that nothing was changed or removed since it was written. Exit code 1 if something was.
    Verify(VerifyArgs),
}

/// What to list.
#[derive(Debug, ClapArgs)]
pub struct ListArgs {
    /// Only about this workspace (name or id).
    #[arg(long)]
    workspace: Option<String>,
    /// Only about this run.
    #[arg(long)]
    run: Option<Uuid>,
    /// Only this action, such as `run.approve`.
    #[arg(long)]
    action: Option<String>,
    /// Only what this person did (a user's id).
    #[arg(long)]
    user: Option<Uuid>,
    /// Only what was done to things of this kind, such as `workspace`.
    #[arg(long)]
    resource_type: Option<String>,
    /// Only what was done to this thing.
    #[arg(long)]
    resource_id: Option<String>,
    /// Not earlier than this, as 2026-01-31T00:00:00Z.
    #[arg(long, value_name = "TIME")]
    from: Option<DateTime<Utc>>,
    /// Earlier than this.
    #[arg(long, value_name = "TIME")]
    to: Option<DateTime<Utc>>,
    #[command(flatten)]
    page: PageArgs,
}

/// What to verify: the server's log, or an exported file without any server.
#[derive(Debug, ClapArgs)]
pub struct VerifyArgs {
    /// A file that `plumb audit export` wrote; no server is asked.
    #[arg(long, value_name = "FILE", requires = "public_key")]
    pub file: Option<PathBuf>,
    /// The public key that you noted, in base64, or a file with it (PEM). Several after a change of keys.
    #[arg(long, value_name = "KEY", requires = "file")]
    pub public_key: Vec<String>,
}

/// Runs one of them.
pub async fn run(app: &App, command: AuditCommand) -> anyhow::Result<Outcome> {
    match command {
        AuditCommand::List(list) => self::list(app, *list).await,
        AuditCommand::Export { output, chain } => export::run(app, &output, chain).await,
        AuditCommand::Verify(_) => verify(app).await,
    }
}

async fn list(app: &App, list: ListArgs) -> anyhow::Result<Outcome> {
    let workspace = match list.workspace {
        Some(text) => Some(workspaces::find_id(app, &text).await?),
        None => None,
    };
    let call = app.client.call(routes::LIST_AUDIT_ENTRIES, []);
    let call = call.query("workspace_id", workspace).query("run_id", list.run).query("action", list.action);
    let call = call.query("user_id", list.user).query("resource_type", list.resource_type);
    let call = call.query("resource_id", list.resource_id);
    let call = call
        .query("from", list.from.map(|at| at.to_rfc3339()))
        .query("to", list.to.map(|at| at.to_rfc3339()));
    let entries = call.query("limit", list.page.limit).query("cursor", list.page.cursor).send().await?;
    app.show(&entries, |screen, page: Page<AuditEntry>| {
        let now = Utc::now();
        let mut table = Table::new(&["SEQ", "WHEN", "ACTION", "RESOURCE", "BY"]);
        for entry in page.items {
            let resource = format!("{} {}", entry.resource_type, entry.resource_id.unwrap_or_default());
            let by = entry.user_id.unwrap_or_else(|| "system".into());
            table.row([entry.sequence.to_string(), ago(entry.created_at, now), entry.action, resource, by]);
        }
        table.print(screen, "No entries.", page.next_cursor.as_deref())
    })
}

async fn verify(app: &App) -> anyhow::Result<Outcome> {
    let progress = app.screen.progress();
    progress.now("verifying the audit chains");
    let answer = app.client.call(routes::VERIFY_AUDIT, []).send().await?;
    drop(progress);
    let verdict: AuditVerdict = answer.read()?;
    app.show(&answer, show)?;
    Ok(if verdict.ok { Outcome::Done } else { Outcome::Failed })
}

fn show(screen: &Screen, verdict: AuditVerdict) -> anyhow::Result<()> {
    let size = format!("{} entries in {} chains", verdict.entries, verdict.chains);
    if verdict.ok {
        return screen.print(&format!("The audit log is whole: {size}."));
    }
    screen.print(&format!("The audit log was tampered with or damaged: {size} checked."))?;
    let mut table = Table::new(&["WHERE", "SEQUENCE", "REASON"]);
    for link in verdict.broken {
        table.row([link.chain_id, link.sequence.to_string(), link.reason]);
    }
    for fault in verdict.checkpoint.map(|checkpoint| checkpoint.faults).unwrap_or_default() {
        table.row(["checkpoint".to_owned(), fault.sequence.to_string(), fault.reason]);
    }
    table.print(screen, "Every chain holds, but a signed checkpoint does not.", None)
}
