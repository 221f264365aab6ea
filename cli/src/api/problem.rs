//! What the server or the way to it can answer instead of what was asked, as sentences for a tired person.

use std::time::Duration;

use serde::Deserialize;
use serde_json::{Map, Value};

/// A problem document (RFC 9457).
#[derive(Clone, Debug, Default, Deserialize)]
pub struct Problem {
    /// `urn:plumbline:problem:<slug>`.
    #[serde(default, rename = "type")]
    pub kind: String,
    /// A short sentence about this kind of problem.
    #[serde(default)]
    pub title: String,
    /// The HTTP status.
    #[serde(default)]
    pub status: u16,
    /// What is the matter this time.
    #[serde(default)]
    pub detail: String,
    /// Facts for programs.
    #[serde(flatten)]
    pub facts: Map<String, Value>,
}

impl Problem {
    /// The last part of its type.
    pub fn slug(&self) -> &str {
        self.kind.rsplit(':').next().unwrap_or_default()
    }

    fn sentence(&self) -> String {
        match (self.detail.trim(), self.title.trim()) {
            ("", "") => format!("the server answered {}", self.status),
            ("", title) => title.to_owned(),
            (detail, _) => detail.to_owned(),
        }
    }

    fn next_step(&self) -> &'static str {
        match (self.slug(), self.status) {
            ("unit-required", _) => {
                "Name one business unit: --business-unit SLUG, or set PLUMB_BUSINESS_UNIT."
            }
            ("stale-plan", _) => {
                "The state moved since this plan was made. Plan again: plumb run apply WORKSPACE"
            }
            ("workspace-blocked", _) => {
                "Look at why: plumb workspace show WORKSPACE; once resolved: plumb workspace unblock WORKSPACE --note TEXT"
            }
            ("workspace-locked", _) => {
                "Ask whoever holds it, or an admin, to unlock it: plumb workspace unlock WORKSPACE"
            }
            ("digest-mismatch", _) => {
                "Another plan took the place of the one you saw. Look again: plumb run show RUN"
            }
            ("state-too-large", _) => {
                "Work through `plumb tf WORKSPACE -- apply` or `plumb state push`: they send states of any size."
            }
            ("plan-expired", _) => "Plan again: plumb run apply WORKSPACE",
            ("too-many-waiting", _) => {
                "See what waits: plumb run list --status pending; stop one: plumb run cancel RUN"
            }
            ("wrong-credentials", _) => "",
            (_, 401) => "Sign in: plumb login",
            (_, 403) => "See which roles you have: plumb whoami. Another unit: --business-unit SLUG",
            (_, 404) => "Check the id. Things of other business units are not visible: --business-unit SLUG",
            (_, 409) => "Look at it as it is now (show), then decide again.",
            (_, 412) => {
                "Somebody changed it in the meantime. Run the command again to work on the new version."
            }
            (_, 413) => "Send less in one request.",
            (_, 429) => "Too many requests; wait a moment, then try again.",
            (_, 503) => "This passes by itself; try again in a moment.",
            (_, 500..) => "The server's log has the cause; give its operator the time of this error.",
            (_, 400 | 405 | 415 | 422) => "Compare what you passed with the command's --help.",
            _ => "",
        }
    }
}

/// Why a call gave no answer to work with.
#[derive(Debug, thiserror::Error)]
pub enum ApiError {
    /// The server refused.
    #[error("{}", .0.sentence())]
    Problem(Box<Problem>),
    /// Nothing came back.
    #[error("{server} cannot be reached: {cause}")]
    Unreachable {
        /// The server's address.
        server: String,
        /// In words, without the address.
        cause: String,
    },
    /// The session is over, or there never was one.
    #[error("you are not signed in at {server}")]
    SignedOut {
        /// The server's address.
        server: String,
    },
    /// Something answered that is not a Plumbline server.
    #[error("{server} answered {status}, and not as a Plumbline server does")]
    NotPlumbline {
        /// The server's address.
        server: String,
        /// The HTTP status.
        status: u16,
    },
    /// A redirect that would give up encryption, or leads nowhere.
    #[error("{server} redirected the download to an address that plumb does not follow")]
    BadRedirect {
        /// The server's address.
        server: String,
    },
}

impl ApiError {
    /// What to do next; empty if nothing helps.
    pub fn next_step(&self) -> String {
        match self {
            Self::Problem(problem) => problem.next_step().into(),
            Self::Unreachable { server, .. } => format!(
                "Is the server running, and is {server} its address (--server, PLUMB_SERVER)? \
                 Behind a proxy, check HTTPS_PROXY and NO_PROXY."
            ),
            Self::SignedOut { server } => format!("Sign in: plumb login --server {server}"),
            Self::NotPlumbline { .. } => "Check the address: --server URL or PLUMB_SERVER.".into(),
            Self::BadRedirect { .. } => {
                "The server's public address may be configured without TLS; tell its operator.".into()
            }
        }
    }

    /// Facts of a problem document that a person can use, as `name: value`.
    pub fn facts(&self) -> Vec<String> {
        let Self::Problem(problem) = self else { return Vec::new() };
        problem
            .facts
            .iter()
            .filter(|(name, _)| name.as_str() != "instance")
            .filter_map(|(name, value)| match value {
                Value::String(text) => Some(format!("{name}: {text}")),
                Value::Null => None,
                Value::Object(_) | Value::Array(_) | Value::Bool(_) | Value::Number(_) => {
                    Some(format!("{name}: {value}"))
                }
            })
            .collect()
    }

    /// Of a request that got no answer. The address is left out of the cause: it may carry a signature.
    pub(super) fn unreachable(server: &str, error: &reqwest::Error) -> Self {
        let mut cause: &dyn std::error::Error = error;
        while let Some(source) = cause.source() {
            cause = source;
        }
        let words = if error.is_timeout() { "it did not answer in time".into() } else { cause.to_string() };
        Self::Unreachable { server: server.into(), cause: words }
    }

    /// Of an answer that is not a success.
    pub(super) async fn of(server: &str, response: reqwest::Response) -> Self {
        let status = response.status().as_u16();
        let body = response.text().await.unwrap_or_default();
        match serde_json::from_str::<Problem>(&body) {
            Ok(mut problem) if !problem.kind.is_empty() || !problem.title.is_empty() => {
                problem.status = status;
                Self::Problem(Box::new(problem))
            }
            // A gateway before the server may answer these by itself.
            _ if matches!(status, 429 | 502..=504) => {
                Self::Problem(Box::new(Problem { status, ..Problem::default() }))
            }
            _ => Self::NotPlumbline { server: server.into(), status },
        }
    }
}

/// What `Retry-After` asks for, if it is a number of seconds.
pub(super) fn retry_after(response: &reqwest::Response) -> Option<Duration> {
    let value = response.headers().get(reqwest::header::RETRY_AFTER)?;
    value.to_str().ok()?.trim().parse().ok().map(Duration::from_secs)
}
