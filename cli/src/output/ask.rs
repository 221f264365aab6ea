//! Questions to the person at the terminal, and secrets from stdin.

use std::io::{BufRead as _, IsTerminal as _, Write as _};

use crate::failure::Usage;

const SECRET_BYTES_MAX: usize = 4096;

/// Asks for a `yes`. Without a terminal there is nobody to ask, so `flag` is needed.
pub async fn confirm(question: &str, flag: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        return Err(Usage::error(format!(
            "{question} There is no terminal to answer at; pass {flag} to say yes"
        )));
    }
    let question = format!("{question} Type yes to go on: ");
    let answer = tokio::task::spawn_blocking(move || {
        eprint!("{question}");
        std::io::stderr().flush()?;
        let mut answer = String::new();
        std::io::stdin().lock().read_line(&mut answer)?;
        Ok::<_, std::io::Error>(answer)
    });
    Ok(answer.await??.trim().eq_ignore_ascii_case("yes"))
}

/// A secret from stdin: its first line, without the newline.
pub fn read_secret_line(what: &str) -> anyhow::Result<String> {
    let mut secret = String::new();
    std::io::stdin().lock().read_line(&mut secret)?;
    let secret = secret.trim_end_matches(['\r', '\n']);
    if secret.is_empty() || secret.len() > SECRET_BYTES_MAX {
        return Err(Usage::error(format!("stdin did not hold a {what} on its first line")));
    }
    Ok(secret.into())
}
