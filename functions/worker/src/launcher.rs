//! Where executors run, by `PLUMBLINE_LAUNCHER`: `ecs` (the default) or `local`, which one machine uses to run the very
//! same binaries.

use std::path::PathBuf;

use anyhow::Context as _;
use plumbline_core::adapters::LocalLauncher;
use plumbline_core::ports::Launcher;
use plumbline_ecs::EcsLauncher;

/// What executors of this machine find in their environment, if it is set here.
const HANDED_ON: [&str; 2] = ["PLUMBLINE_LOCAL_REPOS_ROOT", "PLUMBLINE_TOOL_CACHE"];

/// The launcher that the environment names.
pub async fn from_environment() -> anyhow::Result<Box<dyn Launcher>> {
    match std::env::var("PLUMBLINE_LAUNCHER").as_deref() {
        Ok("local") => Ok(Box::new(local()?)),
        Ok("ecs") | Err(_) => Ok(Box::new(EcsLauncher::from_environment().await?)),
        Ok(other) => anyhow::bail!("PLUMBLINE_LAUNCHER is {other:?}; it can be `ecs` or `local`"),
    }
}

fn local() -> anyhow::Result<LocalLauncher> {
    let path = |name: &str| {
        std::env::var(name)
            .map(PathBuf::from)
            .with_context(|| format!("PLUMBLINE_LAUNCHER=local needs {name}"))
    };
    let handed_on =
        HANDED_ON.iter().filter_map(|name| Some(((*name).to_owned(), std::env::var(name).ok()?))).collect();
    Ok(LocalLauncher::new(
        path("PLUMBLINE_EXECUTOR_PROGRAM")?,
        path("PLUMBLINE_EXECUTOR_DIRECTORY")?,
        handed_on,
    ))
}
