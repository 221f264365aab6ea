//! One run of `git`, fenced in: environment, time, output, file size.

use std::ffi::OsStr;
use std::io::Write as _;
use std::net::IpAddr;
use std::os::unix::fs::OpenOptionsExt as _;
use std::path::Path;
use std::process::Stdio;
use std::time::Duration;

use nix::sys::signal::{Signal, killpg};
use nix::unistd::Pid;
use tokio::io::{AsyncRead, AsyncReadExt as _};

use super::GitError;
use crate::git_credentials::ssh;
use crate::limits::Limits;
use crate::secrets::SecretText;

/// Error output that is kept, in bytes.
const ERROR_BYTES_MAX: u64 = 16 << 10;
/// Characters of it that people see.
const ERROR_CHARS_SHOWN: usize = 400;
/// Unit of the shell's `ulimit -f`, in bytes.
const ULIMIT_BLOCK_BYTES: u64 = 512;
/// What Git inherits: where programs and trusted certificates are.
const INHERITED: [&str; 4] = ["PATH", "SSL_CERT_FILE", "SSL_CERT_DIR", "GIT_SSL_CAINFO"];

/// Answers Git's question for a login from a private file, so that no argument, address or environment holds the secret.
const CREDENTIAL_HELPER: &str = r#"!f() { test "$1" = get && cat "$PLUMBLINE_GIT_LOGIN_FILE"; }; f"#;

/// A directory that goes with the value.
pub(super) struct Scratch(tempfile::TempDir);

impl Scratch {
    pub(super) fn new() -> Result<Self, GitError> {
        let failed = |_| GitError::Unavailable("no scratch directory could be made".into());
        let scratch = Self(tempfile::Builder::new().prefix("plumbline-git-").tempdir().map_err(failed)?);
        std::fs::write(scratch.configuration(), "").map_err(failed)?;
        Ok(scratch)
    }

    pub(super) fn path(&self) -> &Path {
        self.0.path()
    }

    /// Lets Git read a local repository that another user owns. Only a configuration file can say so.
    pub(super) fn trust(&self, repository: &Path) -> Result<(), GitError> {
        let quoted = repository.display().to_string().replace('\\', "\\\\").replace('"', "\\\"");
        std::fs::write(self.configuration(), format!("[safe]\n\tdirectory = \"{quoted}\"\n"))
            .map_err(|_| GitError::Unavailable("the scratch directory cannot be written".into()))
    }

    fn configuration(&self) -> std::path::PathBuf {
        self.path().join("gitconfig")
    }

    /// Writes what a credential helper answers, for this account alone.
    fn write_login(&self, username: &str, token: &str) -> std::io::Result<std::path::PathBuf> {
        let path = self.path().join("login");
        let mut file = std::fs::File::options().write(true).create_new(true).mode(0o600).open(&path)?;
        let answer = SecretText::new(format!("username={username}\npassword={token}\n"));
        file.write_all(answer.as_bytes())?;
        Ok(path)
    }
}

/// A command line that is being put together.
pub(super) struct Command {
    process: tokio::process::Command,
    configuration: Vec<(String, String)>,
    secret: Option<SecretText>,
    time_max: Duration,
    output_bytes_max: u64,
}

impl Command {
    pub(super) fn new(scratch: &Scratch, limits: &Limits) -> Self {
        let mut process = tokio::process::Command::new("/bin/sh");
        // The limit is set by a shell, because setting it here would set it for this whole process.
        let blocks = (limits.git_file_bytes_max / ULIMIT_BLOCK_BYTES).to_string();
        process.args(["-c", "ulimit -f \"$0\" && exec git \"$@\"", &blocks]);
        process.env_clear().envs(INHERITED.iter().filter_map(|name| Some((name, std::env::var_os(name)?))));
        process
            .env("HOME", scratch.path())
            .env("GIT_CONFIG_NOSYSTEM", "1")
            .env("GIT_CONFIG_SYSTEM", "/dev/null")
            .env("GIT_CONFIG_GLOBAL", scratch.configuration())
            .env("GIT_TERMINAL_PROMPT", "0")
            .env("GIT_ASKPASS", "")
            .env("GIT_ALLOW_PROTOCOL", "none")
            .env("LC_ALL", "C")
            .current_dir(scratch.path())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .process_group(0);
        let configuration = [
            ("http.followRedirects", "false"),
            ("http.lowSpeedLimit", "1000"),
            ("http.lowSpeedTime", "15"),
            ("core.hooksPath", "/dev/null"),
            ("core.askPass", ""),
            ("credential.helper", ""),
            ("gc.auto", "0"),
            ("maintenance.auto", "false"),
        ];
        Self {
            process,
            configuration: configuration.map(|(key, value)| (key.into(), value.into())).into(),
            secret: None,
            time_max: limits.git_timeout,
            output_bytes_max: limits.git_output_bytes_max,
        }
    }

