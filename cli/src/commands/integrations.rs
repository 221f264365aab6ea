//! Integrations of a business unit.

use std::collections::BTreeMap;
use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value};

use super::config::{boolean, done, history, masked, number, on_the_command_line, read_file, shown};
use super::trials;
use super::workspaces::pair;
use crate::api::Document;
use crate::api::routes::{self, Route};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{confirm, facts, read_secret_line};

/// `plumb integration …`
#[derive(Debug, Subcommand)]
pub enum IntegrationCommand {
    /// Show how one is set up; of secrets only their end (operators).
    Show {
        #[arg(value_enum)]
        integration: Name,
    },
    /// Set fields of one; what you do not name stays (admins). Secrets come from stdin or files.
    #[command(after_help = "Examples:
  plumb integration set checkov mode=warn
  pass show slack | plumb integration set slack channel_id=C0123 --secret bot_token
  plumb integration set smtp host=mail.example.com --secret-file password=/run/secrets/smtp")]
    Set(SetArgs),
    /// Set fields back to their defaults, secrets included; all of them if you name none (admins).
    Unset {
        #[arg(value_enum)]
        integration: Name,
        /// The fields.
        fields: Vec<String>,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Ask the service whether it takes what is set (admins).
    Test {
        #[arg(value_enum)]
        integration: Testable,
        /// Do not wait for the result; print the task.
        #[arg(long)]
        no_wait: bool,
    },
    /// List who changed what, and when (operators).
    History {
        #[arg(value_enum)]
        integration: Name,
        #[command(flatten)]
        page: PageArgs,
    },
}

/// What to set.
#[derive(Debug, Args)]
pub struct SetArgs {
    #[arg(value_enum)]
    integration: Name,
    /// Fields that are no secrets.
    #[arg(value_name = "FIELD=VALUE", value_parser = pair)]
    fields: Vec<(String, String)>,
    /// Read this secret from the first line of stdin.
    #[arg(long, value_name = "FIELD")]
    secret: Option<String>,
    /// Read a secret from a file; repeat for more.
    #[arg(long, value_name = "FIELD=PATH", value_parser = pair)]
    secret_file: Vec<(String, String)>,
}

/// Which integration.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Name {
    /// Scans of the code.
    Checkov,
    /// The policy gate.
    Opa,
    /// Estimates of cost.
    Infracost,
    /// Messages in Slack.
    Slack,
    /// Messages by mail.
    Smtp,
    /// What forges send.
    Webhook,
    /// The repository of the unit's infrastructure.
    InfraRepo,
    /// Events for a program of the unit's own.
    Notification,
}

/// Which integration can be tried.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Testable {
    /// Asks Slack who the bot is.
    Slack,
    /// Asks Infracost for nothing, with the key.
    Infracost,
}

/// The calls about one integration.
struct Calls {
    get: Route<0>,
    update: Route<0>,
    delete: Route<0>,
    history: Route<0>,
}

macro_rules! calls {
    ($get:ident, $update:ident, $delete:ident, $history:ident) => {
        Calls {
            get: routes::$get,
            update: routes::$update,
            delete: routes::$delete,
            history: routes::$history,
        }
    };
}

impl Name {
    fn calls(self) -> Calls {
        match self {
            Self::Checkov => calls!(GET_CHECKOV, UPDATE_CHECKOV, DELETE_CHECKOV, CHECKOV_HISTORY),
            Self::Opa => calls!(GET_OPA, UPDATE_OPA, DELETE_OPA, OPA_HISTORY),
            Self::Infracost => calls!(GET_INFRACOST, UPDATE_INFRACOST, DELETE_INFRACOST, INFRACOST_HISTORY),
            Self::Slack => calls!(GET_SLACK, UPDATE_SLACK, DELETE_SLACK, SLACK_HISTORY),
            Self::Smtp => calls!(GET_SMTP, UPDATE_SMTP, DELETE_SMTP, SMTP_HISTORY),
            Self::Webhook => calls!(GET_WEBHOOK, UPDATE_WEBHOOK, DELETE_WEBHOOK, WEBHOOK_HISTORY),
            Self::InfraRepo => {
                calls!(GET_INFRA_REPO, UPDATE_INFRA_REPO, DELETE_INFRA_REPO, INFRA_REPO_HISTORY)
            }
            Self::Notification => {
                calls!(GET_NOTIFICATION, UPDATE_NOTIFICATION, DELETE_NOTIFICATION, NOTIFICATION_HISTORY)
            }
        }
    }
}

