//! Clones one commit with the real git, without trusting the repository: limited protocols, no configuration but
//! ours, no hooks, no submodules, no prompt, credentials through a private file only.

use std::ffi::OsString;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::{Component, Path, PathBuf};

use plumbline_core::git_credentials::ssh;
use plumbline_core::protocol::Source;
use url::Url;

use crate::askpass;
use crate::child::{Output, Program};
use crate::error::StepError;
use crate::isolation::Isolation;
use crate::logs::Log;
use crate::session::{Session, passed_on};

const COMMIT_DIGITS: [usize; 2] = [40, 64];
/// How git and ssh say that they are not let in. Trying again would not help.
const NOT_LET_IN: [&str; 4] =
    ["could not read Username", "could not read Password", "Authentication failed", "Permission denied ("];
/// How they say that the host is another one, or is somewhere else.
const NOT_THE_HOST: [&str; 2] = ["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"];
const REDIRECTED: [&str; 4] = ["error: 301", "error: 302", "error: 307", "error: 308"];

/// Where git fetches from.
#[derive(Debug, PartialEq, Eq)]
struct Remote {
    url: String,
    protocol: &'static str,
    /// Who may ask for the credential.
    host: Option<String>,
}

/// Clones into `layout.repo` and returns the commit.
pub(crate) async fn clone(session: &Session, log: &Log) -> Result<String, StepError> {
    let source = &session.bundle.source;
    let remote = remote(source, session.settings.local_repos_root.as_deref())?;
    session.git_access.check()?;
    let (answers, key) = (write_answers(session, &remote)?, write_key(session, &remote)?);
    let git = Git { session, log, remote: &remote, answers, key };
    let result = git.fetch(source).await;
    let removed = || StepError::machine("the credential cannot be removed");
    if let Some(answers) = &git.answers {
        std::fs::remove_file(answers).map_err(removed())?;
    }
    if let Some(key) = &git.key {
        key.remove().map_err(removed())?;
    }
    result
}

/// The working directory, which lies in the clone even when symlinks are followed.
pub(crate) fn working_dir(repo: &Path, wanted: &str) -> Result<PathBuf, StepError> {
    let refuse = |why: &str| StepError::Permanent(format!("the working directory {wanted:?} {why}"));
    let relative = Path::new(wanted);
    let is_plain = relative.components().all(|part| matches!(part, Component::Normal(_) | Component::CurDir));
    if !is_plain || wanted.contains('\0') {
        return Err(refuse("must be a relative path inside the repository"));
    }
    let path = repo.join(relative).canonicalize().map_err(|_| refuse("does not exist in the repository"))?;
    let root = repo.canonicalize().map_err(StepError::machine("the clone cannot be read"))?;
    if !path.starts_with(&root) || path.strip_prefix(&root).is_ok_and(|inside| inside.starts_with(".git")) {
        return Err(refuse("leads out of the repository"));
    }
    if !path.is_dir() {
        return Err(refuse("is not a directory"));
    }
    Ok(path)
}

fn remote(source: &Source, local_root: Option<&Path>) -> Result<Remote, StepError> {
    let refuse = |why: &str| Err(StepError::Permanent(format!("the repository address {why}")));
    let address = source.repo_url.as_str();
    if address.starts_with('/') || address.starts_with("file://") {
        return local(Path::new(address.strip_prefix("file://").unwrap_or(address)), local_root);
    }
    // `git@host:path`, as forges print it.
    let url = match (Url::parse(address), address.split_once(':')) {
        (Ok(url), _) if url.has_host() => url,
        (_, Some((host, path))) if !host.is_empty() && !host.contains('/') && !host.starts_with('-') => {
            match Url::parse(&format!("ssh://{host}/{}", path.trim_start_matches('/'))) {
                Ok(url) if !path.starts_with(':') => url,
                Ok(_) | Err(_) => return refuse("is not valid"),
            }
        }
        _ => return refuse("is not valid"),
    };
    let protocol = match url.scheme() {
        "http" => "http",
        "https" => "https",
        "ssh" => "ssh",
        _ => return refuse("must be http, https or ssh"),
    };
    if url.password().is_some() {
        return refuse("must not contain a password; store a Git credential instead");
    }
    let host = url.host_str().map(|host| match url.port() {
        Some(port) => format!("{host}:{port}"),
        None => host.to_owned(),
    });
    Ok(Remote { url: url.to_string(), protocol, host })
}

fn local(path: &Path, root: Option<&Path>) -> Result<Remote, StepError> {
    let refuse = |why: &str| StepError::Permanent(format!("the local repository {why}"));
    let root = root.ok_or_else(|| refuse("is refused: local repositories are not allowed here"))?;
    let root = root.canonicalize().map_err(|_| refuse("is refused: their root does not exist"))?;
    let path = path.canonicalize().map_err(|_| refuse("does not exist"))?;
    if !path.starts_with(&root) {
        return Err(refuse("is refused: it lies outside of the allowed root"));
    }
    let url = Url::from_file_path(&path).map_err(|()| refuse("has an unusable path"))?;
    Ok(Remote { url: url.to_string(), protocol: "file", host: None })
}

