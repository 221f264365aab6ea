//! Trust rules: whose CI systems get short keys.

use clap::{Args, Subcommand};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::views::CiTrustRule;
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::commands::api_keys::Capability;
use crate::commands::workspaces;
use crate::outcome::Outcome;
use crate::output::{Table, confirm, facts};

/// `plumb ci-trust …`
#[derive(Debug, Subcommand)]
pub enum CiTrustCommand {
    /// List the unit's rules.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Say whose tokens are taken, and for what.
    Create(CreateArgs),
    /// Show a rule.
    Show {
        /// The rule.
        id: Uuid,
    },
    /// Remove a rule; the keys that it gave end with it.
    Delete {
        /// The rule.
        id: Uuid,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// `plumb ci-trust create`
#[derive(Debug, Args)]
#[command(after_help = "Example:
  plumb ci-trust create main --issuer https://token.actions.githubusercontent.com \\
    --audience https://plumbline.example.com --subject 'repo:acme/infra:ref:refs/heads/main' \\
    --capability apply --workspace net-prod")]
pub struct CreateArgs {
    /// What it is for.
    name: String,
    /// Who must have made the token.
    #[arg(long, value_name = "URL")]
    issuer: String,
    /// Whom the token must be for.
    #[arg(long)]
    audience: String,
    /// Whom it must be about; `*` stands for anything between two colons.
    #[arg(long)]
    subject: String,
    /// A claim that must have exactly this text; may be repeated.
    #[arg(long = "claim", value_name = "NAME=TEXT", value_parser = claim)]
    claims: Vec<(String, String)>,
    /// How far the key goes.
    #[arg(long, value_enum, default_value_t = Capability::Plan)]
    capability: Capability,
    /// Reach only this workspace (name or id); may be repeated.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    workspaces: Vec<String>,
    /// How long a key is good.
    #[arg(long, value_name = "MINUTES", default_value_t = 15, value_parser = clap::value_parser!(u32).range(5..=120))]
    key_minutes: u32,
}

fn claim(text: &str) -> Result<(String, String), String> {
    let (name, value) = text.split_once('=').ok_or("write it as NAME=TEXT")?;
    Ok((name.to_owned(), value.to_owned()))
}

/// Runs one of them.
pub async fn run(app: &App, command: CiTrustCommand) -> anyhow::Result<Outcome> {
    match command {
        CiTrustCommand::List { page } => {
            let call = app.client.call(routes::LIST_CI_TRUST_RULES, []);
            let rules = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&rules, |screen, page: Page<CiTrustRule>| {
                let mut table = Table::new(&["ID", "NAME", "CAPABILITY", "SUBJECT"]).shrinking("SUBJECT");
                for rule in page.items {
                    table.row([rule.id, rule.name, rule.capability, rule.subject]);
                }
                table.print(screen, "No trust rules.", page.next_cursor.as_deref())
            })
        }
        CiTrustCommand::Create(args) => create(app, args).await,
        CiTrustCommand::Show { id } => {
            let rule = app.client.call(routes::GET_CI_TRUST_RULE, [&id.to_string()]).send().await?;
            app.show(&rule, |screen, rule: CiTrustRule| {
                let claims = rule.claims.iter().map(|(name, text)| format!("{name}={text}"));
                let claims = claims.collect::<Vec<_>>().join(", ");
                let workspaces = rule.workspace_ids.map_or_else(|| "all".into(), |ids| ids.join(", "));
                screen.print(&facts(&[
                    ("rule", Some(rule.name)),
                    ("id", Some(rule.id)),
                    ("issuer", Some(rule.issuer)),
                    ("audience", Some(rule.audience)),
                    ("subject", Some(rule.subject)),
                    ("claims", Some(claims).filter(|claims| !claims.is_empty())),
                    ("capability", Some(rule.capability)),
                    ("workspaces", Some(workspaces)),
                    ("keys", Some(format!("good for {} minutes", rule.key_minutes))),
                ]))
            })
        }
        CiTrustCommand::Delete { id, yes } => {
            if !yes && !confirm("The keys that it gave are refused from now on.", "--yes").await? {
                return Ok(Outcome::Failed);
            }
            app.client.call(routes::DELETE_CI_TRUST_RULE, [&id.to_string()]).send().await?;
            if !app.screen.json {
                app.screen.print(&format!("Deleted trust rule {id}."))?;
            }
            Ok(Outcome::Done)
        }
    }
}

async fn create(app: &App, args: CreateArgs) -> anyhow::Result<Outcome> {
    let claims: serde_json::Map<String, Value> =
        args.claims.into_iter().map(|(name, text)| (name, Value::String(text))).collect();
    let mut body = json!({
        "name": args.name, "issuer": args.issuer, "audience": args.audience, "subject": args.subject,
        "claims": claims, "capability": args.capability.word(), "key_minutes": args.key_minutes,
    });
    if !args.workspaces.is_empty() {
        let mut ids = Vec::new();
        for workspace in &args.workspaces {
            ids.push(Value::String(workspaces::find_id(app, workspace).await?));
        }
        body["workspace_ids"] = Value::Array(ids);
    }
    let rule = app.client.call(routes::CREATE_CI_TRUST_RULE, []).body(body).creates(None).send().await?;
    app.show(&rule, |screen, rule: CiTrustRule| {
        screen.print(&format!("Created trust rule {}, id {}.", rule.name, rule.id))
    })
}
