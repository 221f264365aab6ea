//! What a terraform that runs without `plumb` needs to use a workspace's state.

use clap::Args;
use serde_json::json;

use super::workspaces;
use crate::api::StateUpstream;
use crate::app::App;
use crate::outcome::Outcome;

/// The variable whose value is never written into a file by us.
const PASSWORD: &str = "TF_HTTP_PASSWORD";

/// `plumb backend-config`
#[derive(Debug, Args)]
#[command(after_help = "The password is an API key or an access token; it comes from the environment:
  export TF_HTTP_PASSWORD=\"$PLUMB_API_KEY\"

States of more than 5 MiB need `plumb tf` instead.

Examples:
  plumb backend-config web-prod > backend.tf
  eval \"$(plumb backend-config web-prod --env)\"")]
pub struct BackendConfigArgs {
    /// The workspace's name or id.
    workspace: String,
    /// Print exports for a POSIX shell, for an empty `backend "http" {}`.
    #[arg(long)]
    env: bool,
    /// Print the password too: the key or token that plumb itself sends.
    #[arg(long, requires = "env")]
    with_password: bool,
}

/// Prints it.
pub async fn print(app: &App, args: BackendConfigArgs) -> anyhow::Result<Outcome> {
    let id = workspaces::find_id(app, &args.workspace).await?;
    let address = StateUpstream::new(app.client.clone(), &id).address();
    let unit = app.client.business_unit().filter(|unit| *unit != "all");
    let username = unit.map_or_else(|| "plumb".to_owned(), |unit| format!("unit/{unit}"));
    let settings = [
        ("address", address.clone()),
        ("update_method", "PUT".into()),
        ("lock_address", format!("{address}/lock")),
        ("lock_method", "POST".into()),
        ("unlock_address", format!("{address}/lock")),
        ("unlock_method", "DELETE".into()),
        ("username", username),
    ];
    if args.env {
        let mut lines: Vec<String> = settings
            .iter()
            .map(|(name, value)| format!("export TF_HTTP_{}={}", name.to_uppercase(), quoted(value)))
            .collect();
        lines.push(match args.with_password {
            true => format!("export {PASSWORD}={}", quoted(&app.client.credential()?)),
            false => format!("export {PASSWORD}=\"$PLUMB_API_KEY\""),
        });
        app.screen.print(&lines.join("\n"))?;
    } else if app.screen.json {
        let block: serde_json::Map<String, serde_json::Value> =
            settings.iter().map(|(name, value)| ((*name).to_owned(), value.as_str().into())).collect();
        app.screen.print(&serde_json::to_string_pretty(&json!({
            "terraform": { "backend": { "http": block } }
        }))?)?;
    } else {
        let lines: Vec<String> =
            settings.iter().map(|(name, value)| format!("    {name:<14} = {}", literal(value))).collect();
        app.screen.print(&format!("terraform {{\n  backend \"http\" {{\n{}\n  }}\n}}", lines.join("\n")))?;
    }
    if !args.with_password && std::env::var_os("PLUMB_API_KEY").is_none() {
        app.screen.note(
            "PLUMB_API_KEY is not set. Make a key with `plumb api-key create NAME`; the password that terraform sends is \
             taken from TF_HTTP_PASSWORD.",
        );
    }
    Ok(Outcome::Done)
}

/// One word of a POSIX shell, whatever it holds.
fn quoted(value: &str) -> String {
    format!("'{}'", value.replace('\'', r"'\''"))
}

/// A string of HCL.
fn literal(value: &str) -> String {
    let value = value.replace('\\', r"\\").replace('"', r#"\""#);
    format!("\"{}\"", value.replace("${", "$${").replace("%{", "%%{"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_is_one_word_for_a_shell_and_one_string_for_terraform() {
        assert_eq!(quoted("it's $HOME"), r"'it'\''s $HOME'");
        assert_eq!(literal(r#"a"b\c${d}%{e}"#), r#""a\"b\\c$${d}%%{e}""#);
    }
}
