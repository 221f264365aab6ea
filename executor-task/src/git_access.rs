//! What lets git in for this run: opened once, before the clone, and gone when the attempt ends.
//!
//! Two parties get it. The supervisor's own git, while it clones. And `terraform init` for the modules that it
//! downloads from the repository's host: through a credential helper whose script names variables of init's
//! environment alone. Plan, apply, hooks and scanners have neither; nothing secret lies where they could read it.

use std::ffi::OsString;
use std::fmt::Write as _;
use std::path::PathBuf;

use plumbline_core::git_credentials::app_tokens::{self, AppTokenError};
use plumbline_core::git_credentials::{GitSecret, Place, best};
use plumbline_core::protocol::{GitCredential, Source};
use plumbline_core::workspaces::{LocalRepos, RepoUrl, Transport};

use crate::error::StepError;
use crate::isolation::Isolation;
use crate::session::Layout;

/// Files that init's git is pointed to. They hold no secret.
const SCRIPT: &str = "git-login.sh";
const CONFIG: &str = "git-modules.config";

/// A name and a password for one part of one host.
#[derive(Clone)]
pub(crate) struct Login {
    pub(crate) path_prefix: String,
    pub(crate) username: String,
    pub(crate) password: String,
}

/// A key for one host.
pub(crate) struct Key {
    pub(crate) private_key: String,
    pub(crate) host_keys: Vec<String>,
}

/// Everything that lets git in.
#[derive(Default)]
pub(crate) struct GitAccess {
    /// The repository, if it is at a host.
    place: Option<Place>,
    /// `http` or `https`.
    scheme: &'static str,
    logins: Vec<Login>,
    key: Option<Key>,
    missing: Option<Missing>,
}

/// Why the repository's own credential could not be made ready.
struct Missing {
    is_passing: bool,
    why: String,
}

impl GitAccess {
    /// Opens what the bundle carries; tokens of GitHub Apps are made now. What fails is told by the step that needs it.
    pub(crate) async fn open(source: &Source) -> Self {
        let Some(repository) = RepoUrl::parse(&source.repo_url, LocalRepos::Allowed).ok() else {
            return Self::default();
        };
        let Some(place) = Place::of(&repository) else { return Self::default() };
        let scheme = if repository.as_str().starts_with("http://") { "http" } else { "https" };
        let mut access = Self { place: Some(place.clone()), scheme, ..Self::default() };
        let own = best(&source.credentials, &place, terms).map(|own| own.path_prefix.clone());
        for credential in source.credentials.iter().filter(|one| one.host == place.host) {
            let is_own = own.as_ref() == Some(&credential.path_prefix);
            if let Err(missing) = access.add(credential, source.allow_private_addresses).await {
                tracing::warn!(host = credential.host, why = missing.why, "a Git credential cannot be used");
                if is_own {
                    access.missing = Some(missing);
                }
            }
        }
        access
    }

    async fn add(&mut self, credential: &GitCredential, allow_private: bool) -> Result<(), Missing> {
        let path_prefix = credential.path_prefix.clone();
        match &credential.secret {
            GitSecret::Token { username, token } => {
                self.logins.push(Login { path_prefix, username: username.clone(), password: token.clone() });
            }
            GitSecret::SshKey { private_key, host_keys } => {
                self.key = Some(Key { private_key: private_key.clone(), host_keys: host_keys.clone() });
            }
            GitSecret::GithubApp(app) => {
                let token = app_tokens::mint(app, allow_private).await.map_err(|error| Missing {
                    is_passing: matches!(error, AppTokenError::Unavailable(_)),
                    why: error.to_string(),
                })?;
                let username = app_tokens::USERNAME.into();
                self.logins.push(Login { path_prefix, username, password: token.into_text() });
            }
        }
        Ok(())
    }

    /// An error if the repository has a credential that could not be made ready.
    pub(crate) fn check(&self) -> Result<(), StepError> {
        match &self.missing {
            None => Ok(()),
            Some(missing) if missing.is_passing => Err(StepError::Transient(missing.why.clone())),
            Some(missing) => Err(StepError::Permanent(missing.why.clone())),
        }
    }

    /// The login for the repository itself.
    pub(crate) fn login(&self) -> Option<&Login> {
        let place = self.place.as_ref().filter(|place| place.transport == Transport::Http)?;
        best(&self.logins, place, |login| (Transport::Http, &place.host, &login.path_prefix))
    }

    /// The key for the repository itself.
    pub(crate) fn key(&self) -> Option<&Key> {
        self.key
            .as_ref()
            .filter(|_| self.place.as_ref().is_some_and(|place| place.transport == Transport::Ssh))
    }

    /// What no log may show.
    pub(crate) fn secrets(&self) -> impl Iterator<Item = &str> {
        let keys = self.key.iter().map(|key| key.private_key.as_str());
        self.logins.iter().map(|login| login.password.as_str()).chain(keys)
    }

    /// Lets the git of `terraform init` into the repository's host, until the value goes.
    pub(crate) fn for_modules(
        &self,
        layout: &Layout,
        isolation: Isolation,
    ) -> Result<ModuleAccess, StepError> {
        let mut access = ModuleAccess::default();
        let Some(place) = self.place.as_ref().filter(|_| !self.logins.is_empty()) else { return Ok(access) };
        let failed = || StepError::machine("git cannot be configured for modules");
        let (script, config) = (layout.given.join(SCRIPT), layout.given.join(CONFIG));
        let address = format!("{}://{}", self.scheme, place.host);
        for (path, text) in [
            (&script, login_script(&address, &self.logins)),
            (&config, configuration(&address, &script.display().to_string())),
        ] {
            std::fs::write(path, text).map_err(failed())?;
            access.files.push(path.clone());
            isolation.share(path).map_err(failed())?;
        }
        let mut set = |name: String, value: OsString| access.environment.push((name.into(), value));
        set("GIT_CONFIG_NOSYSTEM".into(), "1".into());
        set("GIT_CONFIG_GLOBAL".into(), config.into());
        set("GIT_TERMINAL_PROMPT".into(), "0".into());
        for (at, login) in self.logins.iter().enumerate() {
            set(format!("PLUMBLINE_GIT_USERNAME_{at}"), login.username.clone().into());
            set(format!("PLUMBLINE_GIT_PASSWORD_{at}"), login.password.clone().into());
        }
        Ok(access)
    }
}

