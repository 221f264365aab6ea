//! Approving and rejecting.

use clap::Args;
use serde_json::json;
use uuid::Uuid;

use super::runs::{Follow, Logs, finish, view};
use crate::api::routes;
use crate::api::views::Run;
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::confirm;

/// `plumb approve`
#[derive(Debug, Args)]
#[command(
    after_help = "Shows the plan, asks, and approves exactly the plan that it showed: if another one took its place
meanwhile, the server refuses. Then it follows the apply to its end.

Examples:
  plumb approve 0190f3c2-…
  plumb approve 0190f3c2-… --yes --comment 'as discussed' --no-wait"
)]
pub struct ApproveArgs {
    /// The run's id.
    run: Uuid,
    /// Why; kept in the history.
    #[arg(long)]
    comment: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
    /// Return once it is approved; do not follow the apply.
    #[arg(long)]
    no_wait: bool,
}

/// `plumb reject`
#[derive(Debug, Args)]
pub struct RejectArgs {
    /// The run's id.
    run: Uuid,
    /// Why; kept in the history.
    #[arg(long)]
    comment: Option<String>,
}

/// Shows the plan, asks, approves.
pub async fn approve(app: &App, args: &ApproveArgs) -> anyhow::Result<Outcome> {
    let id = args.run.to_string();
    let run: Run = app.client.call(routes::GET_RUN, [&id]).send().await?.read()?;
    anyhow::ensure!(
        run.status == "awaiting_approval",
        "run {id} is {}, so there is nothing to approve; look at it: plumb run show {id}",
        run.status
    );
    let plan = view::plan(app, &run).await?;
    if app.screen.json {
        app.screen.note(&plan);
    } else {
        app.screen.print(&plan)?;
    }
    if !args.yes && !confirm("Apply this plan?", "--yes").await? {
        app.screen.note("Nothing was approved.");
        return Ok(Outcome::WaitsForApproval);
    }
    let follow = Follow::from_now(app, &id, Logs::beside(&app.screen)).await?;
    let mut body = json!({});
    if let Some(digest) = &run.approval_digest {
        body["digest"] = digest.clone().into();
    }
    if let Some(comment) = &args.comment {
        body["comment"] = comment.clone().into();
    }
    let approved = app.client.call(routes::APPROVE_RUN, [&id]).body(body).send().await?;
    if args.no_wait {
        return app.show(&approved, |screen, run: Run| {
            screen.print(&format!("Approved run {}; watch it: plumb run logs {} --follow", run.id, run.id))
        });
    }
    app.screen.note(&format!("Approved run {id}."));
    finish(app, follow).await
}

/// Turns the plan down.
pub async fn reject(app: &App, args: &RejectArgs) -> anyhow::Result<Outcome> {
    let body = match &args.comment {
        Some(comment) => json!({ "comment": comment }),
        None => json!({}),
    };
    let rejected = app.client.call(routes::REJECT_RUN, [&args.run.to_string()]).body(body).send().await?;
    app.show(&rejected, |screen, run: Run| {
        screen.print(&format!("Rejected run {}; it is {}.", run.id, run.status))
    })
}
