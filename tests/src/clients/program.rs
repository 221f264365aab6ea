//! The real clients: which are on this machine, and how one is started.

use std::path::{Path, PathBuf};
use std::process::{Output, Stdio};
use std::time::Duration;

use anyhow::{Context as _, bail};
use tokio::process::{Child, Command};

/// A client that hangs is a finding, and must not hang the matrix: no case takes longer.
const CALL_TIMEOUT: Duration = Duration::from_secs(120);

/// A client on this machine.
#[derive(Clone, Debug)]
pub struct Program {
    /// `terraform` or `tofu`.
    pub name: &'static str,
    /// As it calls itself.
    pub version: String,
    path: PathBuf,
}

/// The client of this name; `None` if the PATH has none that starts.
pub async fn find(name: &'static str) -> Option<Program> {
    let path = std::env::split_paths(&std::env::var_os("PATH")?)
        .map(|place| place.join(name))
        .find(|it| it.is_file())?;
    let output =
        Command::new(&path).args(["version", "-json"]).env("CHECKPOINT_DISABLE", "1").output().await.ok()?;
    let facts: serde_json::Value = serde_json::from_slice(&output.stdout).ok()?;
    let version = facts["terraform_version"].as_str()?.to_owned();
    Some(Program { name, version, path })
}

/// How a client is to be started.
pub(super) struct Start<'a> {
    pub arguments: &'a [String],
    pub directory: &'a Path,
    pub environment: Vec<(&'a str, String)>,
}

/// A client that runs.
pub(super) struct Running {
    child: Child,
}

/// How it ended.
pub(super) struct Ended {
    /// `None` if a signal ended it.
    pub code: Option<i32>,
    /// As it came.
    pub stdout: Vec<u8>,
    /// Both outputs in one line, without colours and frames.
    pub text: String,
}

impl Program {
    pub(super) fn start(&self, start: Start<'_>) -> anyhow::Result<Running> {
        let child = Command::new(&self.path)
            .args(start.arguments)
            .current_dir(start.directory)
            // Settings of whoever runs the matrix must not decide what it finds.
            .env_clear()
            .env("PATH", std::env::var_os("PATH").unwrap_or_default())
            .env("HOME", start.directory)
            .env("TF_IN_AUTOMATION", "1")
            .env("CHECKPOINT_DISABLE", "1")
            .envs(start.environment)
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("{} cannot be started", self.path.display()))?;
        Ok(Running { child })
    }
}

impl Running {
    pub(super) fn id(&self) -> anyhow::Result<i32> {
        Ok(i32::try_from(self.child.id().context("it has ended")?)?)
    }

    pub(super) async fn end(self) -> anyhow::Result<Ended> {
        let Ok(output) = tokio::time::timeout(CALL_TIMEOUT, self.child.wait_with_output()).await else {
            bail!("it did not end within {} s", CALL_TIMEOUT.as_secs());
        };
        let output: Output = output?;
        let both = [output.stdout.as_slice(), output.stderr.as_slice()].concat();
        Ok(Ended {
            code: output.status.code(),
            stdout: output.stdout,
            text: plain(&String::from_utf8_lossy(&both)),
        })
    }
}

/// Without colours, frames and line breaks, which depend on widths.
fn plain(text: &str) -> String {
    let mut bare = String::with_capacity(text.len());
    let mut parts = text.split('\u{1b}');
    bare.push_str(parts.next().unwrap_or_default());
    for part in parts {
        bare.push_str(part.split_once('m').map_or(part, |(_, rest)| rest));
    }
    let words = bare.split(|letter: char| letter.is_whitespace() || "│╷╵".contains(letter));
    words.filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_client_prints_is_read_without_colours_frames_and_line_breaks() {
        assert_eq!(
            plain("\u{1b}[31m╷\u{1b}[0m\n│ \u{1b}[1mError: \u{1b}[0mstate\n│ is locked"),
            "Error: state is locked"
        );
    }
}
