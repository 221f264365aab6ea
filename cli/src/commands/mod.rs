//! One file per feature, named as the feature is everywhere else.

pub mod admin;
pub mod api_keys;
pub mod approvals;
pub mod audit;
pub mod business_units;
pub mod completions;
pub mod config;
pub mod integrations;
pub mod runs;
pub mod sessions;
pub mod state_locks;
pub mod tasks;
pub mod tfstates;
pub mod workspaces;

use crate::app::App;
use crate::args::{Args, Command};
use crate::outcome::Outcome;

/// Runs one command.
pub async fn run(args: Args) -> anyhow::Result<Outcome> {
    let command = match args.command {
        Command::Completions(completions) => return completions::print(&completions),
        command => command,
    };
    let app = App::new(&args.global)?;
    match command {
        Command::Completions(completions) => completions::print(&completions),
        Command::Login(login) => sessions::login(&app, &login).await,
        Command::Logout => sessions::logout(&app).await,
        Command::Whoami => sessions::whoami(&app).await,
        Command::Workspace(command) => workspaces::run(&app, command).await,
        Command::Run(command) => runs::run(&app, command).await,
        Command::Approve(approve) => approvals::approve(&app, &approve).await,
        Command::Reject(reject) => approvals::reject(&app, &reject).await,
        Command::State(command) => tfstates::run(&app, command).await,
        Command::Lock(command) => state_locks::run(&app, command).await,
        Command::Audit(command) => audit::run(&app, command).await,
        Command::Tasks(command) => tasks::run(&app, command).await,
        Command::ApiKey(command) => api_keys::run(&app, command).await,
        Command::BusinessUnit(command) => business_units::run(&app, command).await,
        Command::Config(command) => config::run(&app, command).await,
        Command::Integration(command) => integrations::run(&app, command).await,
        Command::Admin(command) => admin::run(&app, command).await,
    }
}
