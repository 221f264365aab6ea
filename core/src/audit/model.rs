//! What is recorded.

use chrono::{DateTime, Utc};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use uuid::Uuid;

use crate::access::Actor;
use crate::ids::{BusinessUnitId, RunId, UserId, WorkspaceId};

macro_rules! actions {
    ($($action:ident => $word:literal,)*) => {
        /// Every privileged action. The word is `resource.verb`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
        #[expect(missing_docs, reason = "the names say it; as_str gives the word")]
        pub enum Action {
            $($action,)*
        }

        impl Action {
            /// All of them.
            pub const ALL: &[Self] = &[$(Self::$action,)*];

            /// The word in the log.
            pub fn as_str(self) -> &'static str {
                match self { $(Self::$action => $word,)* }
            }
        }
    };
}

actions! {
    Login => "session.login",
    LoginFailed => "session.login_failed",
    SignInCodeReused => "session.code_reused",
    Logout => "session.logout",
    SessionRefreshReused => "session.refresh_reused",
    SessionEnd => "session.end",
    SessionEndAll => "session.end_all",
    JwtSecretCreate => "jwt_secret.create",
    JwtSecretRotate => "jwt_secret.rotate",
    IssuerKeyCreate => "issuer_key.create",
    IssuerKeyRotate => "issuer_key.rotate",
    IdentityTokenIssue => "identity_token.issue",
    UserBootstrap => "user.bootstrap",
    UserCreate => "user.create",
    UserUpdate => "user.update",
    UserDisable => "user.disable",
    UserEnable => "user.enable",
    UserDelete => "user.delete",
    UserLink => "user.link",
    UserSetPassword => "user.set_password",
    UserChangePassword => "user.change_password",
    UserChangePasswordFailed => "user.change_password_failed",
    UserInvite => "user.invite",
    UserInviteRevoke => "user.invite_revoke",
    UserInviteAccept => "user.invite_accept",
    MembershipGrant => "membership.grant",
    MembershipRevoke => "membership.revoke",
    ApiKeyCreate => "api_key.create",
    ApiKeyRegenerate => "api_key.regenerate",
    ApiKeyRotate => "api_key.rotate",
    ApiKeyRevoke => "api_key.revoke",
    CiTrustRuleCreate => "ci_trust_rule.create",
    CiTrustRuleDelete => "ci_trust_rule.delete",
    CiLogin => "ci.login",
    CiLoginFailed => "ci.login_failed",
    BusinessUnitCreate => "business_unit.create",
    BusinessUnitUpdate => "business_unit.update",
    BusinessUnitArchive => "business_unit.archive",
    BusinessUnitUnarchive => "business_unit.unarchive",
    WorkspaceCreate => "workspace.create",
    WorkspaceImport => "workspace.import",
    WorkspaceUpdate => "workspace.update",
    WorkspaceDelete => "workspace.delete",
    WorkspaceBlock => "workspace.block",
    WorkspaceUnblock => "workspace.unblock",
    WorkspaceLock => "workspace.lock",
    WorkspaceUnlock => "workspace.unlock",
    VariableCreate => "variable.create",
    VariableUpdate => "variable.update",
    VariableDelete => "variable.delete",
    WorkspaceVariableCreate => "workspace_variable.create",
    WorkspaceVariableUpdate => "workspace_variable.update",
    WorkspaceVariableDelete => "workspace_variable.delete",
    VariableSetCreate => "variable_set.create",
    VariableSetUpdate => "variable_set.update",
    VariableSetDelete => "variable_set.delete",
    VariableSetAttach => "variable_set.attach",
    VariableSetDetach => "variable_set.detach",
    RepositoryDiscover => "repository.discover",
    GitCredentialCreate => "git_credential.create",
    GitCredentialUpdate => "git_credential.update",
    GitCredentialDelete => "git_credential.delete",
    GitCredentialTest => "git_credential.test",
    GitCredentialUse => "git_credential.use",
    RunTrigger => "run.trigger",
    RunCancel => "run.cancel",
    RunApprove => "run.approve",
    RunReject => "run.reject",
    RunAutoApprove => "run.auto_approve",
    RunApplySkipped => "run.apply_skipped",
    RunExpire => "run.expire",
    RunPlanned => "run.planned",
    RunApplyBegin => "run.apply_begin",
    RunEnd => "run.end",
    RunRead => "run.read",
    RunSecretsUse => "run.secrets_use",
    StateWrite => "state.write",
    StateQuarantine => "state.quarantine",
    StatePromote => "state.promote",
    StateDiscard => "state.discard",
    StateRollback => "state.rollback",
    StateRead => "state.read",
    StateLock => "state.lock",
    StateUnlock => "state.unlock",
    StateForceUnlock => "state.force_unlock",
    StateShare => "state.share",
    StateSharedRead => "state.shared_read",
    StateExpire => "state.expire",
    StateAcceptLineage => "state.accept_lineage",
    StateFlag => "state.flag",
    ExecutorTicketReused => "executor.ticket_reused",
    ExecutorIdentityRefused => "executor.identity_refused",
    ExecutorLost => "executor.lost",
    TaskReplay => "task.replay",
    RekeyBegin => "rekey.begin",
    RekeyEnd => "rekey.end",
    ConfigWrite => "config.write",
    ConfigDelete => "config.delete",
    AwsAccountCreate => "aws_account.create",
    AwsAccountUpdate => "aws_account.update",
    AwsAccountDelete => "aws_account.delete",
    AwsAccountTest => "aws_account.test",
    AzureSubscriptionTest => "azure_subscription.test",
    GcpProjectTest => "gcp_project.test",
    ClusterTest => "cluster.test",
    IntegrationTest => "integration.test",
    AzureSubscriptionCreate => "azure_subscription.create",
    AzureSubscriptionUpdate => "azure_subscription.update",
    AzureSubscriptionDelete => "azure_subscription.delete",
    GcpProjectCreate => "gcp_project.create",
    GcpProjectUpdate => "gcp_project.update",
    GcpProjectDelete => "gcp_project.delete",
    ClusterCreate => "cluster.create",
    ClusterUpdate => "cluster.update",
    ClusterDelete => "cluster.delete",
    CredentialsUse => "credentials.use",
}

