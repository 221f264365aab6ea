//! `plumbline-emulator`.

use std::ffi::OsString;
use std::path::PathBuf;
use std::process::ExitCode;

use clap::{Parser, Subcommand, ValueEnum};

/// Plumbline on one machine.
#[derive(Debug, Parser)]
#[command(version)]
struct Arguments {
    #[command(subcommand)]
    command: Verb,
}

#[derive(Debug, Subcommand)]
enum Verb {
    /// Runs a command with a scratch Postgres cluster, whose URL stands in PLUMBLINE_TEST_DATABASE_URL.
    WithPostgres {
        /// `on` for measurements that must survive a crash of the machine.
        #[arg(long, value_enum, default_value = "off")]
        fsync: Switch,
        /// Where downloaded programs are kept.
        #[arg(long, default_value = ".cache/postgres")]
        cache: PathBuf,
        /// The command and its arguments.
        #[arg(last = true, required = true)]
        command: Vec<OsString>,
    },
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

#[tokio::main]
async fn main() -> ExitCode {
    tracing_subscriber::fmt()
        .with_env_filter(
            tracing_subscriber::EnvFilter::try_from_env("PLUMBLINE_LOG").unwrap_or_else(|_| "info".into()),
        )
        .with_writer(std::io::stderr)
        .init();
    match run(Arguments::parse().command).await {
        Ok(code) => ExitCode::from(code),
        Err(error) => {
            tracing::error!("{error:#}");
            ExitCode::FAILURE
        }
    }
}

async fn run(verb: Verb) -> anyhow::Result<u8> {
    match verb {
        Verb::WithPostgres { fsync, cache, command } => {
            plumbline_emulator::with_postgres(&command, cache, fsync == Switch::On).await
        }
    }
}
