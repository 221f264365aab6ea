//! API keys.

use chrono::{TimeDelta, Utc};
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Value, json};
use uuid::Uuid;

use crate::api::views::{ApiKey, MintedApiKey};
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::commands::workspaces;
use crate::outcome::Outcome;
use crate::output::{Table, ago, confirm};

/// `plumb api-key …`
#[derive(Debug, Subcommand)]
pub enum ApiKeyCommand {
    /// List the unit's keys, the dead ones included.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Make a key that acts for you; prints its token, this once.
    Create(CreateArgs),
    /// Show a key.
    Show {
        /// The key.
        id: Uuid,
    },
    /// Give a key another token; the old one is dead at once.
    Regenerate {
        /// The key.
        id: Uuid,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// Make a successor; both tokens are good for a while.
    Rotate {
        /// The key.
        id: Uuid,
        /// How long the old token stays good: at most a week, never longer than the key itself.
        #[arg(long, value_name = "HOURS", default_value_t = 24, value_parser = clap::value_parser!(u32).range(..=168))]
        overlap_hours: u32,
    },
    /// End a key.
    Revoke {
        /// The key.
        id: Uuid,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
}

/// `plumb api-key create`
#[derive(Debug, Args)]
#[command(after_help = "The token is printed to stdout and is shown nowhere again.

Examples:
  plumb api-key create nightly-plan --capability plan --workspace net-prod
  plumb api-key create deploy --capability apply --expires-in-days 90 | vault-put plumb-key
  PLUMB_API_KEY=plb_… plumb run plan net-prod")]
pub struct CreateArgs {
    /// What it is for.
    name: String,
    /// How far it goes, within what you may do yourself.
    #[arg(long, value_enum, default_value_t = Capability::Read)]
    capability: Capability,
    /// Reach only this workspace (name or id); may be repeated.
    #[arg(long = "workspace", value_name = "WORKSPACE")]
    workspaces: Vec<String>,
    /// Void after so many days; never if absent.
    #[arg(long, value_name = "DAYS", value_parser = clap::value_parser!(u16).range(1..=3650))]
    expires_in_days: Option<u16>,
}

/// How far a key goes.
#[derive(Clone, Copy, Debug, ValueEnum)]
enum Capability {
    /// Reads what a viewer reads.
    Read,
    /// Plans, but applies nothing.
    Plan,
    /// Plans, approves and applies.
    Apply,
    /// All that an admin does, but for people, keys and units.
    Admin,
}

impl Capability {
    fn word(self) -> &'static str {
        match self {
            Self::Read => "read",
            Self::Plan => "plan",
            Self::Apply => "apply",
            Self::Admin => "admin",
        }
    }
}

/// Runs one of them.
pub async fn run(app: &App, command: ApiKeyCommand) -> anyhow::Result<Outcome> {
    match command {
        ApiKeyCommand::List { page } => {
            let call = app.client.call(routes::LIST_API_KEYS, []);
            let keys = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&keys, |screen, page: Page<ApiKey>| {
                let mut table = Table::new(&["ID", "NAME", "TOKEN", "CAPABILITY", "LAST USED", "STATUS"])
                    .shrinking("NAME");
                for key in page.items {
                    let used = ago(key.last_used_at, Utc::now());
                    let status = status(&key);
                    table.row([key.id, key.name, key.token_prefix + "…", key.capability, used, status]);
                }
                table.print(screen, "No API keys.", page.next_cursor.as_deref())
            })
        }
        ApiKeyCommand::Create(args) => create(app, args).await,
        ApiKeyCommand::Show { id } => {
            let key = app.client.call(routes::GET_API_KEY, [&id.to_string()]).send().await?;
            app.show(&key, |screen, key: ApiKey| {
                screen.print(&format!("{} {} ({}…)", key.id, key.name, key.token_prefix))?;
                screen.print(&format!("capability {}, {}", key.capability, status(&key)))?;
                match key.workspace_ids {
                    Some(ids) => screen.print(&format!("only workspaces: {}", ids.join(", "))),
                    None => Ok(()),
                }
            })
        }
        ApiKeyCommand::Regenerate { id, yes } => {
            if !yes && !confirm("Whoever uses the old token is refused from now on.", "--yes").await? {
                return Ok(Outcome::Failed);
            }
            let made = app.client.call(routes::REGENERATE_API_KEY, [&id.to_string()]).send().await?;
            tell(app, &made)
        }
        ApiKeyCommand::Rotate { id, overlap_hours } => {
            let body = json!({ "overlap_hours": overlap_hours });
            let made = app.client.call(routes::ROTATE_API_KEY, [&id.to_string()]).body(body).send().await?;
            app.screen.note(&format!("The old token is good for {overlap_hours} hours at most."));
            tell(app, &made)
        }
        ApiKeyCommand::Revoke { id, yes } => {
            if !yes && !confirm("Whoever uses the key is refused from now on.", "--yes").await? {
                return Ok(Outcome::Failed);
            }
            let key = app.client.call(routes::REVOKE_API_KEY, [&id.to_string()]).send().await?;
            app.show(&key, |screen, key: ApiKey| screen.print(&format!("Revoked API key {}.", key.id)))
        }
    }
}

async fn create(app: &App, args: CreateArgs) -> anyhow::Result<Outcome> {
    let mut body = json!({ "name": args.name, "capability": args.capability.word() });
    if !args.workspaces.is_empty() {
        let mut ids = Vec::new();
        for workspace in &args.workspaces {
            ids.push(Value::String(workspaces::find_id(app, workspace).await?));
        }
        body["workspace_ids"] = Value::Array(ids);
    }
    if let Some(days) = args.expires_in_days {
        body["expires_at"] = json!(Utc::now() + TimeDelta::days(days.into()));
    }
    let made = app.client.call(routes::CREATE_API_KEY, []).body(body).send().await?;
    tell(app, &made)
}

/// The token alone on stdout, so that it can be piped to where it belongs.
fn tell(app: &App, made: &Document) -> anyhow::Result<Outcome> {
    app.show(made, |screen, made: MintedApiKey| {
        screen.note(&format!("API key {} ({}). Its token is shown this once:", made.id, made.name));
        screen.print(&made.token)
    })
}

fn status(key: &ApiKey) -> String {
    let now = Utc::now();
    match (key.revoked_at, key.expires_at) {
        (Some(at), _) => format!("revoked {}", ago(Some(at), now)),
        (None, Some(at)) if at <= now => format!("expired {}", ago(Some(at), now)),
        (None, Some(at)) if key.superseded_by_id.is_some() => format!("rotated, ends {}", ago(Some(at), now)),
        (None, Some(at)) => format!("good, ends {}", ago(Some(at), now)),
        (None, None) => "good".into(),
    }
}
