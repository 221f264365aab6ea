//! What a call could not deliver: said at its end, and settled at the next start.

use std::path::Path;
use std::time::SystemTime;

use plumbline_state_proxy::{Unsent, Upstream, check_file, digests, give_lock_back, send_file};

use super::spool::{About, Spool};
use crate::api::routes;
use crate::api::views::StateLock;
use crate::app::App;
use crate::output::confirm;

/// Says where the state lies that the server does not have, and what to do.
pub(super) fn explain(spool: &Spool, workspace: &str, reason: Option<&str>) -> anyhow::Result<()> {
    if let Some(reason) = reason {
        eprintln!("plumb: {}", crate::output::clean(reason));
    }
    if let Some(body) = spool.newest()? {
        eprintln!(
            "The state that terraform wrote is not at the server. It is kept in {}",
            body.path.display()
        );
        eprintln!("Deliver it: plumb tf {workspace} --deliver");
    } else if let Some(id) = spool.lock_id() {
        eprintln!("The lock {id} may still be held. See: plumb lock show {workspace}");
    }
    Ok(())
}

/// Where terraform itself kept a state that was refused.
pub(super) fn name_errored(directory: &Path, began: Option<SystemTime>, workspace: &str) {
    let path = directory.join("errored.tfstate");
    let written = path.metadata().and_then(|meta| meta.modified()).ok();
    let is_fresh = written.is_some() && written >= began;
    if is_fresh {
        eprintln!("Terraform kept its state in {}", path.display());
        eprintln!("Once the reason is gone: plumb state push {workspace} {}", path.display());
    }
}

/// Looks at what killed or unlucky calls for the same workspace left. A state that the server does not have must be
/// delivered before terraform works on an older one.
pub(super) async fn settle(
    app: &App,
    upstream: &dyn Upstream,
    about: &About,
    workspace: &str,
    deliver: bool,
) -> anyhow::Result<()> {
    for spool in Spool::left_for(about)? {
        if let Some(body) = spool.newest()? {
            let path = body.path.display();
            let serial = match check_file(&body.path)? {
                Ok(facts) => format!(", serial {}", facts.serial),
                Err(_) => String::new(),
            };
            app.screen.note(&format!(
                "An earlier call wrote a state that the server does not have: {path}{serial}"
            ));
            anyhow::ensure!(
                deliver || confirm("Deliver it now?", "--deliver").await?,
                "not delivered; deliver it with `plumb tf {workspace} --deliver`, or remove {} if it is not wanted",
                spool.directory().display()
            );
            send(upstream, &spool, &body.path).await?;
            app.screen.note("The state is delivered.");
            unlock(upstream, &spool, workspace).await?;
        } else if let Some(id) = spool.lock_id() {
            let lock = app.client.call(routes::GET_STATE_LOCK, [&about.workspace_id]).send().await?;
            let lock: StateLock = lock.read()?;
            if lock.lock_id.as_deref() == Some(&id) {
                app.screen.note(&format!(
                    "An earlier call was killed and left the lock {id}. If nothing of it runs any more: \
                     plumb state rm-lock {workspace}"
                ));
                continue;
            }
        }
        spool.remove();
    }
    Ok(())
}

async fn send(upstream: &dyn Upstream, spool: &Spool, path: &Path) -> anyhow::Result<()> {
    let found = digests(path)?;
    match send_file(upstream, path, &found, spool.lock_id().as_deref()).await {
        Ok(_) => Ok(()),
        Err(Unsent::Quarantined(reason)) => {
            eprintln!("{}", crate::output::clean(&reason));
            Ok(())
        }
        Err(unsent) => anyhow::bail!("{} was not delivered: {unsent}", path.display()),
    }
}

async fn unlock(upstream: &dyn Upstream, spool: &Spool, workspace: &str) -> anyhow::Result<()> {
    let Some(info) = spool.lock() else { return Ok(()) };
    if let Err(refusal) = give_lock_back(upstream, info).await? {
        // It was taken away meanwhile, or somebody else has another by now.
        eprintln!("The lock was not given back: {}. See: plumb lock show {workspace}", refusal.reason());
    }
    Ok(())
}
