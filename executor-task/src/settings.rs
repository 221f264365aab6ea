//! What the launcher tells us through the environment.

use std::path::PathBuf;
use std::time::Duration;

use plumbline_core::ids::TaskId;
use plumbline_sts::{TaskRole, VariableError};

/// The environment variable with the one-time ticket.
pub(crate) const TICKET_VARIABLE: &std::ffi::CStr = c"PLUMBLINE_TICKET";

/// How this executor was started.
#[derive(Clone)]
pub(crate) struct Settings {
    /// Base address of `callback`, without a trailing slash.
    pub(crate) callback_url: String,
    /// Good for one trade.
    pub(crate) ticket: String,
    /// On ECS: where the credentials are that prove who we are.
    pub(crate) task_role: Option<TaskRole>,
    /// Where STS answers, instead of its public addresses.
    pub(crate) sts_endpoint: Option<String>,
    /// The queue row.
    pub(crate) task_id: TaskId,
    /// Local repositories may be cloned from below here; `None` refuses all.
    pub(crate) local_repos_root: Option<PathBuf>,
    /// Where to look for terraform and tofu, before `PATH`.
    pub(crate) tool_dirs: Vec<PathBuf>,
    /// Where to download them from.
    pub(crate) tool_mirror: Option<String>,
    /// Where downloads are kept.
    pub(crate) tool_cache: Option<PathBuf>,
    /// A directory for this attempt alone.
    pub(crate) work_dir: Option<PathBuf>,
    /// Whether to give the child a user of its own where that is possible.
    pub(crate) isolate: bool,
    /// A Terraform CLI configuration for the child.
    pub(crate) cli_config: Option<PathBuf>,
    /// Providers that lie here come from here alone; all others from their registry.
    pub(crate) provider_mirror: Option<PathBuf>,
    /// From interrupt to kill.
    pub(crate) grace: Duration,
}

/// A variable is missing or wrong.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is missing or not valid")]
pub(crate) struct SettingsError(&'static str);

impl Settings {
    /// Reads `PLUMBLINE_*`.
    pub(crate) fn from_environment() -> Result<Self, SettingsError> {
        let need = |name| find(name).ok_or(SettingsError(name));
        let isolate = match find("PLUMBLINE_ISOLATION").as_deref() {
            None | Some("auto") => true,
            Some("off") => false,
            Some(_) => return Err(SettingsError("PLUMBLINE_ISOLATION")),
        };
        let grace = match find("PLUMBLINE_STOP_GRACE_SECONDS") {
            None => 60,
            Some(text) => text.parse().map_err(|_| SettingsError("PLUMBLINE_STOP_GRACE_SECONDS"))?,
        };
        let (cli_config, provider_mirror) = (find("PLUMBLINE_CLI_CONFIG"), find("PLUMBLINE_PROVIDER_MIRROR"));
        if cli_config.is_some() && provider_mirror.is_some() {
            return Err(SettingsError("PLUMBLINE_PROVIDER_MIRROR (with PLUMBLINE_CLI_CONFIG)"));
        }
        Ok(Self {
            callback_url: need("PLUMBLINE_CALLBACK_URL")?.trim_end_matches('/').to_owned(),
            ticket: need("PLUMBLINE_TICKET")?,
            task_role: TaskRole::from_environment(find).map_err(|VariableError(name)| SettingsError(name))?,
            sts_endpoint: find("PLUMBLINE_STS_ENDPOINT"),
            task_id: need("PLUMBLINE_TASK_ID")?.parse().map_err(|_| SettingsError("PLUMBLINE_TASK_ID"))?,
            local_repos_root: find("PLUMBLINE_LOCAL_REPOS_ROOT").map(PathBuf::from),
            tool_dirs: find("PLUMBLINE_TOOL_DIRS")
                .map_or_else(Vec::new, |dirs| std::env::split_paths(&dirs).collect()),
            tool_mirror: find("PLUMBLINE_TOOL_MIRROR").map(|url| url.trim_end_matches('/').to_owned()),
            tool_cache: find("PLUMBLINE_TOOL_CACHE").map(PathBuf::from),
            work_dir: find("PLUMBLINE_WORK_DIR").map(PathBuf::from),
            isolate,
            cli_config: cli_config.map(PathBuf::from),
            provider_mirror: provider_mirror.map(PathBuf::from),
            grace: Duration::from_secs(grace),
        })
    }
}

fn find(name: &str) -> Option<String> {
    std::env::var(name).ok().filter(|value| !value.is_empty())
}
