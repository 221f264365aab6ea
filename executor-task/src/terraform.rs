//! Calls terraform or tofu in the prepared working directory.

use std::ffi::OsString;
use std::fs::File;
use std::path::PathBuf;

use plumbline_core::protocol::ArtifactKind;
use plumbline_state_proxy::{Backing, Digests, StateProxy};
use serde_json::Value;

use crate::backend;
use crate::child::{Ended, Output, Program};
use crate::configuration::{self, Configuration};
use crate::error::StepError;
use crate::files::read_left_by_child;
use crate::git;
use crate::isolation::reachable_by_others;
use crate::logs::Log;
use crate::provider_mirror;
use crate::session::Session;
use crate::tools::{self, Tool};
use crate::variables::Given;

const OVERRIDE_NAME: &str = "zz_plumbline_override.tf";
/// Terraform merges files that end in `_override.tf` last, in the order of their names: that none came after ours is looked
/// at once the backend is there. The address comes from the environment, because `-backend-config` would be stored in the
/// plan file, password included.
const OVERRIDE: &str = "terraform {\n  backend \"http\" {}\n}\n";
/// Where `init` keeps what the backend is.
const BACKEND_FILE: &str = ".terraform/terraform.tfstate";
const BACKEND_FILE_BYTES_MAX: u64 = 64 << 10;
/// The name of the dependency lock.
pub(crate) const LOCK_FILE: &str = ".terraform.lock.hcl";

/// The proxy of the state, with the password that reads what other workspaces share.
pub(crate) async fn start_proxy(session: &Session, backing: Backing) -> Result<StateProxy, StepError> {
    StateProxy::start(backing, &session.bundle.run_password)
        .await
        .map_err(StepError::machine("the state proxy cannot listen"))
}

/// What the proxy has to say goes to the log of the step that runs.
pub(crate) fn tell(proxy: &StateProxy, log: &Log) {
    let log = log.clone();
    proxy.tell(move |what| log.line(&format!("plumbline: {what}")));
}

/// A cloned working directory with its tool.
pub(crate) struct Terraform<'a> {
    session: &'a Session,
    directory: PathBuf,
    tool: Tool,
}

/// Clones and checks the working directory. Returns it with the commit.
pub(crate) async fn clone(session: &Session, log: &Log) -> Result<(PathBuf, String), StepError> {
    let commit = git::clone(session, log).await?;
    log.line(&format!("At commit {commit}"));
    let directory = git::working_dir(&session.layout.repo, &session.bundle.source.working_dir)?;
    Ok((directory, commit))
}

/// Gives the clone to the child, but for the directories that lead to the working directory: there it may add files
/// and not replace ours. From here on the supervisor runs no git in it.
pub(crate) fn hand_over(session: &Session, directory: &std::path::Path) -> Result<(), StepError> {
    let failed = || StepError::machine("the clone cannot be handed over");
    let isolation = session.isolation;
    let root = session.layout.repo.canonicalize().map_err(failed())?;
    isolation.give(&root).map_err(failed())?;
    for part in directory.ancestors().take_while(|part| part.starts_with(&root)) {
        isolation.open_for_adding(part).map_err(failed())?;
    }
    let path = directory.join(OVERRIDE_NAME);
    if std::fs::symlink_metadata(&path).is_ok() {
        return Err(StepError::Permanent(format!("the repository must not contain {OVERRIDE_NAME}")));
    }
    std::fs::write(&path, OVERRIDE).map_err(failed())?;
    isolation.share(&path).map_err(failed())?;
    let path = session.cli_config();
    std::fs::write(&path, cli_config(session)?).map_err(failed())?;
    isolation.share(&path).map_err(failed())?;
    Ok(())
}

