//! Reading logs.

use clap::Args;
use uuid::Uuid;

use super::follow::{Follow, Logs, finish};
use crate::api::views::{LogChunk, Step};
use crate::api::{Page, routes};
use crate::app::App;
use crate::failure::Usage;
use crate::outcome::Outcome;

/// `plumb run logs`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plumb run logs 0190f3c2-… --follow        until the run ends; exit code as of the run
  plumb run logs 0190f3c2-… --step 4        one step, byte for byte

With --json, one piece of one step's log with its offsets: --step N [--offset BYTES] [--limit BYTES].")]
pub struct LogsArgs {
    /// The run's id.
    run: Uuid,
    /// Go on until the run ends or waits for approval.
    #[arg(long, short, conflicts_with_all = ["step", "offset", "limit"])]
    follow: bool,
    /// Only this step, by its position (see plumb run steps).
    #[arg(long, value_name = "POSITION")]
    step: Option<i64>,
    /// Begin at this byte of the step's log.
    #[arg(long, requires = "step", value_name = "BYTES")]
    offset: Option<i64>,
    /// With --json: bytes at most.
    #[arg(long, requires = "step", value_name = "BYTES")]
    limit: Option<i64>,
}

/// Prints logs to stdout.
pub(super) async fn logs(app: &App, args: &LogsArgs) -> anyhow::Result<Outcome> {
    let id = args.run.to_string();
    if args.follow {
        let logs = if app.screen.json { Logs::Hidden } else { Logs::Answer };
        return finish(app, Follow::from_beginning(app, &id, logs)).await;
    }
    match args.step {
        Some(step) if app.screen.json => {
            let call = app.client.call(routes::READ_LOG, [&id]).query("position", Some(step));
            let piece = call.query("offset", args.offset).query("limit", args.limit).send().await?;
            app.screen.document(&piece)?;
        }
        Some(step) => print_step(app, &id, step, args.offset.unwrap_or(0)).await?,
        None if app.screen.json => {
            return Err(Usage::error("--json prints one document, so name one log: --step POSITION"));
        }
        None => print_all(app, &id).await?,
    }
    Ok(Outcome::Done)
}

async fn print_all(app: &App, id: &str) -> anyhow::Result<()> {
    let steps: Page<Step> = app.client.call(routes::LIST_STEPS, [id]).send().await?.read()?;
    for step in steps.items.iter().filter(|step| step.log_bytes > 0) {
        app.screen.note(&format!("── {} {} ──", step.phase, step.name));
        print_step(app, id, step.position, 0).await?;
        if step.log_truncated {
            app.screen.note("(the middle of this log was cut: it was too long)");
        }
    }
    Ok(())
}

async fn print_step(app: &App, id: &str, position: i64, mut offset: i64) -> anyhow::Result<()> {
    loop {
        let call = app.client.call(routes::READ_LOG, [id]);
        let call = call.query("position", Some(position)).query("offset", Some(offset));
        let chunk: LogChunk = call.send().await?.read()?;
        app.screen.print_log(&chunk.text)?;
        if chunk.complete || chunk.next_offset <= offset {
            return Ok(());
        }
        offset = chunk.next_offset;
    }
}
