//! Arguments of several kinds of accounts.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::{Map, Value};

use crate::failure::Usage;
use crate::output::read_secret_line;

/// Longest secret file, in bytes.
const FILE_BYTES_MAX: u64 = 256 << 10;

/// A secret of one line. Never an argument: others see those.
#[derive(Debug, Args)]
pub(super) struct SecretSource {
    /// Read the secret from the first line of stdin.
    #[arg(long, conflicts_with = "secret_file")]
    secret_stdin: bool,
    /// Read the secret from the first line of a file.
    #[arg(long, value_name = "FILE")]
    secret_file: Option<PathBuf>,
}

impl SecretSource {
    /// `None` if none was named.
    pub(super) fn read(&self, what: &str) -> anyhow::Result<Option<String>> {
        if self.secret_stdin {
            return read_secret_line(what).map(Some);
        }
        let Some(path) = &self.secret_file else { return Ok(None) };
        let text = read_file(path)?;
        let secret = text.lines().next().unwrap_or_default();
        if secret.is_empty() {
            return Err(Usage::error(format!("{} holds no {what} on its first line", path.display())));
        }
        Ok(Some(secret.into()))
    }
}

/// A secret that is a whole file; `-` is stdin.
pub(super) fn read_file(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let failed = || format!("cannot read {}", path.display());
    if path == Path::new("-") {
        std::io::stdin()
            .lock()
            .take(FILE_BYTES_MAX)
            .read_to_string(&mut text)
            .context("cannot read stdin")?;
    } else {
        let file = std::fs::File::open(path).with_context(failed)?;
        file.take(FILE_BYTES_MAX).read_to_string(&mut text).with_context(failed)?;
    }
    Ok(text)
}

/// Fields for the API. `none` clears one.
#[derive(Debug, Default)]
pub(super) struct Named(Map<String, Value>);

impl Named {
    /// A field that was given, or not.
    pub(super) fn text(mut self, name: &str, value: Option<String>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value.into())));
        self
    }

    /// A field that may be cleared with the word `none`.
    pub(super) fn clearable(mut self, name: &str, value: Option<String>) -> Self {
        let value = value.map(|value| if value == "none" { Value::Null } else { value.into() });
        self.0.extend(value.map(|value| (name.to_owned(), value)));
        self
    }

    /// Any other field.
    pub(super) fn value(mut self, name: &str, value: Option<Value>) -> Self {
        self.0.extend(value.map(|value| (name.to_owned(), value)));
        self
    }

    /// All of them; an edit needs at least one.
    pub(super) fn into_body(self) -> anyhow::Result<Value> {
        if self.0.is_empty() {
            return Err(Usage::error("nothing to change: name at least one field, see --help"));
        }
        Ok(self.0.into())
    }
}
