//! Git credentials: what lets Git into a unit's repositories.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use chrono::Utc;
use clap::{Args, Subcommand, ValueEnum};
use serde_json::{Map, Value, json};

use super::tasks;
use crate::api::views::{GitCredential, GitCredentialTest, GitCredentialUsage};
use crate::api::{Document, Page, routes};
use crate::app::App;
use crate::args::PageArgs;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::{Table, ago, confirm, facts};

/// Longest secret that is read.
const SECRET_BYTES_MAX: u64 = 64 << 10;

/// `plumb git-credential …`
#[derive(Debug, Subcommand)]
pub enum GitCredentialCommand {
    /// List the unit's Git credentials, without their secrets.
    List {
        #[command(flatten)]
        page: PageArgs,
    },
    /// Show one.
    Show {
        /// Its name or id.
        credential: String,
    },
    /// Store one (admins). Its secret is read from a file or from stdin, never from an argument.
    #[command(after_help = "Examples:
  plumb git-credential create forge --kind token --host git.example.com < token.txt
  plumb git-credential create deploy --kind ssh-key --host git.example.com --secret-file id_ed25519 \\
    --known-hosts git.example.com.keys          what `ssh-keyscan git.example.com` printed, once you have checked it
  plumb git-credential create app --kind github-app --host github.com --path-prefix my-org \\
    --app-id 123 --installation-id 456 --secret-file app.private-key.pem")]
    Create {
        /// Its name.
        name: String,
        /// How it lets Git in.
        #[arg(long)]
        kind: Kind,
        /// The host that it is for, with :port if that is unusual.
        #[arg(long)]
        host: String,
        #[command(flatten)]
        fields: Box<Fields>,
        /// The file with the token or private key; `-` or nothing is stdin.
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Change fields of one (admins); what you do not name stays, the secret too.
    Update {
        /// Its name or id.
        credential: String,
        /// Its new name.
        #[arg(long)]
        name: Option<String>,
        #[command(flatten)]
        fields: Box<Fields>,
        /// Replace the token or private key by what is in this file; `-` is stdin.
        #[arg(long, value_name = "FILE")]
        secret_file: Option<PathBuf>,
    },
    /// Delete one with its secret (admins).
    Delete {
        /// Its name or id.
        credential: String,
        /// Delete it although workspaces use it.
        #[arg(long)]
        force: bool,
        /// Do not ask.
        #[arg(long, short)]
        yes: bool,
    },
    /// See which workspaces' repositories one is used for.
    Usage {
        /// Its name or id.
        credential: String,
    },
    /// Look at a repository with one; exit code 1 if it does not get in.
    Test {
        /// Its name or id.
        credential: String,
        /// The repository; without it, that of the last test.
        #[arg(value_name = "URL")]
        repo_url: Option<String>,
        /// Do not wait for the result; print the task.
        #[arg(long)]
        no_wait: bool,
    },
}

/// How a credential lets Git in.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Kind {
    /// A personal access token or password, over https.
    Token,
    /// A private key, over ssh.
    SshKey,
    /// A GitHub App's installation, over https.
    GithubApp,
}

impl Kind {
    fn as_str(self) -> &'static str {
        match self {
            Self::Token => "token",
            Self::SshKey => "ssh_key",
            Self::GithubApp => "github_app",
        }
    }
}

/// What can be said beside the secret.
#[derive(Debug, Args)]
pub struct Fields {
    /// Only for repositories below this path, such as `org` or `group/team`.
    #[arg(long, value_name = "PATH")]
    path_prefix: Option<String>,
    /// What goes beside a token; without it, what the forge takes.
    #[arg(long)]
    username: Option<String>,
    /// What the host may show: a line of `known_hosts` or a fingerprint SHA256:…; repeat for more.
    #[arg(long = "host-key", value_name = "LINE")]
    host_keys: Vec<String>,
    /// A file with lines of `known_hosts`.
    #[arg(long, value_name = "FILE")]
    known_hosts: Option<PathBuf>,
    /// The GitHub App's id.
    #[arg(long)]
    app_id: Option<String>,
    /// The number of its installation.
    #[arg(long)]
    installation_id: Option<i64>,
    /// Its API, where that is not the host's usual one.
    #[arg(long, value_name = "URL")]
    api_url: Option<String>,
}