/// What init gets. The files go with it.
#[derive(Default)]
pub(crate) struct ModuleAccess {
    /// For init alone.
    pub(crate) environment: Vec<(OsString, OsString)>,
    files: Vec<PathBuf>,
}

impl Drop for ModuleAccess {
    fn drop(&mut self) {
        for file in &self.files {
            // They hold no secret; the whole directory goes with the attempt.
            let _ = std::fs::remove_file(file);
        }
    }
}

fn terms<'a>(credential: &'a &GitCredential) -> (Transport, &'a str, &'a str) {
    let transport = match credential.secret {
        GitSecret::SshKey { .. } => Transport::Ssh,
        GitSecret::Token { .. } | GitSecret::GithubApp(_) => Transport::Http,
    };
    (transport, &credential.host, &credential.path_prefix)
}

/// Git's credential helper: answers for one scheme and host, by the longest prefix. Host and prefixes have no character
/// that means something between single quotes: both were checked when the credential was stored.
fn login_script(address: &str, logins: &[Login]) -> String {
    let mut sorted: Vec<(usize, &Login)> = logins.iter().enumerate().collect();
    sorted.sort_by_key(|(_, login)| std::cmp::Reverse(login.path_prefix.len()));
    let mut cases = String::new();
    for (at, login) in sorted {
        let pattern =
            if login.path_prefix.is_empty() { "*".to_owned() } else { format!("'{}/'*", login.path_prefix) };
        let _ = writeln!(
            cases,
            "  {pattern}) username=$PLUMBLINE_GIT_USERNAME_{at} password=$PLUMBLINE_GIT_PASSWORD_{at} ;;"
        );
    }
    format!(
        r#"[ "$1" = get ] || exit 0
while IFS='=' read -r key value; do
  case $key in protocol) protocol=$value ;; host) host=$value ;; path) path=$value ;; esac
done
[ "$protocol://$host" = '{address}' ] || exit 0
case "$path/" in */../* | ../* | */./*) path= ;; esac
case "${{path%.git}}/" in
{cases}  *) exit 0 ;;
esac
printf 'username=%s\npassword=%s\n' "$username" "$password"
"#
    )
}

/// No other helper is asked, and no redirect of the host is followed: it could take the login along.
fn configuration(address: &str, script: &str) -> String {
    format!(
        "[credential]\n\thelper =\n\tuseHttpPath = true\n[core]\n\taskPass =\n[credential \"{address}\"]\n\
         \thelper = \"!/bin/sh '{script}'\"\n[http \"{address}\"]\n\tfollowRedirects = false\n"
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn login(prefix: &str, at: usize) -> Login {
        Login { path_prefix: prefix.into(), username: format!("u{at}"), password: format!("p{at}") }
    }

    /// What the script answers to git.
    fn ask(logins: &[Login], action: &str, question: &str) -> String {
        let directory = tempfile::tempdir().unwrap();
        let script = directory.path().join("login.sh");
        std::fs::write(&script, login_script("https://git.example:8443", logins)).unwrap();
        let mut child = std::process::Command::new("/bin/sh")
            .arg(&script)
            .arg(action)
            .envs(logins.iter().enumerate().flat_map(|(at, login)| {
                [
                    (format!("PLUMBLINE_GIT_USERNAME_{at}"), login.username.clone()),
                    (format!("PLUMBLINE_GIT_PASSWORD_{at}"), login.password.clone()),
                ]
            }))
            .stdin(std::process::Stdio::piped())
            .stdout(std::process::Stdio::piped())
            .spawn()
            .unwrap();
        // What it does not answer it need not read.
        match std::io::Write::write_all(&mut child.stdin.take().unwrap(), question.as_bytes()) {
            Err(error) if error.kind() == std::io::ErrorKind::BrokenPipe => {}
            written => written.unwrap(),
        }
        let output = child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stdout).unwrap()
    }

    #[test]
    fn the_helper_answers_for_its_host_by_the_longest_prefix_and_for_nobody_else() {
        let logins = [login("org", 0), login("org/team", 1)];
        let at = |host: &str, path: &str| {
            ask(&logins, "get", &format!("protocol=https\nhost={host}\npath={path}\n\n"))
        };
        let host = "git.example:8443";
        assert_eq!(at(host, "org/team/x.git"), "username=u1\npassword=p1\n");
        assert_eq!(at(host, "org/team.git"), "username=u1\npassword=p1\n");
        assert_eq!(at(host, "org/teams/x"), "username=u0\npassword=p0\n");
        for (host, path) in [
            (host, "organisation/x"),
            (host, "org/../other/x"),
            (host, ""),
            ("git.example", "org/x"),
            ("git.example:8443.evil.example", "org/x"),
        ] {
            assert_eq!(at(host, path), "", "{host} {path}");
        }
        assert_eq!(ask(&logins, "store", "protocol=https\n"), "");
        let http = format!("protocol=http\nhost={host}\npath=org/x\n\n");
        assert_eq!(ask(&logins, "get", &http), "");
        assert_eq!(
            ask(&[login("", 0)], "get", &http.replace("http\n", "https\n")),
            "username=u0\npassword=p0\n"
        );
    }
}
