//! Signing out, and what is signed in.

use chrono::Utc;
use clap::{Args, Subcommand};
use uuid::Uuid;

use crate::api::views::{Me, Session};
use crate::api::{Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::outcome::Outcome;
use crate::output::{Table, ago};

/// `plumb logout`
#[derive(Debug, Args)]
pub struct LogoutArgs {
    /// End all your sessions at the server, on every machine.
    #[arg(long)]
    everywhere: bool,
}

/// `plumb session …`
#[derive(Debug, Subcommand)]
pub enum SessionCommand {
    /// List your sessions, newest first.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// End one of them.
    End {
        /// The session's id.
        session: Uuid,
    },
}

/// Runs one of them.
pub async fn run(app: &App, command: SessionCommand) -> anyhow::Result<Outcome> {
    match command {
        SessionCommand::List { page } => {
            let call = app.client.call(routes::LIST_SESSIONS, []);
            let sessions = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            app.show(&sessions, |screen, page: Page<Session>| {
                let headers = ["ID", "THIS", "SIGNED IN", "RENEWED", "ADDRESS", "PROGRAM"];
                let mut table = Table::new(&headers).shrinking("PROGRAM");
                let now = Utc::now();
                for session in page.items {
                    table.row([
                        session.id,
                        if session.current { "yes" } else { "" }.into(),
                        ago(session.created_at, now),
                        ago(session.refreshed_at, now),
                        session.address.unwrap_or_default(),
                        session.user_agent.unwrap_or_default(),
                    ]);
                }
                table.print(screen, "No sessions.", page.next_cursor.as_deref())
            })
        }
        SessionCommand::End { session } => {
            app.client.call(routes::END_SESSION, [&session.to_string()]).send().await?;
            app.say("The session is ended.")
        }
    }
}

/// Ends the session, or every session.
pub async fn logout(app: &App, args: &LogoutArgs) -> anyhow::Result<Outcome> {
    let was_signed_in = app.client.sign_out(args.everywhere).await?;
    let place = if args.everywhere { " on every machine" } else { "" };
    let text = if was_signed_in { "Signed out of" } else { "There was no session at" };
    app.say(&format!("{text} {}{place}.", app.server()))
}

/// Who is signed in, with which roles.
pub async fn whoami(app: &App) -> anyhow::Result<Outcome> {
    let me = app.client.call(routes::GET_ME, []).send().await?;
    app.show(&me, |screen, me: Me| {
        let name = me.display_name.filter(|name| !name.is_empty()).map(|name| format!(" ({name})"));
        let power = if me.is_superadmin { ", superadmin" } else { "" };
        screen.print(&format!("{}{}{power} at {}", me.email, name.unwrap_or_default(), app.server()))?;
        let mut table = Table::new(&["BUSINESS UNIT", "NAME", "ROLE"]).shrinking("NAME");
        for membership in me.memberships {
            table.row([membership.slug, membership.name, membership.role]);
        }
        table.print(screen, "No role in any business unit.", None)
    })
}
