//! What a command line must say of itself, and how long things are good.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use chrono::{DateTime, TimeDelta, Utc};
use subtle::ConstantTimeEq as _;

use crate::digest::Sha256Digest;

/// How long somebody may take at the provider.
pub const COOKIE_AGE: Duration = Duration::from_secs(10 * 60);
/// How long a one-time code is good.
pub(super) const CODE_AGE: Duration = Duration::from_secs(60);
/// Ports below belong to the system's own services; no program of a person listens there.
pub const CLI_PORT_MIN: u16 = 1024;
/// Digits of the highest port.
const PORT_DIGITS_MAX: usize = 5;

/// A command line that waits for its answer on the machine where the browser runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cli {
    /// Where it listens on 127.0.0.1. The host is never anybody's to choose.
    pub port: u16,
    /// SHA-256 of the secret that only it has.
    pub challenge: Sha256Digest,
}

/// What is wrong with what a command line says of itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum CliError {
    /// One without the other.
    #[error("cli_port and cli_nonce must be sent together, each once")]
    Half,
    /// No port of a person's program.
    #[error("cli_port must be a number from 1024 to 65535")]
    Port,
    /// No digest.
    #[error("cli_nonce must be a SHA-256 digest in base64url: 43 characters")]
    Nonce,
}

impl Cli {
    /// Reads both parameters; `None` if neither is there.
    pub fn parse(port: Option<&str>, nonce: Option<&str>) -> Result<Option<Self>, CliError> {
        let (port, nonce) = match (port, nonce) {
            (None, None) => return Ok(None),
            (Some(port), Some(nonce)) => (port, nonce),
            _ => return Err(CliError::Half),
        };
        let is_number = port.len() <= PORT_DIGITS_MAX && port.bytes().all(|b| b.is_ascii_digit());
        let port: u16 = if is_number { port.parse().map_err(|_| CliError::Port)? } else { 0 };
        if port < CLI_PORT_MIN {
            return Err(CliError::Port);
        }
        let digest = URL_SAFE_NO_PAD.decode(nonce).ok().and_then(|bytes| Sha256Digest::from_slice(&bytes));
        Ok(Some(Self { port, challenge: digest.ok_or(CliError::Nonce)? }))
    }

    /// What it sent, to be echoed: it sees by that that the answer is its own.
    pub fn nonce(&self) -> String {
        URL_SAFE_NO_PAD.encode(self.challenge.0)
    }

    /// Where its answer goes.
    pub fn callback(&self, field: &str, value: &str) -> String {
        format!("http://127.0.0.1:{}/callback?{field}={value}&nonce={}", self.port, self.nonce())
    }
}

/// Whether what began then is too old now.
pub fn is_over(began: DateTime<Utc>, now: DateTime<Utc>, age: Duration) -> bool {
    let lived = now - began;
    lived < TimeDelta::zero() || lived > TimeDelta::from_std(age).unwrap_or(TimeDelta::MAX)
}

/// A one-time code as it is stored.
#[derive(Clone, Copy, Debug)]
pub(super) struct CodeFacts {
    pub challenge: Option<Sha256Digest>,
    pub expired: bool,
    pub traded: bool,
}

/// What a genuine code leads to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum CodeVerdict {
    /// A session.
    Trade,
    /// It was traded before: whoever has it now or had it then is not who was meant.
    Reused,
    /// Its time is over.
    Expired,
    /// It was made for a command line that is not the one that has it, or for none.
    OtherProgram,
}

/// Judges a code, given the secret that came with it.
pub(super) fn judge_code(code: CodeFacts, secret: Option<&str>) -> CodeVerdict {
    let fits = match (code.challenge, secret) {
        (None, None) => true,
        (Some(challenge), Some(secret)) => Sha256Digest::of(secret.as_bytes()).0.ct_eq(&challenge.0).into(),
        _ => false,
    };
    // First: a stranger with a used code must not end the session of a program whose secret they lack.
    if !fits {
        CodeVerdict::OtherProgram
    } else if code.traded {
        CodeVerdict::Reused
    } else if code.expired {
        CodeVerdict::Expired
    } else {
        CodeVerdict::Trade
    }
}