async fn test(app: &App, integration: Testable, no_wait: bool) -> anyhow::Result<Outcome> {
    let (route, asking) = match integration {
        Testable::Slack => (routes::TEST_SLACK, "asking Slack"),
        Testable::Infracost => (routes::TEST_INFRACOST, "asking Infracost"),
    };
    let started = app.client.call(route, []).creates(None).send().await?;
    trials::tell(app, &started, no_wait, asking, |found| {
        let text = |name: &str| found[name].as_str().unwrap_or("…").to_owned();
        match integration {
            Testable::Slack => {
                vec![format!("It works: the bot is {} of {}.", text("bot_name"), text("team_name"))]
            }
            Testable::Infracost => vec!["It works: Infracost takes the key.".to_owned()],
        }
    })
    .await
}

/// Runs one of them.
pub async fn run(app: &App, command: IntegrationCommand) -> anyhow::Result<Outcome> {
    match command {
        IntegrationCommand::Show { integration } => {
            let found = app.client.call(integration.calls().get, []).send().await?;
            show(app, &found)
        }
        IntegrationCommand::Test { integration, no_wait } => test(app, integration, no_wait).await,
        IntegrationCommand::Set(set) => {
            let calls = set.integration.calls();
            let seen = app.client.call(calls.get, []).send().await?;
            let body = changes(&set, &seen.read()?)?;
            let after = app.client.call(calls.update, []).if_match(&seen).body(body.into()).send().await?;
            show(app, &after)
        }
        IntegrationCommand::Unset { integration, fields, yes } => {
            unset(app, &integration.calls(), fields, yes).await
        }
        IntegrationCommand::History { integration, page } => {
            let call = app.client.call(integration.calls().history, []);
            let changes = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            history(app, &changes)
        }
    }
}

async fn unset(app: &App, calls: &Calls, fields: Vec<String>, yes: bool) -> anyhow::Result<Outcome> {
    let seen = app.client.call(calls.get, []).send().await?;
    if !fields.is_empty() {
        let body: Map<String, Value> = fields.into_iter().map(|field| (field, Value::Null)).collect();
        let after = app.client.call(calls.update, []).if_match(&seen).body(body.into()).send().await?;
        return show(app, &after);
    }
    if !yes && !confirm("This sets every field back and deletes the secrets.", "--yes").await? {
        return Err(Usage::error("nothing was changed"));
    }
    app.client.call(calls.delete, []).if_match(&seen).send().await?;
    done(app, "Every default holds.")
}

/// The fields to send. What a field holds now tells what its values are.
fn changes(set: &SetArgs, now: &BTreeMap<String, Value>) -> anyhow::Result<Map<String, Value>> {
    let mut changes = Map::new();
    for (field, text) in &set.fields {
        let value = match now.get(field) {
            Some(Value::Object(_)) => return Err(on_the_command_line(field)),
            Some(Value::Bool(_)) => boolean(field, text)?,
            Some(Value::Number(_)) => number(field, text)?,
            Some(_) => text.clone().into(),
            None => return Err(unknown(field, now)),
        };
        changes.insert(field.clone(), value);
    }
    if let Some(field) = &set.secret {
        changes.insert(field.clone(), read_secret_line("secret")?.into());
    }
    for (field, path) in &set.secret_file {
        changes.insert(field.clone(), read_file(&PathBuf::from(path))?.into());
    }
    if changes.is_empty() {
        return Err(Usage::error("name at least one FIELD=VALUE, --secret or --secret-file"));
    }
    Ok(changes)
}

/// Not sent: its value might be a secret under a wrong name.
fn unknown(field: &str, now: &BTreeMap<String, Value>) -> anyhow::Error {
    let known: Vec<&str> =
        now.keys().map(String::as_str).filter(|name| !name.starts_with("updated_")).collect();
    Usage::error(format!("there is no field {field}; there are: {}", known.join(", ")))
}

fn show(app: &App, document: &Document) -> anyhow::Result<Outcome> {
    app.show(document, |screen, fields: BTreeMap<String, Value>| {
        let pairs: Vec<(&str, Option<String>)> = fields
            .iter()
            .filter(|(name, _)| !name.starts_with("updated_"))
            .map(|(name, value)| (name.as_str(), Some(field(value))))
            .collect();
        screen.print(&facts(&pairs))
    })
}

fn field(value: &Value) -> String {
    match value {
        Value::Object(secret) => masked(secret["configured"] == true, secret["masked_tail"].as_str()),
        plain => shown(plain),
    }
}
