//! One file per feature, named as the feature is everywhere else.

pub mod admin;
pub mod api_keys;
pub mod approvals;
pub mod audit;
pub mod backends;
pub mod business_units;
pub mod ci_logins;
pub mod cloud_accounts;
pub mod completions;
pub mod config;
pub mod git_credentials;
pub mod integrations;
pub mod issuer_keys;
pub mod logins;
pub mod passwords;
pub mod rekeys;
mod resources;
pub mod runs;
pub mod sessions;
pub mod state_locks;
pub mod tasks;
pub mod terraform;
pub mod tfstates;
pub mod trials;
pub mod users;
pub mod variable_sets;
pub mod variables;
pub mod workspaces;

use crate::app::App;
use crate::args::{Args, Command};
use crate::outcome::Outcome;

/// Runs one command.
pub async fn run(args: Args) -> anyhow::Result<Outcome> {
    let command = match args.command {
        Command::Completions(completions) => return completions::print(&completions),
        Command::Audit(audit::AuditCommand::Verify(audit::VerifyArgs { file: Some(file), public_key })) => {
            return audit::verify_file(&args.global, &file, &public_key);
        }
        command => command,
    };
    let app = App::new(&args.global)?;
    match command {
        Command::Completions(completions) => completions::print(&completions),
        Command::Login(login) => logins::login(&app, &login).await,
        Command::Logout(logout) => sessions::logout(&app, &logout).await,
        Command::Whoami => sessions::whoami(&app).await,
        Command::Password(password) => passwords::change(&app, &password).await,
        Command::AcceptInvite(accept) => passwords::accept_invite(&app, &accept).await,
        Command::Session(command) => sessions::run(&app, command).await,
        Command::Workspace(command) => workspaces::run(&app, command).await,
        Command::Var(command) => variables::run(&app, command).await,
        Command::VariableSet(command) => variable_sets::run(&app, command).await,
        Command::Run(command) => runs::run(&app, command).await,
        Command::Approve(approve) => approvals::approve(&app, &approve).await,
        Command::Reject(reject) => approvals::reject(&app, &reject).await,
        Command::State(command) => tfstates::run(&app, command).await,
        Command::Lock(command) => state_locks::run(&app, command).await,
        Command::Tf(args) => terraform::run(&app, args).await,
        Command::BackendConfig(args) => backends::print(&app, args).await,
        Command::Audit(command) => audit::run(&app, command).await,
        Command::Tasks(command) => tasks::run(&app, command).await,
        Command::GitCredential(command) => git_credentials::run(&app, command).await,
        Command::ApiKey(command) => api_keys::run(&app, command).await,
        Command::CiTrust(command) => ci_logins::run(&app, command).await,
        Command::BusinessUnit(command) => business_units::run(&app, command).await,
        Command::User(command) => users::run(&app, command).await,
        Command::Config(command) => config::run(&app, command).await,
        Command::Integration(command) => integrations::run(&app, command).await,
        Command::Admin(command) => admin::run(&app, command).await,
        Command::Account(command) => cloud_accounts::run(&app, command).await,
        Command::Cluster(command) => cloud_accounts::run_cluster(&app, command).await,
    }
}