/// The files with which ssh uses the unit's key. Without one it would look for the machine's own, which are no unit's.
fn write_key(session: &Session, remote: &Remote) -> Result<Option<ssh::Files>, StepError> {
    if remote.protocol != "ssh" {
        return Ok(None);
    }
    let key = session.git_access.key().ok_or_else(|| {
        StepError::Permanent(
            "an ssh address needs a Git credential of the kind ssh_key for its host, and this run has none"
                .into(),
        )
    })?;
    ssh::Files::write(&session.layout.ours, &key.private_key, &key.host_keys, None)
        .map(Some)
        .map_err(StepError::machine("the credential cannot be handed to ssh"))
}

fn write_answers(session: &Session, remote: &Remote) -> Result<Option<PathBuf>, StepError> {
    let (Some(login), Some(host)) = (session.git_access.login(), &remote.host) else { return Ok(None) };
    let answer = askpass::Answer {
        host: host.clone(),
        username: login.username.clone(),
        password: login.password.clone(),
    };
    let path = session.layout.ours.join("askpass.json");
    let failed = StepError::machine("the credential cannot be handed to git");
    let file =
        std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path).map_err(failed)?;
    serde_json::to_writer(file, &answer)
        .map_err(|_| StepError::Transient("the credential cannot be written".into()))?;
    Ok(Some(path))
}

struct Git<'a> {
    session: &'a Session,
    log: &'a Log,
    remote: &'a Remote,
    answers: Option<PathBuf>,
    key: Option<ssh::Files>,
}

