//! What all steps of one attempt share: who we are, where things lie, and whether to stop.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use plumbline_core::protocol::{Bundle, RunPhase, StepReport, StepStatus};
use plumbline_core::variables::hcl;
use tempfile::TempDir;
use tokio::sync::watch;

use crate::callback::Callback;
use crate::credentials::Cloud;
use crate::error::StepError;
use crate::git_access::GitAccess;
use crate::isolation::{Isolation, reachable_by_others};
use crate::log_redaction::Secrets;
use crate::logs::{Log, StepLog};
use crate::settings::Settings;

/// Longest path of the child's TMPDIR: plugins put sockets there, whose whole path has 107 bytes.
const TMPDIR_BYTES_MAX: usize = 70;
/// A value of these in the environment is a secret.
const SECRET_WORDS: [&str; 6] = ["SECRET", "TOKEN", "PASSWORD", "CREDENTIAL", "PRIVATE", "KEY"];

/// Why to stop.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Stop {
    /// A person cancelled, or the platform asks us to end.
    Cancelled,
    /// The wall-clock limit, in seconds.
    TimedOut(u64),
    /// Another attempt owns the task.
    Fenced,
}

impl From<Stop> for StepError {
    fn from(stop: Stop) -> Self {
        match stop {
            Stop::Cancelled => Self::Cancelled,
            Stop::TimedOut(seconds) => Self::TimedOut(seconds),
            Stop::Fenced => Self::Fenced("its lease was lost".into()),
        }
    }
}

/// Tells every step when to stop. The first reason stays.
#[derive(Clone)]
pub(crate) struct StopSignal {
    receiver: watch::Receiver<Option<Stop>>,
    grace: Duration,
    phase: RunPhase,
}

impl StopSignal {
    /// A signal and who gives it.
    pub(crate) fn new(grace: Duration, phase: RunPhase) -> (watch::Sender<Option<Stop>>, Self) {
        let (sender, receiver) = watch::channel(None);
        (sender, Self { receiver, grace, phase })
    }

    /// Resolves when the attempt must stop.
    pub(crate) async fn wanted(&mut self) -> Stop {
        match self.receiver.wait_for(Option::is_some).await.map(|stop| *stop) {
            Ok(Some(stop)) => stop,
            // Nobody is left to stop us.
            Ok(None) | Err(_) => std::future::pending().await,
        }
    }

    /// An error if the attempt must stop.
    pub(crate) fn check(&self) -> Result<(), StepError> {
        self.receiver.borrow().map_or(Ok(()), |stop| Err(stop.into()))
    }

    /// From interrupt to kill; `None` never kills. A fenced apply may still hold the state lock: killing it would
    /// lose what it has made, while its write is still accepted.
    pub(crate) fn grace(&self, stop: Stop) -> Option<Duration> {
        match (stop, self.phase) {
            (Stop::Fenced, RunPhase::Plan) => Some(Duration::ZERO),
            (Stop::Fenced, RunPhase::Apply) => None,
            (Stop::Cancelled | Stop::TimedOut(_), _) => Some(self.grace),
        }
    }
}

/// Where things lie. `ours` is closed to the child; it reads `given`, adds to `made`, owns the rest.
pub(crate) struct Layout {
    /// Closed to the child: logs, spooled state, copies of what it made.
    pub(crate) ours: PathBuf,
    /// The clone.
    pub(crate) repo: PathBuf,
    /// What the child may read only.
    pub(crate) given: PathBuf,
    /// Where the child leaves the plan.
    pub(crate) made: PathBuf,
    /// The child's HOME.
    pub(crate) home: PathBuf,
    /// The child's TMPDIR.
    pub(crate) tmp: PathBuf,
    // Removed when the attempt ends.
    _directories: Vec<TempDir>,
}

