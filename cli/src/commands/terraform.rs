//! `plumb tf`: a person's own terraform on a workspace's state, through the proxy that executors use.

mod child;
mod configuration;
mod left;
mod override_file;
mod spool;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use plumbline_state_proxy::{Backing, Child, Delivery, Live, StateProxy, Upstream};

use self::child::Signals;
use self::configuration::Backend;
use self::override_file::OverrideFile;
use self::spool::{About, Spool};
use super::workspaces;
use crate::api::StateUpstream;
use crate::api::views::Workspace;
use crate::app::App;
use crate::failure::Usage;
use crate::outcome::Outcome;
use crate::output::clean;

/// `plumb tf`
#[derive(Debug, Args)]
#[command(
    after_help = "The state goes through plumb: it may have any size, and if the server is away it is kept on disk and sent
later. An empty `backend \"http\" {}` is added while the tool runs if the configuration has none.

Examples:
  plumb tf web-prod -- init
  plumb tf web-prod -- plan -out=tfplan
  PLUMB_WORKSPACE=web-prod plumb tf -- apply tfplan

Exit codes are those of the tool; 1 if it succeeded and its state could not be delivered."
)]
pub struct TerraformArgs {
    /// The workspace's name or id.
    #[arg(env = "PLUMB_WORKSPACE")]
    workspace: Option<String>,
    /// The tool, by name or path; without it the one that the workspace names, else whichever is on the PATH.
    #[arg(long, value_name = "terraform|tofu|PATH")]
    tool: Option<String>,
    /// Deliver first what an earlier call could not deliver.
    #[arg(long)]
    deliver: bool,
    /// How long an unlock, and plumb after the tool's end, wait for a server that is away.
    #[arg(long, value_name = "SECONDS", default_value_t = 600)]
    patience_seconds: u64,
    /// What to run: `init`, `plan`, `apply`…
    #[arg(last = true, required_unless_present = "deliver", value_name = "COMMAND")]
    command: Vec<OsString>,
}

/// Runs it.
pub async fn run(app: &App, args: TerraformArgs) -> anyhow::Result<Outcome> {
    let name = args
        .workspace
        .as_deref()
        .ok_or_else(|| Usage::error("name the workspace: plumb tf WORKSPACE -- …, or set PLUMB_WORKSPACE"))?;
    let workspace: Workspace = workspaces::get(app, name).await?.read()?;
    let about = About { server: app.server().to_string(), workspace_id: workspace.id.clone() };
    let upstream: Arc<dyn Upstream> = Arc::new(StateUpstream::new(app.client.clone(), &workspace.id));
    left::settle(app, &*upstream, &about, name, args.deliver).await?;
    if args.command.is_empty() {
        return Ok(Outcome::Done);
    }
    let tool = child::find(args.tool.as_deref().or(workspace.tool.as_deref()))?;
    let directory = directory(&args.command)?;
    // Before the override is there: from here on Ctrl-C ends the tool, and then we tidy up.
    let mut signals = Signals::catch()?;
    let added = add_backend(&directory)?;
    let spool = Spool::create(&about)?;
    let patience = Duration::from_secs(args.patience_seconds);
    let delivery = Delivery::start(Arc::clone(&upstream), spool.directory());
    let live = Live { upstream, delivery, child: Child::Person, unlock_patience: Some(patience) };
    let proxy =
        StateProxy::start(Backing::Live(live), "").await.context("the proxy of the state cannot listen")?;
    proxy.tell(|what| eprintln!("plumb: {}", clean(what)));
    let ended = child::run(&tool, &args.command, proxy.environment(), &mut signals).await;
    drop(added);
    let delivered = close(&proxy, patience, &mut signals).await;
    left::name_errored(&directory, spool.began(), name);
    if delivered.is_ok() && spool.newest()?.is_none() && spool.lock().is_none() {
        spool.remove();
        return Ok(Outcome::Tool(ended?));
    }
    left::explain(&spool, name, delivered.err().as_deref())?;
    Ok(Outcome::Tool(ended?.max(1)))
}

/// Where the tool looks for the configuration.
fn directory(command: &[OsString]) -> anyhow::Result<PathBuf> {
    let here = std::env::current_dir().context("there is no current directory")?;
    let mut options = command.iter().take_while(|arg| arg.to_string_lossy().starts_with('-'));
    let elsewhere = options.find_map(|arg| arg.to_str()?.strip_prefix("-chdir="));
    Ok(elsewhere.map_or_else(|| here.clone(), |elsewhere| here.join(elsewhere)))
}

fn add_backend(directory: &std::path::Path) -> anyhow::Result<Option<OverrideFile>> {
    match configuration::backend_in(directory)? {
        Backend::Unsaid => OverrideFile::write(directory).map(Some),
        Backend::EmptyHttp => Ok(None),
        Backend::Other(what) => anyhow::bail!(
            "the configuration keeps its state elsewhere ({what}): remove that block, or leave `backend \"http\" {{}}` in its \
             place; `terraform state pull` before and `plumb state push` after bring the state along"
        ),
    }
}

/// Waits for what is still on its way; another signal, or the end of patience, ends the wait.
async fn close(proxy: &StateProxy, patience: Duration, signals: &mut Signals) -> Result<(), String> {
    tokio::select! {
        delivered = proxy.close() => delivered,
        _ = signals.next() => Err("interrupted while the state was on its way".into()),
        () = tokio::time::sleep(patience) => Err("the server did not take the state in time".into()),
    }
}
