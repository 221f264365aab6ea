//! Reading from other people's repositories with the real `git`: lists of branches and of files, never contents.
//!
//! Git gets an environment of its own: no prompts, no system or user configuration, no hooks, `http`, `https` and
//! `ssh` alone. A host is resolved first, refused if it is ours to protect, and pinned to what it resolved to.
//! Redirects are refused: they could lead inside, and take the login with them.

mod addresses;
mod command;

use std::path::{Path, PathBuf};

use self::addresses::resolve;
use self::command::{Command, Scratch};
use crate::Deps;
use crate::limits::Limits;
use crate::secrets::SecretText;
use crate::workspaces::{RepoUrl, Transport};

/// What lets Git into one repository.
#[derive(Clone, Debug)]
pub enum GitLogin {
    /// Over http and https.
    Password {
        /// The user's name.
        username: String,
        /// A token or password.
        token: SecretText,
    },
    /// Over ssh.
    Key {
        /// In OpenSSH's format.
        private_key: SecretText,
        /// What the host may show.
        host_keys: Vec<String>,
    },
}

/// Why a repository could not be read. The texts are for people and hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum GitError {
    /// Asking again will give the same.
    #[error("{0}")]
    Refused(String),
    /// The host showed a key that is not one of those that are pinned.
    #[error("{0}")]
    HostKey(String),
    /// Asking again may work.
    #[error("{0}")]
    Unavailable(String),
}

/// The branches of a repository.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Branches {
    /// `None` if the repository does not say.
    pub default_branch: Option<String>,
    /// By name.
    pub branches: Vec<String>,
}

/// The files of one commit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FileList {
    /// The branch or tag.
    pub reference: String,
    /// The commit.
    pub commit_sha: String,
    /// Paths in Git's order. Names that are not UTF-8 are left out.
    pub paths: Vec<String>,
}

/// The real `git`, within the limits of this process.
#[derive(Clone, Debug)]
pub struct Git<'a> {
    limits: &'a Limits,
    local_root: Option<&'a Path>,
    allow_private_addresses: bool,
}

impl<'a> Git<'a> {
    /// Git as this process may use it.
    pub fn new(deps: &'a Deps) -> Self {
        Self {
            limits: &deps.limits,
            local_root: deps.local_repos_root.as_deref().map(Path::new),
            allow_private_addresses: deps.allow_private_addresses,
        }
    }

    /// The branches of a repository, and which one is its default.
    pub async fn list_branches(
        &self,
        repository: &RepoUrl,
        login: Option<&GitLogin>,
    ) -> Result<Branches, GitError> {
        let scratch = Scratch::new()?;
        let (mut command, address) = self.prepare(&scratch, repository, login).await?;
        command.args(["ls-remote", "--quiet", "--symref", "--", &address, "HEAD", "refs/heads/*"]);
        let output = command.run().await?;
        Ok(parse_branches(&String::from_utf8_lossy(&output)))
    }

    /// The files of a branch or tag, or of the default branch. Fetches one commit's trees, and no file's content from
    /// servers that can leave it out.
    pub async fn list_files(
        &self,
        repository: &RepoUrl,
        reference: Option<&str>,
        login: Option<&GitLogin>,
    ) -> Result<FileList, GitError> {
        let scratch = Scratch::new()?;
        let (mut clone, address) = self.prepare(&scratch, repository, login).await?;
        clone.args(["clone", "--quiet", "--bare", "--depth=1", "--filter=blob:none", "--single-branch"]);
        clone.args(["--no-tags", "--template="]);
        if let Some(reference) = reference {
            clone.args(["--branch", reference]);
        }
        let copy = scratch.path().join("copy.git").display().to_string();
        clone.args(["--", &address, &copy]);
        clone.run().await?;

        let reference = match reference {
            Some(reference) => reference.to_owned(),
            None => text(&self.inside(&scratch, &copy, &["symbolic-ref", "--short", "HEAD"]).await?),
        };
        let commit = self.inside(&scratch, &copy, &["rev-parse", "--verify", "--quiet", "HEAD"]).await;
        let commit = commit.map_err(|_| GitError::Refused("the repository is empty".into()))?;
        let listing = self.inside(&scratch, &copy, &["ls-tree", "-r", "-z", "--name-only", "HEAD"]).await?;
        let names = listing.split(|byte| *byte == 0).filter(|name| !name.is_empty());
        let paths = names.filter_map(|name| String::from_utf8(name.to_vec()).ok()).collect();
        Ok(FileList { reference, commit_sha: text(&commit), paths })
    }