/// One thing to record.
#[derive(Clone, Debug)]
pub struct Entry {
    /// Whose chain; `None` is the platform's.
    pub business_unit_id: Option<BusinessUnitId>,
    /// Who did it; the system is recorded with no user.
    pub actor: Actor,
    /// What was done.
    pub action: Action,
    /// To what kind of thing.
    pub resource_type: &'static str,
    /// To which one.
    pub resource_id: String,
    /// In which workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// In which run.
    pub run_id: Option<RunId>,
    /// More; never secrets.
    pub details: Value,
}

/// Names a chain: a business unit's id, or all zeros for the platform.
#[derive(
    Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize, utoipa::ToSchema,
)]
#[serde(transparent)]
#[schema(value_type = Uuid)]
pub struct ChainId(pub Uuid);

impl ChainId {
    /// The chain of a unit, or of the platform.
    pub fn of(unit: Option<BusinessUnitId>) -> Self {
        Self(unit.map_or(Uuid::nil(), Uuid::from))
    }
}

impl std::fmt::Display for ChainId {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.fmt(f)
    }
}

/// Which entries to list.
#[derive(Clone, Debug, Default)]
pub struct Filter {
    /// Those of one workspace.
    pub workspace_id: Option<WorkspaceId>,
    /// Those of one run.
    pub run_id: Option<RunId>,
    /// Those of one action.
    pub action: Option<String>,
    /// What one person did.
    pub user_id: Option<UserId>,
    /// What was done to one kind of thing.
    pub resource_type: Option<String>,
    /// What was done to one thing.
    pub resource_id: Option<String>,
    /// Not earlier than this.
    pub from: Option<DateTime<Utc>>,
    /// Earlier than this.
    pub to: Option<DateTime<Utc>>,
}

/// The last entry of a page: entries are listed by time, newest first, over several chains.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Cursor {
    /// Its time, in microseconds since 1970.
    pub micros: i64,
    /// Its place in its chain.
    pub sequence: i64,
    /// Its chain.
    pub chain_id: ChainId,
}

impl std::fmt::Display for Cursor {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}.{}.{}", self.micros, self.sequence, self.chain_id.0.simple())
    }
}

impl std::str::FromStr for Cursor {
    type Err = ();
    fn from_str(text: &str) -> Result<Self, ()> {
        let [micros, sequence, chain] = text.split('.').collect::<Vec<_>>()[..] else { return Err(()) };
        Ok(Self {
            micros: micros.parse().map_err(|_| ())?,
            sequence: sequence.parse().map_err(|_| ())?,
            chain_id: ChainId(chain.parse().map_err(|_| ())?),
        })
    }
}