impl Layout {
    /// Makes the directories.
    pub(crate) fn make(work_dir: Option<&Path>, isolation: Isolation) -> std::io::Result<Self> {
        let parent = match work_dir {
            Some(parent) => {
                std::fs::create_dir_all(parent)?;
                let parent = parent.canonicalize()?;
                // A user of its own could not get to the files in a private directory.
                let is_usable = isolation.uid().is_none() || reachable_by_others(&parent.join("x"));
                if is_usable { parent } else { std::env::temp_dir() }
            }
            None => std::env::temp_dir(),
        };
        let root = tempfile::Builder::new().prefix("plumbline-").tempdir_in(parent)?;
        let mut directories = Vec::new();
        let make = |path: PathBuf| std::fs::create_dir(&path).map(|()| path);
        let child = make(root.path().join("child"))?;
        let mut tmp = child.join("tmp");
        if tmp.as_os_str().len() > TMPDIR_BYTES_MAX {
            let short = tempfile::Builder::new().prefix("pl-").tempdir()?;
            isolation.share(short.path())?;
            tmp = short.path().join("tmp");
            directories.push(short);
        }
        let layout = Self {
            ours: make(root.path().join("ours"))?,
            repo: make(child.join("repo"))?,
            given: make(child.join("given"))?,
            made: make(child.join("made"))?,
            home: make(child.join("home"))?,
            tmp: make(tmp)?,
            _directories: {
                directories.push(root);
                directories
            },
        };
        for shared in [child.parent().unwrap_or(&child), &child, &layout.given] {
            isolation.share(shared)?;
        }
        isolation.open_for_adding(&layout.made)?;
        isolation.give(&layout.home)?;
        isolation.give(&layout.tmp)?;
        Ok(layout)
    }
}

/// A HOME and a TMPDIR in which nobody has been. They go with it.
pub(crate) struct Clean {
    home: TempDir,
    tmp: TempDir,
}

impl Clean {
    /// For the call; after what all calls get.
    pub(crate) fn environment(&self) -> [(OsString, OsString); 2] {
        [("HOME".into(), self.home.path().into()), ("TMPDIR".into(), self.tmp.path().into())]
    }
}

impl Layout {
    /// Makes directories that no earlier call has seen.
    pub(crate) fn clean(&self, isolation: Isolation) -> std::io::Result<Clean> {
        let beside = |path: &Path, prefix| {
            let made = tempfile::Builder::new().prefix(prefix).tempdir_in(path.parent().unwrap_or(path))?;
            isolation.give(made.path())?;
            std::io::Result::Ok(made)
        };
        Ok(Clean { home: beside(&self.home, "home-")?, tmp: beside(&self.tmp, "tmp-")? })
    }
}

/// One attempt.
pub(crate) struct Session {
    /// How we were started.
    pub(crate) settings: Settings,
    /// The control plane.
    pub(crate) callback: Callback,
    /// What to do.
    pub(crate) bundle: Bundle,
    /// Where things lie.
    pub(crate) layout: Layout,
    /// Who the child is.
    pub(crate) isolation: Isolation,
    /// What lets git in.
    pub(crate) git_access: GitAccess,
    /// What plan and apply get into clouds with.
    pub(crate) cloud: Cloud,
    /// What no log may show.
    pub(crate) secrets: Arc<Secrets>,
    /// Whether to stop.
    pub(crate) stop: StopSignal,
}

/// What a step learned.
pub(crate) type Report = StepReport;

/// A report with a status and nothing else.
pub(crate) fn report(status: StepStatus) -> Report {
    Report { status, summary: None, commit: None, tool: None, tool_version: None }
}

