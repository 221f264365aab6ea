//! Errors as one sentence and what to do next, on stderr.

use std::io::IsTerminal as _;
use std::process::ExitCode;

use crate::api::ApiError;

/// The command line asked for something that makes no sense here: exit code 2, as clap's own errors.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Usage(pub String);

impl Usage {
    /// As an error of a command.
    pub fn error(text: impl Into<String>) -> anyhow::Error {
        Self(text.into()).into()
    }
}

/// Prints an error; gives the exit code for it.
pub fn report(error: &anyhow::Error, no_color: bool) -> ExitCode {
    if is_broken_pipe(error) {
        // The reader (head, less) has seen enough.
        return ExitCode::SUCCESS;
    }
    let color = !no_color && std::env::var_os("NO_COLOR").is_none() && std::io::stderr().is_terminal();
    let word = if color { "\u{1b}[31merror:\u{1b}[0m" } else { "error:" };
    eprintln!("{word} {}", sentence(error));
    if let Some(api) = error.downcast_ref::<ApiError>() {
        for fact in api.facts() {
            eprintln!("  {fact}");
        }
        let next = api.next_step();
        if !next.is_empty() {
            eprintln!("{next}");
        }
    }
    if error.is::<Usage>() { ExitCode::from(2) } else { ExitCode::FAILURE }
}

fn sentence(error: &anyhow::Error) -> String {
    let causes: Vec<String> = error.chain().map(ToString::to_string).collect();
    crate::output::clean(&causes.join(": "))
}

fn is_broken_pipe(error: &anyhow::Error) -> bool {
    error.chain().any(|cause| {
        cause.downcast_ref::<std::io::Error>().is_some_and(|io| io.kind() == std::io::ErrorKind::BrokenPipe)
    })
}