    /// A command about the copy: it reaches nothing outside.
    async fn inside(&self, scratch: &Scratch, copy: &str, args: &[&str]) -> Result<Vec<u8>, GitError> {
        let mut command = Command::new(scratch, self.limits);
        // Without this, a tree that the server left out would be fetched now.
        command.env("GIT_NO_LAZY_FETCH", "1");
        command.args(["--git-dir", copy]);
        command.args(args.iter().copied());
        command.run().await
    }

    /// A command that may reach the repository and nothing else, and the address to give it.
    async fn prepare(
        &self,
        scratch: &Scratch,
        repository: &RepoUrl,
        login: Option<&GitLogin>,
    ) -> Result<(Command, String), GitError> {
        let mut command = Command::new(scratch, self.limits);
        if repository.transport() == Transport::Local {
            let path = self.local_repository(repository)?;
            scratch.trust(&path)?;
            command.env("GIT_ALLOW_PROTOCOL", "file");
            return Ok((command, format!("file://{}", path.display())));
        }
        let (host, port) =
            repository.endpoint().ok_or_else(|| GitError::Refused("the address names no host".into()))?;
        let addresses = resolve(host, port, self.allow_private_addresses).await?;
        match (repository.transport(), login) {
            (Transport::Ssh, Some(GitLogin::Key { private_key, host_keys })) => {
                command.use_key(scratch, private_key, host_keys, &addresses)?;
                command.env("GIT_ALLOW_PROTOCOL", "ssh");
            }
            // Without one, ssh would look for the machine's own keys, which are no unit's.
            (Transport::Ssh, _) => {
                return Err(GitError::Refused(
                    "an ssh address needs a Git credential of the kind ssh_key for its host".into(),
                ));
            }
            (Transport::Http | Transport::Local, login) => {
                command.pin_http(host, port, &addresses);
                command.env("GIT_ALLOW_PROTOCOL", "http:https");
                if let Some(GitLogin::Password { username, token }) = login {
                    command.use_password(scratch, username, token)?;
                }
            }
        }
        Ok((command, repository.as_str().to_owned()))
    }

    /// The repository's real path, which must lie below the configured root after every link is followed.
    fn local_repository(&self, repository: &RepoUrl) -> Result<PathBuf, GitError> {
        let refused =
            || GitError::Refused("there is no repository at this path below the allowed root".into());
        let root = self.local_root.and_then(|root| root.canonicalize().ok()).ok_or_else(refused)?;
        let path = repository.local_path().and_then(|path| Path::new(path).canonicalize().ok());
        path.filter(|path| path.starts_with(&root)).ok_or_else(refused)
    }
}

fn text(output: &[u8]) -> String {
    String::from_utf8_lossy(output).trim().to_owned()
}

/// Reads `ls-remote --symref`: `ref: refs/heads/main<TAB>HEAD`, then `<sha><TAB><ref>` lines.
fn parse_branches(output: &str) -> Branches {
    let mut found = Branches { default_branch: None, branches: Vec::new() };
    for (left, name) in output.lines().filter_map(|line| line.split_once('\t')) {
        if let Some(target) = left.strip_prefix("ref: refs/heads/").filter(|_| name == "HEAD") {
            found.default_branch = Some(target.to_owned());
        } else if let Some(branch) = name.strip_prefix("refs/heads/") {
            found.branches.push(branch.to_owned());
        }
    }
    found.branches.sort();
    found
}