impl Fields {
    /// The fields that were named, under the API's names.
    fn named(&self) -> anyhow::Result<Map<String, Value>> {
        let mut keys = self.host_keys.clone();
        if let Some(path) = &self.known_hosts {
            let text =
                std::fs::read_to_string(path).with_context(|| format!("cannot read {}", path.display()))?;
            let lines = text.lines().map(str::trim);
            keys.extend(lines.filter(|line| !line.is_empty() && !line.starts_with('#')).map(str::to_owned));
        }
        let fields = [
            ("path_prefix", self.path_prefix.clone().map(Value::from)),
            ("username", self.username.clone().map(Value::from)),
            ("host_keys", (!keys.is_empty()).then(|| json!(keys))),
            ("app_id", self.app_id.clone().map(Value::from)),
            ("installation_id", self.installation_id.map(Value::from)),
            ("api_url", self.api_url.clone().map(Value::from)),
        ];
        Ok(fields.into_iter().filter_map(|(name, value)| Some((name.to_owned(), value?))).collect())
    }
}

/// Runs one of them.
pub async fn run(app: &App, command: GitCredentialCommand) -> anyhow::Result<Outcome> {
    use GitCredentialCommand as Do;
    match command {
        Do::List { page } => {
            let call = app.client.call(routes::LIST_GIT_CREDENTIALS, []);
            let page = call.query("limit", page.limit).query("cursor", page.cursor).send().await?;
            list(app, &page)
        }
        Do::Show { credential } => {
            let document = get(app, &credential).await?;
            show(app, &document)
        }
        Do::Create { name, kind, host, fields, secret_file } => {
            let mut body = fields.named()?;
            body.insert("name".into(), name.into());
            body.insert("kind".into(), kind.as_str().into());
            body.insert("host".into(), host.into());
            body.insert(field_of(kind.as_str()).into(), read_secret(secret_file.as_deref())?.into());
            let call = app.client.call(routes::CREATE_GIT_CREDENTIAL, []).body(body.into()).creates(None);
            let made = call.send().await?;
            app.show(&made, |screen, made: GitCredential| {
                screen.print(&format!("Stored Git credential {}, id {}.", made.name, made.id))?;
                if let Some(key) = &made.public_key {
                    screen.note(&format!("The forge must know its public key: {key}"));
                }
                screen.note(&format!("Next: plumb git-credential test {} URL", made.name));
                Ok(())
            })
        }
        Do::Update { credential, name, fields, secret_file } => {
            update(app, &credential, name, &fields, secret_file.as_deref()).await
        }
        Do::Delete { credential, force, yes } => delete(app, &credential, force, yes).await,
        Do::Usage { credential } => {
            let found: GitCredential = get(app, &credential).await?.read()?;
            let usage = app.client.call(routes::GET_GIT_CREDENTIAL_USAGE, [&found.id]).send().await?;
            print_usage(app, &usage)
        }
        Do::Test { credential, repo_url, no_wait } => test(app, &credential, repo_url, no_wait).await,
    }
}

async fn update(
    app: &App,
    text: &str,
    name: Option<String>,
    fields: &Fields,
    secret_file: Option<&Path>,
) -> anyhow::Result<Outcome> {
    let mut body = fields.named()?;
    body.extend(name.map(|name| ("name".to_owned(), name.into())));
    if body.is_empty() && secret_file.is_none() {
        return Err(Usage::error("nothing to change: name at least one field, see --help"));
    }
    let document = get(app, text).await?;
    let now: GitCredential = document.read()?;
    if secret_file.is_some() {
        body.insert(field_of(&now.kind).into(), read_secret(secret_file)?.into());
    }
    let call = app.client.call(routes::UPDATE_GIT_CREDENTIAL, [&now.id]).if_match(&document);
    let updated = call.body(body.into()).send().await?;
    show(app, &updated)
}

async fn delete(app: &App, text: &str, force: bool, yes: bool) -> anyhow::Result<Outcome> {
    let credential: GitCredential = get(app, text).await?.read()?;
    let question = format!("Delete Git credential {} for {}?", credential.name, credential.host);
    if !yes && !confirm(&question, "--yes").await? {
        app.screen.note("Nothing was deleted.");
        return Ok(Outcome::Failed);
    }
    let call = app.client.call(routes::DELETE_GIT_CREDENTIAL, [&credential.id]);
    let answer = call.query("force", force.then_some(true)).send().await?;
    if app.screen.json {
        app.screen.document(&answer)?;
    } else {
        app.screen.print(&format!("Deleted Git credential {}.", credential.name))?;
    }
    Ok(Outcome::Done)
}

async fn test(app: &App, text: &str, repo_url: Option<String>, no_wait: bool) -> anyhow::Result<Outcome> {
    let credential: GitCredential = get(app, text).await?.read()?;
    let body = repo_url.map_or_else(|| json!({}), |url| json!({ "repo_url": url }));
    let call = app.client.call(routes::TEST_GIT_CREDENTIAL, [&credential.id]).body(body).creates(None);
    let started = call.send().await?;
    if no_wait {
        return app.show(&started, |screen, task: tasks::Started| {
            screen.print(&format!("Started task {}; its result: plumb tasks show {}", task.id(), task.id()))
        });
    }
    let (document, task) = tasks::wait(app, &started, "looking at the repository").await?;
    let result: GitCredentialTest = serde_json::from_value(task.result.unwrap_or_default())?;
    if app.screen.json {
        app.screen.document(&document)?;
    } else {
        app.screen.print(&format!("{}: {}: {}", result.repo_url, result.outcome, result.detail))?;
    }
    Ok(if result.outcome == "ok" { Outcome::Done } else { Outcome::Failed })
}

