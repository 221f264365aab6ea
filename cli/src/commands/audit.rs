//! The record of everything that was done.

use chrono::Utc;
use clap::Subcommand;
use uuid::Uuid;

use super::workspaces;
use crate::api::views::{AuditEntry, AuditVerdict};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Table, ago};

/// `plumb audit …`
#[derive(Debug, Subcommand)]
pub enum AuditCommand {
    /// List entries, newest first.
    List {
        /// Only about this workspace (name or id).
        #[arg(long)]
        workspace: Option<String>,
        /// Only about this run.
        #[arg(long)]
        run: Option<Uuid>,
        /// Only this action, such as `run.approve`.
        #[arg(long)]
        action: Option<String>,
        #[command(flatten)]
        page: PageArgs,
    },
    /// Check that nothing was changed or removed since it was written. Exit code 1 if something was.
    Verify,
}

/// Runs one of them.
pub async fn run(app: &App, command: AuditCommand) -> anyhow::Result<Outcome> {
    match command {
        AuditCommand::List { workspace, run, action, page } => {
            let workspace = match workspace {
                Some(text) => Some(workspaces::find_id(app, &text).await?),
                None => None,
            };
            let call = app.client.call(routes::LIST_AUDIT_ENTRIES, []);
            let call = call.query("workspace_id", workspace).query("run_id", run).query("action", action);
            let entries = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&entries, |screen, page: Page<AuditEntry>| {
                let now = Utc::now();
                let mut table = Table::new(&["SEQ", "WHEN", "ACTION", "RESOURCE", "BY"]);
                for entry in page.items {
                    let resource =
                        format!("{} {}", entry.resource_type, entry.resource_id.unwrap_or_default());
                    let by = entry.user_id.unwrap_or_else(|| "system".into());
                    table.row([
                        entry.sequence.to_string(),
                        ago(entry.created_at, now),
                        entry.action,
                        resource,
                        by,
                    ]);
                }
                table.print(screen, "No entries.", page.next_cursor.as_deref())
            })
        }
        AuditCommand::Verify => verify(app).await,
    }
}

async fn verify(app: &App) -> anyhow::Result<Outcome> {
    let progress = app.screen.progress();
    progress.now("verifying the audit chains");
    let answer = app.client.call(routes::VERIFY_AUDIT, []).send().await?;
    drop(progress);
    let verdict: AuditVerdict = answer.read()?;
    app.show(&answer, |screen, verdict: AuditVerdict| {
        let size = format!("{} entries in {} chains", verdict.entries, verdict.chains);
        if verdict.ok {
            return screen.print(&format!("The audit log is whole: {size}."));
        }
        screen.print(&format!("The audit log was tampered with or damaged: {size} checked."))?;
        let mut table = Table::new(&["CHAIN", "SEQUENCE", "REASON"]);
        for link in verdict.broken {
            table.row([link.chain_id, link.sequence.to_string(), link.reason]);
        }
        table.print(screen, "Every chain holds, but a signed checkpoint does not.", None)
    })?;
    Ok(if verdict.ok { Outcome::Done } else { Outcome::Failed })
}
