//! Completion scripts.

use clap::{Args, CommandFactory as _};
use clap_complete::Shell;

use crate::outcome::Outcome;

/// `plumb completions SHELL`
#[derive(Debug, Args)]
#[command(after_help = "Examples:
  plumb completions bash > ~/.local/share/bash-completion/completions/plumb
  plumb completions zsh > \"${fpath[1]}/_plumb\"")]
pub struct CompletionsArgs {
    /// Your shell.
    shell: Shell,
}

/// Prints the script to stdout.
pub fn print(args: &CompletionsArgs) -> anyhow::Result<Outcome> {
    let mut script = Vec::new();
    clap_complete::generate(args.shell, &mut crate::args::Args::command(), "plumb", &mut script);
    std::io::Write::write_all(&mut std::io::stdout().lock(), &script)?;
    Ok(Outcome::Done)
}
