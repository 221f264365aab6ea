//! How a Git credential reaches git: git runs this program again and asks, and we answer from a private file.
//!
//! So the credential is in no argv, URL, environment or log. It is given only for the host that it belongs to, so a
//! repository that redirects elsewhere learns nothing.

use std::io::Write as _;
use std::path::Path;
use std::process::ExitCode;

use serde::{Deserialize, Serialize};

/// Names the private file; its presence turns the program into the password helper.
pub(crate) const FILE_VARIABLE: &str = "PLUMBLINE_ASKPASS_FILE";

/// What the private file says.
#[derive(Serialize, Deserialize)]
pub(crate) struct Answer {
    /// `host` or `host:port` that may ask.
    pub(crate) host: String,
    /// User name.
    pub(crate) username: String,
    /// Password.
    pub(crate) password: String,
}

/// Answers git's question, which is the only argument.
pub(crate) fn answer(file: &Path) -> ExitCode {
    let question = std::env::args().nth(1).unwrap_or_default();
    let answer = std::fs::read(file).ok().and_then(|text| serde_json::from_slice::<Answer>(&text).ok());
    let Some(line) = answer.and_then(|answer| reply(&question, &answer)) else { return ExitCode::FAILURE };
    match writeln!(std::io::stdout(), "{line}") {
        Ok(()) => ExitCode::SUCCESS,
        Err(_) => ExitCode::FAILURE,
    }
}

/// `None` if another host asks. Questions look like `Password for 'https://user@host': `.
fn reply(question: &str, answer: &Answer) -> Option<String> {
    let address = question.split('\'').nth(1)?;
    let authority = address.split_once("://")?.1.split('/').next()?;
    let host = authority.rsplit('@').next()?;
    if host != answer.host {
        return None;
    }
    if question.starts_with("Username") {
        Some(answer.username.clone())
    } else if question.starts_with("Password") {
        Some(answer.password.clone())
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_the_right_host_gets_the_credential() {
        let answer = Answer { host: "git.example:8443".into(), username: "u".into(), password: "p".into() };
        assert_eq!(reply("Username for 'https://git.example:8443': ", &answer).as_deref(), Some("u"));
        assert_eq!(reply("Password for 'https://u@git.example:8443': ", &answer).as_deref(), Some("p"));
        assert_eq!(reply("Password for 'https://u@elsewhere.example': ", &answer), None);
        assert_eq!(reply("Passphrase for key 'x': ", &answer), None);
    }
}