/// The CLI configuration that the operator gave, or one that names their mirror of providers, or an empty one: without
/// any, the tool takes what a plan's code may have left in its home directory.
fn cli_config(session: &Session) -> Result<Vec<u8>, StepError> {
    if let Some(path) = &session.settings.cli_config {
        return std::fs::read(path).map_err(StepError::machine("the CLI configuration cannot be read"));
    }
    let Some(mirror) = &session.settings.provider_mirror else { return Ok(Vec::new()) };
    if session.isolation.uid().is_some() && !reachable_by_others(&mirror.join("x")) {
        return Err(StepError::Permanent(format!(
            "the user of a run cannot reach the provider mirror {}: let others pass through its directories",
            mirror.display()
        )));
    }
    let config = provider_mirror::cli_config(mirror)
        .map_err(StepError::machine("the provider mirror cannot be read"))?;
    Ok(config.into_bytes())
}

/// What the repository says about itself, for the log.
pub(crate) fn load_configuration(
    directory: &std::path::Path,
    log: &Log,
) -> Result<Option<Configuration>, StepError> {
    match configuration::load(directory)? {
        Some((name, found)) => {
            log.line(&format!("Using {name}"));
            Ok(Some(found))
        }
        None => {
            log.line("No plumbline.yaml here");
            Ok(None)
        }
    }
}

impl<'a> Terraform<'a> {
    /// Chooses the tool.
    pub(crate) async fn choose(
        session: &'a Session,
        log: &Log,
        directory: PathBuf,
        repository: Option<&Configuration>,
    ) -> Result<Self, StepError> {
        let wish = tools::wish(&session.bundle.tool, repository)?;
        let tool = tools::provide(session, log, &wish).await?;
        log.line(&format!("Using {} {}", wish.name, tool.version));
        Ok(Self { session, directory, tool })
    }

    /// `terraform` or `tofu`.
    pub(crate) fn name(&self) -> String {
        self.tool.name.clone()
    }

    /// The exact version.
    pub(crate) fn version(&self) -> String {
        self.tool.version.to_string()
    }

