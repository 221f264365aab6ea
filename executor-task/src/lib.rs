//! Runs one attempt of a run: trades its ticket, then plans or applies with the real terraform.
//!
//! Two parties: the *supervisor* (this process; holds the run's token in memory, undumpable) and the *child*
//! (terraform and whatever it starts; untrusted). Invariants:
//!
//! - The child never gets the run's token: its state goes through a loopback proxy with a password of its own.
//! - Nor does it get what leads to the credentials of this task's role, with which it could be this executor.
//! - In a plan the proxy serves one pinned state and refuses every write.
//! - When a step ends, every process of the child is gone before the supervisor looks at what it left.
//! - The plan is hashed and its JSON derived after the child is gone, from a copy that the child cannot write.
//! - An outage of `callback` never stops an apply: logs and state are kept on disk and sent again.

mod apply;
mod apply_log;
mod askpass;
mod backend;
mod callback;
mod child;
mod configuration;
mod credentials;
mod error;
mod files;
mod git;
mod git_access;
mod identity;
mod identity_tokens;
mod isolation;
mod keeper;
mod log_redaction;
mod logs;
mod plan;
mod processes;
mod provider_mirror;
mod session;
mod settings;
mod supervisor;
mod terraform;
mod tools;
mod touched;
mod uploads;
mod variables;

use std::process::ExitCode;

use tracing_subscriber::EnvFilter;

/// Everything the program does. It runs itself again as git's password helper and as the keeper of its programs.
pub fn main() -> ExitCode {
    let args: Vec<_> = std::env::args_os().skip(1).collect();
    if args.first().is_some_and(|mode| mode == keeper::MODE) {
        return keeper::keep(&args[1..]);
    }
    if let Some(file) = std::env::var_os(askpass::FILE_VARIABLE) {
        return askpass::answer(file.as_ref());
    }
    isolation::harden_supervisor();
    tracing_subscriber::fmt()
        .with_env_filter(EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new("info")))
        .with_writer(std::io::stderr)
        .init();
    let settings = match settings::Settings::from_environment() {
        Ok(settings) => settings,
        Err(error) => {
            tracing::error!(%error, "the executor cannot start");
            return ExitCode::from(2);
        }
    };
    isolation::forget_secrets();
    // The provider can only be installed once; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build();
    match runtime {
        Ok(runtime) => runtime.block_on(supervisor::run(settings)).into(),
        Err(error) => {
            tracing::error!(%error, "the executor cannot start");
            ExitCode::from(2)
        }
    }
}
