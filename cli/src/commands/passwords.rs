//! One's own password, and where new passwords come from: the person, stdin or the environment, never an argument, which
//! every process on the machine could read.

use std::io::IsTerminal as _;

use clap::Args;
use serde_json::json;

use crate::api::routes;
use crate::app::App;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::read_secret_line;

const NEW_VARIABLE: &str = "PLUMB_NEW_PASSWORD";
const INVITE_VARIABLE: &str = "PLUMB_INVITE_TOKEN";

/// `plumb password`
#[derive(Debug, Args)]
#[command(after_help = "Your other sessions end.")]
pub struct PasswordArgs {
    /// Read the current password from the first line of stdin and the new one from the second.
    #[arg(long)]
    password_stdin: bool,
}

/// `plumb accept-invite`
#[derive(Debug, Args)]
#[command(
    after_help = "The token and the new password are asked for, read from stdin, or taken from PLUMB_INVITE_TOKEN and
PLUMB_NEW_PASSWORD."
)]
pub struct AcceptInviteArgs {
    /// Read the token from the first line of stdin and the new password from the second.
    #[arg(long)]
    stdin: bool,
}

/// Changes the password of who is signed in.
pub async fn change(app: &App, args: &PasswordArgs) -> anyhow::Result<Outcome> {
    let current = secret("Current password", "PLUMB_PASSWORD", args.password_stdin)?;
    let body = json!({ "current_password": current, "new_password": new(args.password_stdin)? });
    app.client.call(routes::CHANGE_PASSWORD, []).body(body).send().await?;
    app.say("Your password is changed; your other sessions are ended.")
}

/// Sets the first password of somebody who was invited.
pub async fn accept_invite(app: &App, args: &AcceptInviteArgs) -> anyhow::Result<Outcome> {
    let token = secret("Token of the invitation", INVITE_VARIABLE, args.stdin)?;
    app.client.accept_invite(&token, &new(args.stdin)?).await?;
    app.say(&format!("Your password is set. Sign in: plumb login --server {}", app.server()))
}

/// A new password: a line of stdin if that is asked for, else from the environment, else asked for twice.
pub fn new(from_stdin: bool) -> anyhow::Result<String> {
    if let Some(password) = without_asking(NEW_VARIABLE, from_stdin)? {
        return Ok(password);
    }
    let password = rpassword::prompt_password("New password: ")?;
    if password != rpassword::prompt_password("The same once more: ")? {
        return Err(Usage::error("these were two different passwords; nothing was changed"));
    }
    Ok(password)
}

fn secret(name: &str, variable: &str, from_stdin: bool) -> anyhow::Result<String> {
    match without_asking(variable, from_stdin)? {
        Some(secret) => Ok(secret),
        None => Ok(rpassword::prompt_password(format!("{name}: "))?),
    }
}

/// `None`: there is somebody to ask.
fn without_asking(variable: &str, from_stdin: bool) -> anyhow::Result<Option<String>> {
    if from_stdin {
        return read_secret_line("password").map(Some);
    }
    if let Ok(secret) = std::env::var(variable) {
        return Ok(Some(secret));
    }
    if std::io::stdin().is_terminal() {
        return Ok(None);
    }
    Err(Usage::error(format!("there is no terminal to ask at; read it from stdin, or set {variable}")))
}
