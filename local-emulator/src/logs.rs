//! The emulator's log: for people by default, JSON for programs.

use std::io::IsTerminal as _;

use clap::ValueEnum;
use tracing_subscriber::EnvFilter;

/// How the log is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(crate) enum Format {
    /// Lines for people, coloured on a terminal.
    Text,
    /// One JSON object a line.
    Json,
}

/// Logs to standard error, filtered by `PLUMBLINE_LOG`.
pub(crate) fn init(format: Format, default_filter: &str) {
    let filter = EnvFilter::try_from_env("PLUMBLINE_LOG").unwrap_or_else(|_| default_filter.into());
    let builder = tracing_subscriber::fmt().with_env_filter(filter).with_writer(std::io::stderr);
    match format {
        Format::Text => builder.with_ansi(std::io::stderr().is_terminal()).with_target(false).init(),
        Format::Json => builder.json().init(),
    }
}
