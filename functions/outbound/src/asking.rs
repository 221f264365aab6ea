//! How the services are asked whose credentials are tried.

use std::time::Duration;

use plumbline_core::Deps;
use plumbline_core::adapters::web::{self, Answer, Bounds, Question, WebError};
use serde::de::DeserializeOwned;

/// One call.
const TIMEOUT: Duration = Duration::from_secs(10);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 10;

/// Why credentials do not work: a sentence for people, which holds nothing of an answer but what was looked at.
pub(crate) struct Failed(pub(crate) String);

/// Asks, within bounds.
pub(crate) struct Asker {
    bounds: Bounds,
}

impl Asker {
    pub(crate) fn new(deps: &Deps) -> Self {
        let allow_private = deps.allow_private_addresses;
        Self { bounds: Bounds { allow_private, timeout: TIMEOUT, bytes_max: ANSWER_BYTES_MAX } }
    }

    /// That nobody answers is a result, too.
    pub(crate) async fn ask(&self, question: Question<'_>) -> Result<Answer, Failed> {
        Ok(web::ask(question, self.bounds).await?)
    }
}

impl From<WebError> for Failed {
    fn from(error: WebError) -> Self {
        Self(error.to_string())
    }
}

/// What a service says in JSON.
pub(crate) fn read<T: DeserializeOwned>(who: &str, answer: &Answer) -> Result<T, Failed> {
    serde_json::from_slice(&answer.body).map_err(|_| Failed(format!("what {who} answers cannot be read")))
}

/// A short word of somebody else, if it is nothing but a word.
pub(crate) fn word(text: &str) -> Option<&str> {
    let is_word = (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b"_-.".contains(&b));
    is_word.then_some(text)
}