    pub(super) fn args(&mut self, args: impl IntoIterator<Item = impl AsRef<OsStr>>) {
        self.process.args(args);
    }

    pub(super) fn env(&mut self, name: &str, value: &str) {
        self.process.env(name, value);
    }

    pub(super) fn use_password(
        &mut self,
        scratch: &Scratch,
        username: &str,
        token: &str,
    ) -> Result<(), GitError> {
        let login = scratch
            .write_login(username, token)
            .map_err(|_| GitError::Unavailable("the scratch directory cannot be written".into()))?;
        self.configure("credential.helper", CREDENTIAL_HELPER);
        self.process.env("PLUMBLINE_GIT_LOGIN_FILE", login);
        self.secret = Some(SecretText::new(token));
        Ok(())
    }

    /// Connects with this key to a host that shows one of these, at the first of its addresses, whatever the name
    /// means by then.
    pub(super) fn use_key(
        &mut self,
        scratch: &Scratch,
        private_key: &str,
        host_keys: &[String],
        addresses: &[IpAddr],
    ) -> Result<(), GitError> {
        let files = ssh::Files::write(scratch.path(), private_key, host_keys, addresses.first().copied())
            .map_err(|_| GitError::Unavailable("the scratch directory cannot be written".into()))?;
        self.env("GIT_SSH_COMMAND", &files.command());
        self.env("GIT_SSH_VARIANT", "ssh");
        Ok(())
    }

    /// Connects to these addresses and no others, whatever the name means by then.
    pub(super) fn pin_http(&mut self, host: &str, port: u16, addresses: &[IpAddr]) {
        if host.parse::<IpAddr>().is_ok() {
            return;
        }
        let addresses: Vec<String> = addresses
            .iter()
            .map(|address| match address {
                IpAddr::V4(v4) => v4.to_string(),
                IpAddr::V6(v6) => format!("[{v6}]"),
            })
            .collect();
        self.configure("http.curloptResolve", &format!("{host}:{port}:{}", addresses.join(",")));
    }

    /// Runs it and gives what it printed.
    pub(super) async fn run(mut self) -> Result<Vec<u8>, GitError> {
        self.process.env("GIT_CONFIG_COUNT", self.configuration.len().to_string());
        for (at, (key, value)) in self.configuration.iter().enumerate() {
            self.process
                .env(format!("GIT_CONFIG_KEY_{at}"), key)
                .env(format!("GIT_CONFIG_VALUE_{at}"), value);
        }
        let mut child = self
            .process
            .spawn()
            .map_err(|error| GitError::Unavailable(format!("git could not be started: {}", error.kind())))?;
        let mut group = ProcessGroup(child.id());
        let (stdout, stderr) = (child.stdout.take(), child.stderr.take());
        let work = async {
            let output = read_all(stdout, self.output_bytes_max);
            let errors = read_head(stderr);
            let (output, errors) = futures::future::try_join(output, errors).await?;
            let status = child.wait().await.map_err(|_| broken())?;
            Ok((status, output, errors))
        };
        let finished = tokio::time::timeout(self.time_max, work).await;
        let (status, output, errors) = finished.map_err(|_| {
            let seconds = self.time_max.as_secs();
            GitError::Unavailable(format!("the repository did not answer within {seconds} seconds"))
        })??;
        group.0 = None;
        if status.success() {
            return Ok(output);
        }
        Err(explain(&errors, self.secret.as_deref()))
    }

    fn configure(&mut self, key: &str, value: &str) {
        self.configuration.push((key.into(), value.into()));
    }
}

/// Kills Git and its helpers unless they have ended.
struct ProcessGroup(Option<u32>);

impl Drop for ProcessGroup {
    fn drop(&mut self) {
        if let Some(id) = self.0.and_then(|id| i32::try_from(id).ok()) {
            // Already gone is as good.
            let _ = killpg(Pid::from_raw(id), Signal::SIGKILL);
        }
    }
}