impl Session {
    /// Runs one step: reports it, keeps its log, reports how it ended. A step that the bundle does not name is run
    /// without being reported.
    pub(crate) async fn step<T>(
        &self,
        name: &str,
        work: impl AsyncFnOnce(&Log, &mut Report) -> Result<T, StepError>,
    ) -> Result<T, StepError> {
        let spec = self.bundle.steps.iter().find(|step| step.name == name);
        let position = spec.map(|step| step.position).ok_or_else(|| {
            StepError::Permanent(format!("the control plane does not know the step {name:?}"))
        })?;
        self.stop.check()?;
        self.callback.report(position, &report(StepStatus::Running)).await?;
        let step_log = StepLog::begin(
            self.callback.clone(),
            position,
            &self.layout.ours,
            self.bundle.log_bytes_max,
            Arc::clone(&self.secrets),
        )?;
        let log = step_log.log();
        let mut done = report(StepStatus::Succeeded);
        let result = work(&log, &mut done).await;
        if let Err(error) = &result {
            log.line(&format!("plumbline: {error}"));
            done.status = StepStatus::Failed;
        }
        if matches!(result, Err(StepError::Fenced(_))) {
            return result;
        }
        step_log.finish().await?;
        self.callback.report(position, &done).await?;
        result
    }

    /// Where the child finds its CLI configuration.
    pub(crate) fn cli_config(&self) -> PathBuf {
        self.layout.given.join("cli.tfrc")
    }

    /// The environment that every program of the child gets, and nothing of ours.
    pub(crate) fn plain_environment(&self) -> Vec<(OsString, OsString)> {
        let mut environment: Vec<(OsString, OsString)> = [
            ("HOME", self.layout.home.clone().into_os_string()),
            ("TMPDIR", self.layout.tmp.clone().into_os_string()),
            ("TF_IN_AUTOMATION", "1".into()),
            ("TF_INPUT", "0".into()),
            ("CHECKPOINT_DISABLE", "1".into()),
        ]
        .into_iter()
        .map(|(name, value)| (name.into(), value))
        .collect();
        environment.extend(passed_on());
        environment.push(("TF_CLI_CONFIG_FILE".into(), self.cli_config().into()));
        environment
    }

    /// The run's credentials: for plan and apply only.
    pub(crate) fn credentials(&self) -> Vec<(OsString, OsString)> {
        self.bundle.environment.iter().map(|(name, value)| (name.into(), value.into())).collect()
    }
}

/// What programs need of our own environment: where programs are, how to get out.
pub(crate) fn passed_on() -> Vec<(OsString, OsString)> {
    const NAMES: [&str; 11] = [
        "PATH",
        "LANG",
        "HTTP_PROXY",
        "HTTPS_PROXY",
        "NO_PROXY",
        "http_proxy",
        "https_proxy",
        "no_proxy",
        "SSL_CERT_FILE",
        "SSL_CERT_DIR",
        "TZ",
    ];
    NAMES.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?))).collect()
}

/// Everything in a bundle, and what was opened from it or got with it, that no log may show.
pub(crate) fn secrets_of(bundle: &Bundle, git_access: &GitAccess, cloud: &Cloud) -> Secrets {
    let variables = bundle.variables.iter().filter(|variable| variable.is_secret);
    // Terraform shows the parts of an expression one by one.
    let parts: Vec<String> = variables
        .clone()
        .filter(|variable| variable.is_hcl)
        .flat_map(|variable| hcl::quoted_strings(&variable.value))
        .collect();
    let environment: &BTreeMap<String, String> = &bundle.environment;
    let credentials = environment
        .iter()
        .filter(|(name, _)| SECRET_WORDS.iter().any(|word| name.to_uppercase().contains(word)));
    let values = variables
        .map(|variable| variable.value.as_str())
        .chain(parts.iter().map(String::as_str))
        .chain(credentials.map(|(_, value)| value.as_str()))
        .chain(bundle.source.credentials.iter().map(|credential| credential.secret.words()))
        .chain(git_access.secrets())
        .chain(bundle.secrets.iter().map(String::as_str))
        .chain(cloud.secrets())
        .chain(
            [bundle.token.as_str(), bundle.run_password.as_str()].into_iter().filter(|word| !word.is_empty()),
        );
    Secrets::new(values)
}
