//! What only superadmins do to the installation.

use clap::Subcommand;
use serde_json::json;

use crate::api::routes;
use crate::api::views::JwtSecret;
use crate::app::App;
use crate::args::PageArgs;
use crate::commands::issuer_keys;
use crate::commands::rekeys::{self, RekeyArgs};
use crate::outcome::Outcome;

/// `plumb admin …`
#[derive(Debug, Subcommand)]
pub enum AdminCommand {
    /// Seal every secret under the current root key, while everything runs. Repeating it goes on with the same job.
    Rekey(RekeyArgs),
    /// Sign access tokens with a new secret. Everybody stays signed in.
    RotateJwtSecret {
        /// How long tokens of the old secret are still accepted; as long as they live if absent. 0 where it leaked:
        /// programs then get a new token with their next call.
        #[arg(long, value_name = "N")]
        overlap_minutes: Option<u32>,
    },
    /// List the keys that sign tokens for clouds.
    IssuerKeys {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Sign tokens for clouds with the next key. Both stay published while tokens of the old one live.
    RotateIssuerKey {
        /// The old key leaked: publish it no more. Runs that hold a token of it get a new one.
        #[arg(long)]
        at_once: bool,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: AdminCommand) -> anyhow::Result<Outcome> {
    match command {
        AdminCommand::Rekey(args) => rekeys::run(app, &args).await,
        AdminCommand::RotateJwtSecret { overlap_minutes } => {
            let body = json!({ "overlap_minutes": overlap_minutes });
            let call = app.client.call(routes::ROTATE_JWT_SECRET, []).body(body).creates(None);
            let made = call.send().await?;
            app.show(&made, |screen, made: JwtSecret| {
                screen.print(&format!("Access tokens are signed with the secret {} from now on.", made.kid))
            })
        }
        AdminCommand::IssuerKeys { page } => issuer_keys::list(app, page).await,
        AdminCommand::RotateIssuerKey { at_once } => issuer_keys::rotate(app, at_once).await,
    }
}