impl Git<'_> {
    async fn fetch(&self, source: &Source) -> Result<String, StepError> {
        self.need(&["init", "--quiet", "."]).await?;
        let branch = format!("refs/heads/{}", source.branch);
        self.need(&["check-ref-format", &branch]).await.map_err(|error| match error {
            StepError::Transient(_) => {
                StepError::Permanent(format!("{:?} is not a valid branch name", source.branch))
            }
            other => other,
        })?;
        match &source.commit {
            None => {
                self.log.line(&format!("Cloning branch {}", source.branch));
                self.fetch_ref(&branch, true).await?;
            }
            Some(commit) => {
                let is_commit =
                    COMMIT_DIGITS.contains(&commit.len()) && commit.bytes().all(|b| b.is_ascii_hexdigit());
                if !is_commit {
                    return Err(StepError::Permanent("the pinned commit is not a commit id".into()));
                }
                self.log.line(&format!("Cloning commit {commit}"));
                // Not every server gives a commit by its id; every one gives the branch's history.
                match self.fetch_ref(commit, true).await {
                    Err(StepError::Transient(_)) => {
                        self.session.stop.check()?;
                        self.fetch_ref(&branch, false).await?;
                    }
                    fetched => fetched?,
                }
            }
        }
        let target = source.commit.as_deref().unwrap_or("FETCH_HEAD");
        self.need(&["checkout", "--quiet", "--detach", target]).await?;
        self.head().await
    }

    async fn fetch_ref(&self, reference: &str, is_shallow: bool) -> Result<(), StepError> {
        let mut args =
            vec!["fetch", "--no-tags", "--no-recurse-submodules", "--no-auto-maintenance", "--quiet"];
        if is_shallow {
            args.push("--depth=1");
        }
        args.extend(["--", self.remote.url.as_str(), reference]);
        self.need(&args).await
    }

    async fn head(&self) -> Result<String, StepError> {
        let mut text = Vec::new();
        let mut keep = |bytes: &[u8]| text.extend_from_slice(bytes);
        self.run(&["rev-parse", "--verify", "HEAD"], Output::Reader(&mut keep)).await?;
        Ok(String::from_utf8_lossy(&text).trim().to_owned())
    }

    async fn need(&self, args: &[&str]) -> Result<(), StepError> {
        self.run(args, Output::Log).await
    }

    async fn run(&self, args: &[&str], output: Output<'_>) -> Result<(), StepError> {
        let settings = [
            "core.hooksPath=/dev/null",
            "core.fsmonitor=false",
            "credential.helper=",
            "submodule.recurse=false",
            "protocol.version=2",
            "transfer.fsckObjects=false",
            "advice.detachedHead=false",
        ];
        // A redirect could take the login along.
        let redirects = self.answers.as_ref().map(|_| "http.followRedirects=false");
        let mut all: Vec<OsString> = settings
            .into_iter()
            .chain(redirects)
            .flat_map(|setting| [OsString::from("-c"), setting.into()])
            .collect();
        all.extend(args.iter().map(OsString::from));
        let program = Program {
            path: "git".into(),
            args: all,
            directory: self.session.layout.repo.clone(),
            environment: self.environment()?,
            // Git is ours, and needs files that the child must not read.
            isolation: Isolation::Off,
            has_network: true,
        };
        let ended = program.run(self.log, output, &self.session.stop).await?;
        ended.check_stopped(false)?;
        if ended.code == Some(0) {
            Ok(())
        } else if NOT_THE_HOST.iter().any(|words| ended.last_words.contains(words)) {
            Err(StepError::Permanent("the host shows a key that is not one of those that are pinned".into()))
        } else if self.answers.is_some() && REDIRECTED.iter().any(|words| ended.last_words.contains(words)) {
            let why = "the server redirects to another address: use the repository's exact address";
            Err(StepError::Permanent(why.into()))
        } else if NOT_LET_IN.iter().any(|words| ended.last_words.contains(words)) {
            let login = if self.answers.is_some() || self.key.is_some() {
                "refused the login of this run"
            } else {
                "asks for a login, and this run has none"
            };
            Err(StepError::Permanent(format!("the repository {login}")))
        } else {
            Err(StepError::Transient(format!("git {} {}", args[0], ended.describe())))
        }
    }

    fn environment(&self) -> Result<Vec<(OsString, OsString)>, StepError> {
        let ours = &self.session.layout.ours;
        let config = ours.join("gitconfig");
        // A local repository may belong to another user of this machine.
        std::fs::write(&config, "[safe]\n\tdirectory = *\n")
            .map_err(StepError::machine("git cannot be configured"))?;
        let mut environment = passed_on();
        let mut set = |name: &str, value: OsString| environment.push((name.into(), value));
        set("HOME", ours.clone().into());
        // Its words tell failures apart, and must be the same everywhere.
        set("LC_ALL", "C".into());
        set("GIT_CONFIG_NOSYSTEM", "1".into());
        set("GIT_CONFIG_GLOBAL", config.into());
        set("GIT_TERMINAL_PROMPT", "0".into());
        set("GIT_ALLOW_PROTOCOL", self.remote.protocol.into());
        set("GIT_LFS_SKIP_SMUDGE", "1".into());
        if let Some(key) = &self.key {
            set("GIT_SSH_COMMAND", key.command().into());
            set("GIT_SSH_VARIANT", "ssh".into());
        }
        if let Some(answers) = &self.answers {
            let program =
                std::env::current_exe().map_err(StepError::machine("our own program cannot be found"))?;
            set("GIT_ASKPASS", program.into());
            set(askpass::FILE_VARIABLE, answers.clone().into());
        } else {
            set("GIT_ASKPASS", "/bin/false".into());
        }
        Ok(environment)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn source(repo_url: &str) -> Source {
        Source {
            repo_url: repo_url.into(),
            branch: "main".into(),
            commit: None,
            working_dir: ".".into(),
            credentials: Vec::new(),
            allow_private_addresses: false,
        }
    }

    #[test]
    fn only_three_protocols_pass() {
        for good in ["https://h/x.git", "http://h:8080/x", "ssh://git@h/x", "git@h:org/x.git"] {
            assert!(remote(&source(good), None).is_ok(), "{good}");
        }
        for bad in [
            "ext::sh -c x",
            "git://h/x",
            "-oProxyCommand=x",
            "file:///etc",
            "/etc",
            "https://u:p@h/x",
            "",
            "x",
        ] {
            assert!(remote(&source(bad), None).is_err(), "{bad}");
        }
    }

    #[test]
    fn local_repositories_stay_below_their_root() {
        let root = tempfile::tempdir().unwrap();
        let outside = tempfile::tempdir().unwrap();
        std::fs::create_dir(root.path().join("repo")).unwrap();
        std::os::unix::fs::symlink(outside.path(), root.path().join("link")).unwrap();
        let at =
            |path: &str| remote(&source(&format!("{}/{path}", root.path().display())), Some(root.path()));
        assert!(at("repo").is_ok());
        assert!(at("link").is_err());
        assert!(at("repo/../..").is_err());
        assert!(at("absent").is_err());
    }

    #[test]
    fn the_working_directory_stays_in_the_clone() {
        let repo = tempfile::tempdir().unwrap();
        std::fs::create_dir_all(repo.path().join("stacks/one")).unwrap();
        std::fs::create_dir_all(repo.path().join(".git/x")).unwrap();
        std::os::unix::fs::symlink("/etc", repo.path().join("out")).unwrap();
        for good in [".", "stacks/one", "./stacks"] {
            assert!(working_dir(repo.path(), good).is_ok(), "{good}");
        }
        for bad in ["..", "/etc", "stacks/../..", "out", "absent", ".git", ".git/x"] {
            assert!(working_dir(repo.path(), bad).is_err(), "{bad}");
        }
    }
}
