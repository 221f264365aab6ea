//! A state file becomes the newest version.

use std::path::{Path, PathBuf};

use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use plumbline_state_proxy::{
    Digests, StateFileFacts, Unsent, Upstream, check_file, digests, give_lock_back, send_file, take_lock,
};
use reqwest::StatusCode;
use serde_json::{Value, json};
use uuid::Uuid;

use super::{find_current, workspaces};
use crate::api::StateUpstream;
use crate::api::views::StateVersion;
use crate::app::App;
use crate::outcome::Outcome;
use crate::output::{bytes, confirm};

/// `plumb state push`
#[derive(Debug, Args)]
#[command(after_help = "The file must have a higher serial than the newest version, and its lineage.
A state of something else is let in once by: plumb state accept-next-lineage WORKSPACE

Examples:
  plumb state pull web-prod -o web-prod.tfstate
  plumb state push web-prod web-prod.tfstate")]
pub struct PushArgs {
    /// The workspace's name or id.
    workspace: String,
    /// The state.
    file: PathBuf,
    /// Push under this lock, which an earlier command left behind, and give it back.
    #[arg(long, value_name = "ID")]
    lock_id: Option<String>,
    /// Do not ask.
    #[arg(long, short)]
    yes: bool,
}

pub(super) async fn push(app: &App, args: &PushArgs) -> anyhow::Result<Outcome> {
    let (facts, found) = look_at(&args.file).await?;
    let workspace_id = workspaces::find_id(app, &args.workspace).await?;
    let current = find_current(app, &workspace_id).await?;
    if current.as_ref().is_some_and(|current| current.sha256 == found.sha256.to_string()) {
        return app.say("This is the newest version already.");
    }
    if !args.yes && !confirm(&question(&facts, &found, current.as_ref()), "--yes").await? {
        app.screen.note("The state stays as it is.");
        return Ok(Outcome::Failed);
    }
    let upstream = StateUpstream::new(app.client.clone(), &workspace_id);
    let id = args.lock_id.clone().unwrap_or_else(|| Uuid::new_v4().to_string());
    let info = lock_info(&id, &args.file);
    if args.lock_id.is_none() {
        lock(&upstream, &info).await?;
    }
    let sent = tokio::select! {
        sent = send_file(&upstream, &args.file, &found, Some(&id)) => {
            sent.map_err(|unsent| anyhow::anyhow!(explain(unsent, &args.workspace)))
        }
        _ = tokio::signal::ctrl_c() => Err(anyhow::anyhow!("interrupted; the state was not pushed")),
    };
    let unlocked = give_lock_back(&upstream, info).await;
    let unlocked = match unlocked {
        Ok(Ok(())) => Ok(()),
        Ok(Err(refusal)) => Err(anyhow::anyhow!(refusal.reason())),
        Err(away) => Err(away.into()),
    };
    let unlocked = unlocked.with_context(|| {
        format!(
            "the lock {id} is still held; go on with `plumb state push {} {} --lock-id {id}`, or break it with \
             `plumb state rm-lock {}`",
            args.workspace,
            args.file.display(),
            args.workspace
        )
    });
    match (sent, unlocked) {
        (Ok(_), unlocked) => unlocked?,
        (Err(error), Ok(())) => return Err(error),
        (Err(error), Err(still)) => return Err(error.context(still)),
    }
    app.say(&format!("Serial {} is the newest version of the state.", facts.serial))
}

/// Everything that can be said about a file before anything is sent.
async fn look_at(path: &Path) -> anyhow::Result<(StateFileFacts, Digests)> {
    let unreadable = || format!("cannot read {}", path.display());
    let owned = path.to_owned();
    let looked =
        tokio::task::spawn_blocking(move || Ok::<_, std::io::Error>((check_file(&owned)?, digests(&owned)?)));
    let (facts, found) = looked.await?.with_context(unreadable)?;
    let facts = facts.with_context(|| format!("{} is no state to push", path.display()))?;
    Ok((facts, found))
}

fn question(facts: &StateFileFacts, found: &Digests, current: Option<&StateVersion>) -> String {
    let size = bytes(i64::try_from(found.size_bytes).unwrap_or(i64::MAX));
    match current {
        None => format!("Push serial {} ({size}) as the first state?", facts.serial),
        Some(current) => format!(
            "Push serial {} ({size}) over serial {} ({})?",
            facts.serial,
            current.serial,
            bytes(current.size_bytes)
        ),
    }
}

async fn lock(upstream: &dyn Upstream, info: &Bytes) -> anyhow::Result<()> {
    let refusal = match take_lock(upstream, info.clone()).await? {
        Ok(()) => return Ok(()),
        Err(refusal) => refusal,
    };
    if refusal.status != StatusCode::LOCKED {
        anyhow::bail!("the lock was refused: {}", refusal.reason());
    }
    let holder: Value = serde_json::from_slice(&refusal.body).unwrap_or_default();
    let said = |name: &str| holder[name].as_str().unwrap_or_default().to_owned();
    anyhow::bail!(
        "the state is locked by {} ({} {}, lock {})",
        said("Who"),
        said("Operation"),
        said("Info"),
        said("ID")
    )
}

fn explain(unsent: Unsent, workspace: &str) -> String {
    match unsent {
        Unsent::Refused(reason) => reason,
        Unsent::Quarantined(reason) => {
            format!("{reason}; see it with `plumb state quarantine list {workspace}`")
        }
        Unsent::Away(reason) => format!("the state was not pushed: {reason}"),
    }
}

fn lock_info(id: &str, file: &Path) -> Bytes {
    let user = std::env::var("USER").unwrap_or_else(|_| "somebody".into());
    let host = nix::unistd::gethostname().unwrap_or_default();
    let info = json!({
        "ID": id, "Operation": "plumb state push", "Info": file.display().to_string(),
        "Who": format!("{user}@{}", host.to_string_lossy()), "Version": env!("CARGO_PKG_VERSION"),
        "Created": chrono::Utc::now().to_rfc3339(), "Path": "",
    });
    info.to_string().into()
}
