//! What only superadmins do to the installation.

use clap::Subcommand;
use serde_json::json;

use crate::api::routes;
use crate::api::views::JwtSecret;
use crate::app::App;
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
    }
}
