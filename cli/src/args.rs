//! The command line's definition: global flags and the tree of commands.

use clap::{Args as ClapArgs, Parser, Subcommand};

use crate::api::Server;
use crate::commands::admin::AdminCommand;
use crate::commands::api_keys::ApiKeyCommand;
use crate::commands::approvals::{ApproveArgs, RejectArgs};
use crate::commands::audit::AuditCommand;
use crate::commands::backends::BackendConfigArgs;
use crate::commands::business_units::BusinessUnitCommand;
use crate::commands::ci_logins::CiTrustCommand;
use crate::commands::cloud_accounts::{AccountCommand, ClusterCommand};
use crate::commands::completions::CompletionsArgs;
use crate::commands::config::ConfigCommand;
use crate::commands::git_credentials::GitCredentialCommand;
use crate::commands::integrations::IntegrationCommand;
use crate::commands::logins::LoginArgs;
use crate::commands::passwords::{AcceptInviteArgs, PasswordArgs};
use crate::commands::runs::RunCommand;
use crate::commands::sessions::{LogoutArgs, SessionCommand};
use crate::commands::state_locks::LockCommand;
use crate::commands::tasks::TaskCommand;
use crate::commands::terraform::TerraformArgs;
use crate::commands::tfstates::StateCommand;
use crate::commands::users::UserCommand;
use crate::commands::variable_sets::VariableSetCommand;
use crate::commands::variables::VariableCommand;
use crate::commands::workspaces::WorkspaceCommand;

const EXAMPLES: &str = "\
Examples:
  plumb login --server https://plumbline.example.com
  plumb workspace import https://git.example.com/infra.git
  plumb run apply web-prod             plan, then wait for approval (exit code 3)
  plumb approve RUN                    shows the plan, asks, applies
  plumb run logs RUN --follow
  plumb tf web-prod -- plan            your own terraform, on the workspace's state
  plumb workspace list --json | jq -r '.items[].name'

Exit codes: 0 done, 1 failed, 2 wrong usage, 3 a run waits for approval, 130 you pressed Ctrl-C.";

/// Change infrastructure through a gate: plan, look, approve, apply.
#[derive(Debug, Parser)]
#[command(name = "plumb", version, after_help = EXAMPLES, max_term_width = 100)]
pub struct Args {
    #[command(flatten)]
    pub global: GlobalArgs,
    #[command(subcommand)]
    pub command: Command,
}

/// Flags that every command takes.
#[derive(Clone, Debug, ClapArgs)]
#[command(next_help_heading = "Everywhere")]
pub struct GlobalArgs {
    /// The server's address; without it, the one you signed in to last.
    #[arg(long, global = true, env = "PLUMB_SERVER", value_name = "URL")]
    pub server: Option<Server>,
    /// The business unit to work in (its slug), or `all` for superadmins who look around.
    #[arg(long, global = true, env = "PLUMB_BUSINESS_UNIT", value_name = "SLUG")]
    pub business_unit: Option<String>,
    /// Print the API's JSON document instead of a table.
    #[arg(long, global = true)]
    pub json: bool,
    /// No colours (as NO_COLOR in the environment).
    #[arg(long, global = true)]
    pub no_color: bool,
    /// No progress and no hints on stderr, errors only.
    #[arg(long, short, global = true)]
    pub quiet: bool,
}

/// What to do. Adding one: `docs/guides/add-a-cli-command.md`.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// Sign in; the session is kept in a file that only you can read.
    Login(LoginArgs),
    /// End the session, here and at the server.
    Logout(LogoutArgs),
    /// Who you are and what you may do where.
    Whoami,
    /// Change your password.
    Password(PasswordArgs),
    /// Set your first password with the token of an invitation.
    AcceptInvite(AcceptInviteArgs),
    /// Your sessions: where you are signed in.
    #[command(subcommand)]
    Session(SessionCommand),
    /// Workspaces: one Terraform directory in one place.
    #[command(subcommand, visible_alias = "ws")]
    Workspace(WorkspaceCommand),
    /// Terraform variables of the business unit, of variable sets and of workspaces.
    #[command(subcommand, visible_alias = "variable")]
    Var(VariableCommand),
    /// Variable sets: named variables for some workspaces, or for all.
    #[command(subcommand)]
    VariableSet(VariableSetCommand),
    /// Runs: plan, apply, destroy, and what became of them.
    #[command(subcommand)]
    Run(RunCommand),
    /// Look at a run's plan and let it apply.
    Approve(ApproveArgs),
    /// Turn a run's plan down.
    Reject(RejectArgs),
    /// Terraform state: versions, differences, rollback, quarantine.
    #[command(subcommand)]
    State(StateCommand),
    /// The state's lock.
    #[command(subcommand)]
    Lock(LockCommand),
    /// Run your own terraform or tofu on a workspace's state, of any size.
    Tf(TerraformArgs),
    /// Print what a terraform that runs without plumb needs to use a workspace's state.
    BackendConfig(BackendConfigArgs),
    /// The record of everything that was done.
    #[command(subcommand)]
    Audit(AuditCommand),
    /// The queue, for operators.
    #[command(subcommand, visible_alias = "task")]
    Tasks(TaskCommand),
    /// Git credentials: what lets Git into private repositories.
    #[command(subcommand)]
    GitCredential(GitCredentialCommand),
    /// API keys: credentials of programs, for one business unit each.
    #[command(subcommand, visible_alias = "key")]
    ApiKey(ApiKeyCommand),
    /// Whose CI systems get short keys for their own tokens.
    #[command(subcommand)]
    CiTrust(CiTrustCommand),
    /// Business units: who owns what.
    #[command(subcommand, visible_aliases = ["unit", "bu"])]
    BusinessUnit(BusinessUnitCommand),
    /// People: who may sign in, and what they may do where.
    #[command(subcommand)]
    User(UserCommand),
    /// Integrations of a business unit: scans, policies, costs, messages, webhooks.
    #[command(subcommand)]
    Integration(IntegrationCommand),
    /// Tunables of the platform.
    #[command(subcommand)]
    Config(ConfigCommand),
    /// What only superadmins do.
    #[command(subcommand)]
    Admin(AdminCommand),
    /// Cloud accounts: where runs get their rights.
    #[command(subcommand)]
    Account(AccountCommand),
    /// Kubernetes clusters.
    #[command(subcommand)]
    Cluster(ClusterCommand),
    /// Print a completion script for your shell.
    Completions(CompletionsArgs),
}

/// The part of a list to show.
#[derive(Clone, Debug, ClapArgs)]
pub struct PageArgs {
    /// Rows at most.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..))]
    pub limit: Option<u32>,
    /// Go on where the page before ended.
    #[arg(long, value_name = "CURSOR")]
    pub cursor: Option<String>,
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    #[test]
    fn the_definition_is_sound() {
        super::Args::command().debug_assert();
    }
}
