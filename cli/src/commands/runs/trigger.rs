//! Asking for a run.

use clap::Args;
use serde_json::{Value, json};

use super::follow::{Follow, Logs, finish};
use crate::api::views::Run;
use crate::api::{Document, routes};
use crate::app::App;
use crate::commands::workspaces::{self, pair};
use crate::failure::Usage;
use crate::outcome::Outcome;

/// `plumb run plan|apply|destroy`
#[derive(Debug, Args)]
pub struct TriggerArgs {
    /// The workspace's name or id.
    workspace: String,
    /// Another branch than the workspace's, for this run only.
    #[arg(long, short)]
    branch: Option<String>,
    /// Why; kept in the history.
    #[arg(long, short)]
    message: Option<String>,
    /// A Terraform variable for this run only, exactly this text; repeat for more.
    #[arg(long = "var", value_name = "KEY=VALUE", value_parser = pair)]
    variables: Vec<(String, String)>,
    /// The same with an HCL expression as its value, such as '["a", "b"]'.
    #[arg(long = "hcl-var", value_name = "KEY=EXPRESSION", value_parser = pair)]
    hcl_variables: Vec<(String, String)>,
    /// The same for a secret, kept out of logs and answers. Its value comes from the environment variable of that
    /// name: command lines can be read by everybody on a machine.
    #[arg(long = "secret-var", value_name = "KEY")]
    secret_variables: Vec<String>,
    /// Apply without a person if the plan provably changes nothing.
    #[arg(long)]
    auto_approve_if_no_changes: bool,
    /// With the former: end the run without even starting the empty apply.
    #[arg(long, requires = "auto_approve_if_no_changes")]
    skip_apply: bool,
    /// Do not follow the run; print it.
    #[arg(long)]
    no_wait: bool,
    /// The same key gives the same run, however often the command is repeated.
    #[arg(long, value_name = "KEY")]
    idempotency_key: Option<String>,
}

/// Asks for the run and follows it.
pub(super) async fn trigger(app: &App, command: &str, args: &TriggerArgs) -> anyhow::Result<Outcome> {
    let workspace_id = workspaces::find_id(app, &args.workspace).await?;
    let mut body = json!({
        "workspace_id": workspace_id,
        "command": command,
        "variables": variables(args)?,
        "auto_approve_if_no_changes": args.auto_approve_if_no_changes,
        "auto_approve_skip_apply": args.skip_apply,
        "allow_destroy": command == "destroy",
    });
    for (name, value) in [("branch", &args.branch), ("message", &args.message)] {
        if let Some(value) = value {
            body[name] = value.clone().into();
        }
    }
    let call = app.client.call(routes::TRIGGER_RUN, []).body(body).creates(args.idempotency_key.clone());
    let document = call.send().await?;
    started(app, &document, args.no_wait).await
}

/// What follows once a run exists.
pub(super) async fn started(app: &App, document: &Document, no_wait: bool) -> anyhow::Result<Outcome> {
    if no_wait {
        return app.show(document, |screen, run: Run| {
            screen.print(&format!("Started run {} ({}).", run.id, run.command))?;
            screen.note(&format!("Watch it: plumb run logs {} --follow", run.id));
            Ok(())
        });
    }
    let run: Run = document.read()?;
    app.screen.note(&format!("Run {} ({})", run.id, run.command));
    finish(app, Follow::from_beginning(app, &run.id, Logs::beside(&app.screen))).await
}

fn variables(args: &TriggerArgs) -> anyhow::Result<Vec<Value>> {
    let mut variables: Vec<Value> = Vec::new();
    for (key, value) in &args.variables {
        variables.push(json!({ "key": key, "value": value, "is_secret": false }));
    }
    for (key, value) in &args.hcl_variables {
        variables.push(json!({ "key": key, "value": value, "is_secret": false, "is_hcl": true }));
    }
    for text in &args.secret_variables {
        let (key, value) = secret(text)?;
        variables.push(json!({ "key": key, "value": value, "is_secret": true }));
    }
    Ok(variables)
}

fn secret(text: &str) -> anyhow::Result<(String, String)> {
    if let Some((key, _)) = text.split_once('=') {
        return Err(Usage::error(format!(
            "--secret-var takes a name only: export {key} and say --secret-var {key}"
        )));
    }
    let value = std::env::var(text).map_err(|_| {
        Usage::error(format!("--secret-var {text}: no environment variable of that name is set"))
    })?;
    Ok((text.into(), value))
}