fn broken() -> GitError {
    GitError::Unavailable("git broke off".into())
}

async fn read_all(from: Option<impl AsyncRead + Unpin>, bytes_max: u64) -> Result<Vec<u8>, GitError> {
    let mut bytes = Vec::new();
    let Some(from) = from else { return Ok(bytes) };
    from.take(bytes_max + 1).read_to_end(&mut bytes).await.map_err(|_| broken())?;
    if bytes.len() as u64 > bytes_max {
        return Err(GitError::Refused("the repository has more branches or files than can be listed".into()));
    }
    Ok(bytes)
}

/// Keeps the beginning and reads the rest, so that the writer is never stopped.
async fn read_head(from: Option<impl AsyncRead + Unpin>) -> Result<Vec<u8>, GitError> {
    let mut bytes = Vec::new();
    let Some(mut from) = from else { return Ok(bytes) };
    (&mut from).take(ERROR_BYTES_MAX).read_to_end(&mut bytes).await.map_err(|_| broken())?;
    tokio::io::copy(&mut from, &mut tokio::io::sink()).await.map_err(|_| broken())?;
    Ok(bytes)
}

/// What Git's error output means.
fn explain(errors: &[u8], secret: Option<&str>) -> GitError {
    let text = masked(&String::from_utf8_lossy(errors), secret);
    let says = |needles: &[&str]| needles.iter().any(|needle| text.contains(needle));
    let refused = |sentence: &str| GitError::Refused(sentence.into());
    if says(&["Authentication failed", "could not read Username", "could not read Password", "error: 401"]) {
        refused("the repository refused the login, or needs one")
    } else if says(&["Host key verification failed", "REMOTE HOST IDENTIFICATION HAS CHANGED"]) {
        GitError::HostKey("the host shows a key that is not one of those that are pinned".into())
    } else if says(&["error: 403", "Permission denied"]) {
        refused("the repository refused access")
    } else if says(&["error: 301", "error: 302", "error: 307", "error: 308"]) {
        refused("the server redirects to another address: use the repository's exact address")
    } else if says(&["Remote branch", "couldn't find remote ref"]) {
        refused("the repository has no such branch or tag")
    } else if says(&["signal 25", "File size limit", "file too large"]) {
        refused("the repository is larger than can be looked at")
    } else if says(&["not found", "does not appear to be a git repository", "does not exist"]) {
        refused("there is no repository at this address, or it needs a login")
    } else {
        GitError::Unavailable(format!("git failed: {text}"))
    }
}

/// One line for people: without the secret, control characters, or more than they will read.
fn masked(errors: &str, secret: Option<&str>) -> String {
    let mut text = errors.to_owned();
    if let Some(secret) = secret.filter(|secret| !secret.is_empty()) {
        let encoded: String = url::form_urlencoded::byte_serialize(secret.as_bytes()).collect();
        text = text.replace(secret, "***").replace(&encoded, "***");
    }
    let lines = text.lines().filter(|line| !line.trim().is_empty() && !line.starts_with("Cloning into"));
    let line: String = lines.collect::<Vec<_>>().join("; ");
    line.chars().filter(|c| !c.is_control()).take(ERROR_CHARS_SHOWN).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn errors_hold_no_secret() {
        let shown = masked("fatal: https://u:s%2Bcret@host/ s+cret\u{1b}[31m\n\nmore", Some("s+cret"));
        assert_eq!(shown, "fatal: https://u:***@host/ ***[31m; more");
    }

    #[test]
    fn what_will_not_pass_by_itself_is_refused_for_good() {
        let cases = [
            "fatal: Authentication failed for 'https://host/'",
            "fatal: could not read Username for 'http://host': terminal prompts disabled",
            "fatal: unable to access 'http://host/': The requested URL returned error: 403",
            "fatal: unable to access 'http://host/': The requested URL returned error: 301",
            "fatal: Remote branch x not found in upstream origin",
            "fatal: repository 'http://host/x/' not found",
        ];
        for text in cases {
            assert!(matches!(explain(text.as_bytes(), None), GitError::Refused(_)), "{text}");
        }
        let broken = explain(b"fatal: the remote end hung up unexpectedly", None);
        assert!(matches!(broken, GitError::Unavailable(_)));
    }
}