fn list(app: &App, page: &Document) -> anyhow::Result<Outcome> {
    app.show(page, |screen, page: Page<GitCredential>| {
        let now = Utc::now();
        let mut table = Table::new(&["ID", "NAME", "KIND", "HOST", "PATH", "LAST USED"]).shrinking("PATH");
        for one in page.items {
            let used = one.last_used_at.map_or_else(|| "never".into(), |at| ago(Some(at), now));
            table.row([one.id, one.name, one.kind, one.host, one.path_prefix, used]);
        }
        table.print(screen, "No Git credentials.", page.next_cursor.as_deref())
    })
}

fn show(app: &App, document: &Document) -> anyhow::Result<Outcome> {
    app.show(document, |screen, one: GitCredential| {
        let now = Utc::now();
        let secret = one.secret.masked_tail.map_or_else(|| "stored".into(), |tail| format!("…{tail}"));
        let keys = (!one.host_keys.is_empty()).then(|| one.host_keys.join(", "));
        screen.print(&facts(&[
            ("credential", Some(format!("{} ({})", one.name, one.id))),
            ("kind", Some(one.kind)),
            ("host", Some(one.host)),
            ("path", (!one.path_prefix.is_empty()).then_some(one.path_prefix)),
            ("username", one.username),
            ("secret", Some(secret)),
            ("public key", one.public_key),
            ("host keys", keys),
            ("app", one.app_id),
            ("installation", one.installation_id.map(|id| id.to_string())),
            ("api", one.api_url),
            ("tested with", one.test_repo_url),
            ("last used", one.last_used_at.map(|at| ago(Some(at), now))),
        ]))
    })
}

fn print_usage(app: &App, usage: &Document) -> anyhow::Result<Outcome> {
    app.show(usage, |screen, usage: GitCredentialUsage| {
        let shown = usage.workspaces.len();
        let mut table = Table::new(&["ID", "NAME", "REPOSITORY"]).shrinking("REPOSITORY");
        for workspace in usage.workspaces {
            table.row([workspace.id, workspace.name, workspace.repo_url]);
        }
        table.print(screen, "No workspace uses it.", None)?;
        if usage.workspaces_total > shown {
            screen.note(&format!("and {} more", usage.workspaces_total - shown));
        }
        Ok(())
    })
}

async fn get(app: &App, text: &str) -> anyhow::Result<Document> {
    let id = match text.parse::<uuid::Uuid>() {
        Ok(id) => id.to_string(),
        Err(_) => find_id(app, text).await?,
    };
    app.client.call(routes::GET_GIT_CREDENTIAL, [&id]).send().await
}

async fn find_id(app: &App, name: &str) -> anyhow::Result<String> {
    let mut cursor = None;
    loop {
        let call = app.client.call(routes::LIST_GIT_CREDENTIALS, []).query("cursor", cursor);
        let page: Page<GitCredential> = call.send().await?.read()?;
        if let Some(found) = page.items.into_iter().find(|one| one.name == name) {
            return Ok(found.id);
        }
        cursor = page.next_cursor;
        anyhow::ensure!(
            cursor.is_some(),
            "there is no Git credential called `{name}` here; see plumb git-credential list"
        );
    }
}

/// Under which name the API takes the secret of a kind.
fn field_of(kind: &str) -> &'static str {
    if kind == Kind::Token.as_str() { "token" } else { "private_key" }
}

/// The secret without line ends around it.
fn read_secret(file: Option<&Path>) -> anyhow::Result<String> {
    let mut text = String::new();
    match file.filter(|path| *path != Path::new("-")) {
        Some(path) => {
            let file =
                std::fs::File::open(path).with_context(|| format!("cannot read {}", path.display()))?;
            file.take(SECRET_BYTES_MAX + 1).read_to_string(&mut text)
        }
        None => std::io::stdin().lock().take(SECRET_BYTES_MAX + 1).read_to_string(&mut text),
    }
    .context("the secret cannot be read")?;
    let secret = text.trim_matches(['\r', '\n']);
    if secret.is_empty() || text.len() as u64 > SECRET_BYTES_MAX {
        return Err(Usage::error("the file or stdin must hold the secret, of at most 64 KiB"));
    }
    Ok(secret.to_owned())
}
