//! Signing in: through the browser, with a password, or with an API key.

use std::io::{BufRead as _, IsTerminal as _, Write as _};
use std::process::Stdio;
use std::time::Duration;

use anyhow::anyhow;
use clap::Args;

use crate::api::routes;
use crate::api::views::{AuthConfig, Me};
use crate::app::App;
use crate::failure::Usage;
use crate::loopback::{Answer, Loopback};
use crate::outcome::Outcome;
use crate::output::read_secret_line;

/// As long as the server remembers a sign-in that was begun.
const BROWSER_TIMEOUT: Duration = Duration::from_secs(10 * 60);

/// `plumb login`
#[derive(Debug, Args)]
#[command(
    after_help = "Where the server is connected to an identity provider the browser is opened, else the password is asked for.
With --email, --password-stdin or PLUMB_PASSWORD it is the password in any case. Whatever you sign in with is kept in a
file that only you can read; tokens renew themselves.

Examples:
  plumb login --server https://plumbline.example.com
  plumb login --no-browser                           prints the address to open on this machine
  pass show plumbline | plumb login --email you@example.com --password-stdin
  pass show plumbline-key | plumb login --api-key-stdin"
)]
pub struct LoginArgs {
    /// Your e-mail address, for signing in with a password; asked for if absent.
    #[arg(long, env = "PLUMB_EMAIL", value_name = "ADDRESS")]
    email: Option<String>,
    /// Read the password from the first line of stdin.
    #[arg(long)]
    password_stdin: bool,
    /// Read an API key from the first line of stdin, and keep it instead of a session.
    #[arg(long, conflicts_with_all = ["email", "password_stdin", "no_browser"])]
    api_key_stdin: bool,
    /// Sign in through the browser, but open none: print the address.
    #[arg(long, conflicts_with_all = ["email", "password_stdin"])]
    no_browser: bool,
}

/// Signs in and keeps the session, or the key.
pub async fn login(app: &App, args: &LoginArgs) -> anyhow::Result<Outcome> {
    let server = app.server();
    if server.is_readable_on_the_way() {
        app.screen.note(&format!(
            "warning: {server} is not encrypted; others may read what you sign in with on its way"
        ));
    }
    if args.api_key_stdin {
        return with_key(app).await;
    }
    let by_password =
        args.email.is_some() || args.password_stdin || std::env::var_os("PLUMB_PASSWORD").is_some();
    if args.no_browser || (!by_password && has_browser_login(app).await?) {
        in_browser(app, args.no_browser).await?;
    } else {
        with_password(app, args).await?;
    }
    let me = app.client.call(routes::GET_ME, []).send().await?;
    let known: Me = me.read()?;
    app.client.name_session(&known.email)?;
    if std::env::var_os("PLUMB_API_KEY").is_some() {
        app.screen.note("PLUMB_API_KEY is set: other commands use that key, not this session.");
    }
    app.show(&me, |screen, me: Me| {
        screen.print(&format!("Signed in at {} as {}.", app.server(), me.email))?;
        if me.must_change_password {
            screen.note("You must change your password before you can do anything else: plumb password");
        }
        if me.memberships.len() > 1 {
            screen.note(
                "You are in several business units; pick one with --business-unit or PLUMB_BUSINESS_UNIT.",
            );
        }
        Ok(())
    })
}

async fn with_key(app: &App) -> anyhow::Result<Outcome> {
    app.client.sign_in_with_key(&read_secret_line("key")?).await?;
    app.say(&format!("The key is kept for {}.", app.server()))
}

async fn with_password(app: &App, args: &LoginArgs) -> anyhow::Result<()> {
    let email = match &args.email {
        Some(email) => email.clone(),
        None => ask_email()?,
    };
    app.client.sign_in(&email, &password(args)?).await
}

async fn has_browser_login(app: &App) -> anyhow::Result<bool> {
    let config: AuthConfig = app.client.anonymous_call(routes::AUTH_CONFIG, []).send().await?.read()?;
    Ok(config.oidc_enabled && config.cli_loopback)
}

async fn in_browser(app: &App, only_print: bool) -> anyhow::Result<()> {
    let loopback = Loopback::listen().await?;
    let address = app.server().url("/api/v1/auth/oidc/login")?;
    let address = url::Url::parse_with_params(address.as_str(), loopback.parameters())?;
    if only_print || !open(address.as_str()) {
        // Asked for, or the only way on: also where hints are not wanted.
        eprintln!("Open this address in a browser on this machine:\n{address}");
    } else {
        app.screen.note(&format!("Sign in in your browser. If none opens, go to\n{address}"));
    }
    let answer = tokio::time::timeout(BROWSER_TIMEOUT, loopback.answer()).await;
    match answer.map_err(|_| anyhow!("nobody signed in within ten minutes; start again"))?? {
        Answer::Code(code) => app.client.sign_in_with_code(&code, loopback.secret()).await,
        Answer::Refused(slug) => Err(anyhow!("{}", reason(&slug))),
    }
}

/// Whether a browser could be started. `BROWSER` names another one than the system's.
fn open(address: &str) -> bool {
    let system = if cfg!(target_os = "macos") { "open" } else { "xdg-open" };
    let program = std::env::var("BROWSER").ok().filter(|name| !name.is_empty());
    let mut command = std::process::Command::new(program.as_deref().unwrap_or(system));
    let quiet = command.arg(address).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    // It may live longer than this process, and its end says nothing.
    quiet.spawn().is_ok()
}

/// What the server's word means to the person.
fn reason(slug: &str) -> &'static str {
    match slug {
        "oidc-off" => "nobody signs in through an identity provider at this server; use --email",
        "oidc-misconfigured" => {
            "the identity provider is not set up completely; tell whoever administers Plumbline"
        }
        "oidc-provider-away" => "the identity provider does not answer at the moment; try again in a moment",
        "oidc-start-again" => "the sign-in took too long or was used already; start again",
        "oidc-refused" => "the identity provider's answer was not accepted; the audit log says why",
        "oidc-denied" => "the identity provider did not let you in",
        "oidc-email-unverified" => "the identity provider does not say that your e-mail address is verified",
        "oidc-account-linked" => "the account with your e-mail address belongs to another identity",
        "oidc-account-disabled" => "your account is disabled",
        "too-many-attempts" => "too many attempts; try again in a minute",
        _ => "the server did not sign you in; start again",
    }
}

fn ask_email() -> anyhow::Result<String> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage::error("pass --email ADDRESS: there is no terminal to ask at"));
    }
    eprint!("E-mail: ");
    std::io::stderr().flush()?;
    let mut email = String::new();
    std::io::stdin().lock().read_line(&mut email)?;
    Ok(email.trim().into())
}

fn password(args: &LoginArgs) -> anyhow::Result<String> {
    if args.password_stdin {
        return read_secret_line("password");
    }
    if let Ok(password) = std::env::var("PLUMB_PASSWORD") {
        return Ok(password);
    }
    if !std::io::stdin().is_terminal() {
        return Err(Usage::error(
            "there is no terminal to ask for the password at; pass --password-stdin, or set PLUMB_PASSWORD",
        ));
    }
    Ok(rpassword::prompt_password("Password: ")?)
}
