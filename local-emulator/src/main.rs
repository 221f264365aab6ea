//! `plumbline-emulator`: Plumbline on one machine.

mod commands;
mod logs;

use std::process::ExitCode;

use clap::Parser as _;

#[tokio::main]
async fn main() -> ExitCode {
    match commands::run(commands::Arguments::parse()).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}