    /// A path in the working directory.
    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.directory.join(name)
    }

    /// `init`. It runs no provider, so it gets no credentials but those of the host that its modules come from.
    pub(crate) async fn init(&self, log: &Log, proxy: &StateProxy) -> Result<(), StepError> {
        let Session { git_access, layout, isolation, .. } = self.session;
        let modules = git_access.for_modules(layout, *isolation)?;
        let environment = [proxy.environment(), modules.environment.clone()].concat();
        let args = ["init", "-input=false", "-no-color"];
        let ended = self.run(log, Output::Log, &args, environment, true).await?;
        drop(modules);
        ended.check_stopped(false)?;
        match ended.code {
            Some(0) => self.require_own_backend(),
            // A registry that is away looks like a wrong module; the log says which.
            _ => Err(StepError::Permanent(format!("terraform init {}", ended.describe()))),
        }
    }

    /// The state must go through the proxy: a file of the repository may have named another backend, or another address.
    fn require_own_backend(&self) -> Result<(), StepError> {
        let failed = |error| StepError::Permanent(format!("{BACKEND_FILE} cannot be read: {error}"));
        let bytes = read_left_by_child(&self.path(BACKEND_FILE), BACKEND_FILE_BYTES_MAX).map_err(failed)?;
        let kept: Value = bytes.and_then(|bytes| serde_json::from_slice(&bytes).ok()).unwrap_or_default();
        if backend::is_own(&kept["backend"]) {
            return Ok(());
        }
        Err(StepError::Permanent(format!(
            "the configuration has a backend of its own ({}): remove it, Plumbline keeps the state",
            kept["backend"]["type"].as_str().unwrap_or("none")
        )))
    }

    /// A call that may change things or reach the cloud: with variables and credentials.
    pub(crate) async fn with_credentials(
        &self,
        log: &Log,
        output: Output<'_>,
        args: &[&str],
        proxy: &StateProxy,
    ) -> Result<Ended, StepError> {
        let cloud = self.session.cloud.open(self.session).await?;
        let given = Given::write(self.session, &self.directory)?;
        let mut environment = self.session.credentials();
        environment.extend(cloud.environment());
        environment.extend(given.environment.iter().cloned());
        environment.extend(proxy.environment());
        let files = given.args();
        // After the command's name: a plan file must stay the last argument.
        let (name, rest) = args.split_at(1);
        let args: Vec<&str> = name
            .iter()
            .copied()
            .chain(files.iter().map(String::as_str))
            .chain(rest.iter().copied())
            .collect();
        self.run(log, output, &args, environment, true).await
    }

    /// A call that reads the state and needs no credentials.
    pub(crate) async fn with_proxy(
        &self,
        log: &Log,
        output: Output<'_>,
        args: &[&str],
        proxy: &StateProxy,
    ) -> Result<Ended, StepError> {
        self.run(log, output, args, proxy.environment(), true).await
    }

    /// A call that only reads files: no credentials, no state, no network. Its output goes to a file of ours.
    pub(crate) async fn derive(
        &self,
        log: &Log,
        args: &[&str],
        to: &std::path::Path,
    ) -> Result<(), StepError> {
        let file = File::create(to).map_err(StepError::machine("no file for the output"))?;
        // What the plan's code left in its own directories must not decide how the plan is shown.
        let Session { layout, isolation, .. } = self.session;
        let clean = layout.clean(*isolation).map_err(StepError::machine("no clean directories"))?;
        let mut environment = self.session.plain_environment();
        environment.extend(clean.environment());
        let ended = self.run_in(log, Output::File(file), args, environment, false).await?;
        ended.check_stopped(false)?;
        match ended.code {
            Some(0) => Ok(()),
            _ => Err(StepError::Permanent(format!("terraform {} {}", args[0], ended.describe()))),
        }
    }

    async fn run(
        &self,
        log: &Log,
        output: Output<'_>,
        args: &[&str],
        more: Vec<(OsString, OsString)>,
        has_network: bool,
    ) -> Result<Ended, StepError> {
        // Ours last: a bundle cannot move HOME or the proxy's address.
        let mut environment = more;
        environment.extend(self.session.plain_environment());
        self.run_in(log, output, args, environment, has_network).await
    }

    async fn run_in(
        &self,
        log: &Log,
        output: Output<'_>,
        args: &[&str],
        environment: Vec<(OsString, OsString)>,
        has_network: bool,
    ) -> Result<Ended, StepError> {
        let program = Program {
            path: self.tool.path.clone(),
            args: args.iter().map(OsString::from).collect(),
            directory: self.directory.clone(),
            environment,
            isolation: self.session.isolation,
            has_network,
        };
        program.run(log, output, &self.session.stop).await
    }
}

/// Terraform says of a refused read only that it was refused.
pub(crate) fn explain_unshared(ended: &Ended, log: &Log) {
    let refused = ["terraform_remote_state", "HTTP remote state endpoint invalid auth"];
    if refused.iter().all(|words| ended.last_words.contains(words)) {
        log.line(
            "plumbline: a terraform_remote_state was refused: the workspace that it names does not share its outputs \
             with this one. An admin allows it with plumb workspace share-state",
        );
    }
}

/// Copies a file that the child left and uploads it. Returns its digests, if it was there.
pub(crate) async fn upload_left(
    session: &Session,
    kind: ArtifactKind,
    from: &std::path::Path,
) -> Result<Option<Digests>, StepError> {
    let copy = session.layout.ours.join(format!("{}.upload", kind.as_str()));
    let is_there = crate::files::copy_left_by_child(from, &copy)
        .map_err(|error| StepError::Permanent(format!("the {} cannot be read: {error}", kind.as_str())))?;
    if !is_there {
        return Ok(None);
    }
    crate::uploads::upload(&session.callback, kind, &copy).await.map(Some)
}
