//! Replacing the root key of all secrets.

use std::time::Duration;

use clap::Args as ClapArgs;

use crate::api::views::Rekey;
use crate::api::{Document, routes};
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::{Screen, Table};

/// The server's sweeps come once a minute.
const PAUSE: Duration = Duration::from_secs(2);

/// How to look at it.
#[derive(Debug, ClapArgs)]
pub struct RekeyArgs {
    /// Only show how far the last job is.
    #[arg(long)]
    status: bool,
    /// Stay until it has ended. Exit code 1 if some values cannot be opened.
    #[arg(long)]
    follow: bool,
}

/// `plumb admin rekey`
pub async fn run(app: &App, args: &RekeyArgs) -> anyhow::Result<Outcome> {
    let mut job = if args.status { get(app).await? } else { begin(app).await? };
    if args.follow {
        job = follow(app, job).await?;
    }
    let status = job.read::<Rekey>()?.status;
    app.show(&job, show)?;
    Ok(if status == "failed" { Outcome::Failed } else { Outcome::Done })
}

async fn get(app: &App) -> anyhow::Result<Document> {
    app.client.call(routes::GET_REKEY, []).send().await
}

async fn begin(app: &App) -> anyhow::Result<Document> {
    app.client.call(routes::REQUEST_REKEY, []).creates(None).send().await
}

async fn follow(app: &App, mut document: Document) -> anyhow::Result<Document> {
    let progress = app.screen.progress();
    loop {
        let job: Rekey = document.read()?;
        if job.status != "running" {
            return Ok(document);
        }
        let resealed: i64 = job.columns.iter().map(|column| column.resealed).sum();
        progress.now(&format!("{resealed} values sealed again {}", job.note.unwrap_or_default()));
        tokio::time::sleep(PAUSE).await;
        document = get(app).await?;
    }
}

fn show(screen: &Screen, job: Rekey) -> anyhow::Result<()> {
    let mut table = Table::new(&["TABLE", "COLUMN", "RESEALED", "LEFT", "UNREADABLE"]);
    for column in &job.columns {
        let left = column.remaining.map_or_else(|| "?".to_owned(), |left| left.to_string());
        table.row([
            column.table.clone(),
            column.column.clone(),
            column.resealed.to_string(),
            left,
            column.unreadable.to_string(),
        ]);
    }
    table.print(screen, "Nothing is sealed.", None)?;
    screen.print(&format!("Root key {}: {}", job.key_id, screen.status(&job.status)))?;
    match job.status.as_str() {
        "running" => {
            screen.note(&job.note.unwrap_or_else(|| "Follow it with `plumb admin rekey --follow`.".into()))
        }
        "done" => screen.note("No value names another root key. The previous root keys can be taken away."),
        "failed" => {
            screen.print(
                "These values cannot be opened with any root key; replace or delete them, and repeat:",
            )?;
            for column in job.columns.iter().filter(|column| column.unreadable > 0) {
                for row in &column.unreadable_rows {
                    screen.print(&format!("  {}.{} {row}", column.table, column.column))?;
                }
            }
        }
        _ => {}
    }
    Ok(())
}
