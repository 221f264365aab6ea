//! `plumb`: changes infrastructure through Plumbline from a terminal or a script.
//!
//! It speaks only the public HTTP API, and only the calls declared in [`api::routes`]. What it prints to stdout is the
//! answer (a table, or with `--json` exactly the API's document); everything else, progress included, goes to stderr.
//! Tokens are never printed.

pub mod api;
pub mod app;
pub mod args;
pub mod commands;
pub mod config;
pub mod failure;
pub mod loopback;
pub mod outcome;
pub mod output;
pub mod session;

use std::process::ExitCode;

use clap::Parser;

/// The whole program: parses the arguments, runs one command, says how it went.
pub fn main() -> ExitCode {
    // An error here means that a provider is installed already, which serves as well.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let args = args::Args::parse();
    let runtime = match tokio::runtime::Builder::new_current_thread().enable_all().build() {
        Ok(runtime) => runtime,
        Err(error) => return failure::report(&error.into(), args.global.no_color),
    };
    let no_color = args.global.no_color;
    let result = runtime.block_on(Box::pin(commands::run(args)));
    // A prompt or a blocked read of stdin must not keep a finished command alive.
    runtime.shutdown_background();
    match result {
        Ok(outcome) => outcome.exit_code(),
        Err(error) => failure::report(&error, no_color),
    }
}
