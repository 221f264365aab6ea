//! What a success of each route leaves in the audit log, written by hand. The routes are those of the API document, of
//! Terraform's backend and of the executors; one without a row here fails, and so does a row without a route.

use plumbline_core::audit::Action::{self, *};

use Chain::{OfThePlatform, OfTheUnit};
use Whose::{Nobodys, TheCallers};

/// Where an entry stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Chain {
    /// In the chain of the unit that the request was about.
    OfTheUnit,
    /// In the chain of the platform.
    OfThePlatform,
    /// In some other.
    Another,
}

/// Whose deed it is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Whose {
    /// The deed of whoever called, or of whom they proved to be.
    TheCallers,
    /// The system's, or of somebody who is nobody here.
    Nobodys,
    /// Somebody else's.
    Anothers,
}

/// What a success leaves.
#[derive(Clone, Copy, Debug)]
pub(super) enum Said {
    /// Exactly these.
    Entries(&'static [(Chain, Whose, Action)]),
    /// Nothing, and why that is enough.
    Nothing(&'static str),
    /// There is no success.
    AlwaysRefused,
}

// Reasons that several rows have.
const NAMES: &str = "names and settings; secrets are masked";
const RUNS: &str = "where a run stands; what it prints is another route";
const OUTPUTS: &str = "values that are not sensitive; asking for the others is recorded";
const OPEN: &str = "says nothing of anybody";
const OWN: &str = "what belongs to the caller";
const THE_LOG: &str = "the log itself, which has no secrets";
const PROGRESS: &str = "the progress of a run, which has a history of its own";
const OF_THE_RUN: &str = "a phase of a run reads what is the run's; its begin is recorded";
const GOES_ON: &str = "a session goes on whose begin is recorded; that a token comes twice is, too";
const ASKS_A_FORGE: &str = "lists branches; a login that it takes is recorded when it is used";
const LATER: &str = "nothing has happened yet: what it announces is recorded when it is done";

macro_rules! rows {
    ($($route:literal $said:ident $($what:ident)*;)*) => {
        /// Every route, in the order of its path.
        pub(super) const ROWS: &[(&str, Said)] = &[$(($route, rows!(@$said $($what)*))),*];
    };
    (@nothing $why:ident) => { Said::Nothing($why) };
    (@refused) => { Said::AlwaysRefused };
    (@unit $($action:ident)*) => { Said::Entries(&[$((OfTheUnit, TheCallers, $action)),*]) };
    (@system $($action:ident)*) => { Said::Entries(&[$((OfTheUnit, Nobodys, $action)),*]) };
    (@platform $($action:ident)*) => { Said::Entries(&[$((OfThePlatform, TheCallers, $action)),*]) };
    // The first concerns the person, the second a unit of theirs.
    (@person $first:ident $second:ident) => {
        Said::Entries(&[(OfThePlatform, TheCallers, $first), (OfTheUnit, TheCallers, $second)])
    };
}

#[rustfmt::skip]
rows! {
    "GET /api/v1/admin/rekey"                                          nothing NAMES;
    "POST /api/v1/admin/rekey"                                         platform RekeyBegin;
    "GET /api/v1/api-keys"                                             nothing NAMES;
    "POST /api/v1/api-keys"                                            unit ApiKeyCreate;
    "GET /api/v1/api-keys/{id}"                                        nothing NAMES;
    "DELETE /api/v1/api-keys/{id}"                                     unit ApiKeyRevoke;
    "POST /api/v1/api-keys/{id}/regenerate"                            unit ApiKeyRegenerate;
    "POST /api/v1/api-keys/{id}/rotate"                                unit ApiKeyRotate;
    "POST /api/v1/approvals/{run_id}/approve"                          unit RunApprove;
    "POST /api/v1/approvals/{run_id}/reject"                           unit RunReject;
    "GET /api/v1/audit"                                                nothing THE_LOG;
    "GET /api/v1/audit/chains"                                         nothing THE_LOG;
    "GET /api/v1/audit/export"                                         nothing THE_LOG;
    "GET /api/v1/audit/verify"                                         nothing THE_LOG;
    "POST /api/v1/auth/accept-invite"                                  platform UserInviteAccept;
    "POST /api/v1/auth/ci-token"                                       system CiLogin;
    "GET /api/v1/auth/config"                                          nothing OPEN;
    "GET /api/v1/auth/issuer-keys"                                     nothing NAMES;
    "POST /api/v1/auth/issuer-keys"                                    platform IssuerKeyRotate;
    "GET /api/v1/auth/jwt-secrets"                                     nothing NAMES;
    "POST /api/v1/auth/jwt-secrets"                                    platform JwtSecretRotate;
    "POST /api/v1/auth/logout"                                         platform Logout;
    "POST /api/v1/auth/logout-all"                                     platform SessionEndAll;
    "POST /api/v1/auth/oidc/token"                                     platform Login;
    "POST /api/v1/auth/refresh"                                        nothing GOES_ON;
    "POST /api/v1/auth/token"                                          platform Login;
    "GET /api/v1/aws-accounts"                                         nothing NAMES;
    "POST /api/v1/aws-accounts"                                        unit AwsAccountCreate;
    "GET /api/v1/aws-accounts/{id}"                                    nothing NAMES;
    "PUT /api/v1/aws-accounts/{id}"                                    unit AwsAccountUpdate;
    "DELETE /api/v1/aws-accounts/{id}"                                 unit AwsAccountDelete;
    "POST /api/v1/aws-accounts/{id}/test"                              unit AwsAccountTest;
    "GET /api/v1/azure-subscriptions"                                  nothing NAMES;
    "POST /api/v1/azure-subscriptions"                                 unit AzureSubscriptionCreate;
    "GET /api/v1/azure-subscriptions/{id}"                             nothing NAMES;
    "PUT /api/v1/azure-subscriptions/{id}"                             unit AzureSubscriptionUpdate;
    "DELETE /api/v1/azure-subscriptions/{id}"                          unit AzureSubscriptionDelete;
    "POST /api/v1/azure-subscriptions/{id}/test"                       unit AzureSubscriptionTest;
    "GET /api/v1/business-units"                                       nothing NAMES;
    "POST /api/v1/business-units"                                      platform BusinessUnitCreate;
    "GET /api/v1/business-units/{id}"                                  nothing NAMES;
    "PUT /api/v1/business-units/{id}"                                  platform BusinessUnitUpdate;
    "POST /api/v1/business-units/{id}/archive"                         platform BusinessUnitArchive;
    "POST /api/v1/business-units/{id}/unarchive"                       platform BusinessUnitUnarchive;
    "GET /api/v1/ci-trust-rules"                                       nothing NAMES;
    "POST /api/v1/ci-trust-rules"                                      unit CiTrustRuleCreate;
    "GET /api/v1/ci-trust-rules/{id}"                                  nothing NAMES;
    "DELETE /api/v1/ci-trust-rules/{id}"                               unit CiTrustRuleDelete;
    "GET /api/v1/clusters"                                             nothing NAMES;
    "POST /api/v1/clusters"                                            unit ClusterCreate;
    "GET /api/v1/clusters/{id}"                                        nothing NAMES;
    "PUT /api/v1/clusters/{id}"                                        unit ClusterUpdate;
    "DELETE /api/v1/clusters/{id}"                                     unit ClusterDelete;
    "POST /api/v1/clusters/{id}/test"                                  unit ClusterTest;
    "GET /api/v1/gcp-projects"                                         nothing NAMES;
    "POST /api/v1/gcp-projects"                                        unit GcpProjectCreate;
    "GET /api/v1/gcp-projects/{id}"                                    nothing NAMES;
    "PUT /api/v1/gcp-projects/{id}"                                    unit GcpProjectUpdate;
    "DELETE /api/v1/gcp-projects/{id}"                                 unit GcpProjectDelete;
    "POST /api/v1/gcp-projects/{id}/test"                              unit GcpProjectTest;
    "GET /api/v1/git-credentials"                                      nothing NAMES;
    "POST /api/v1/git-credentials"                                     unit GitCredentialCreate;
    "GET /api/v1/git-credentials/{id}"                                 nothing NAMES;
    "PATCH /api/v1/git-credentials/{id}"                               unit GitCredentialUpdate;
    "DELETE /api/v1/git-credentials/{id}"                              unit GitCredentialDelete;
    "POST /api/v1/git-credentials/{id}/test"                           unit GitCredentialTest;
    "GET /api/v1/git-credentials/{id}/usage"                           nothing NAMES;
    "GET /api/v1/health/live"                                          nothing OPEN;
    "GET /api/v1/health/ready"                                         nothing OPEN;
    "GET /api/v1/integrations/checkov"                                 nothing NAMES;
    "PUT /api/v1/integrations/checkov"                                 unit ConfigWrite;
    "DELETE /api/v1/integrations/checkov"                              unit ConfigDelete;
    "GET /api/v1/integrations/checkov/history"                         nothing NAMES;
    "GET /api/v1/integrations/infra-repo"                              nothing NAMES;
    "PUT /api/v1/integrations/infra-repo"                              unit ConfigWrite;
    "DELETE /api/v1/integrations/infra-repo"                           unit ConfigDelete;
    "GET /api/v1/integrations/infra-repo/history"                      nothing NAMES;
    "GET /api/v1/integrations/infracost"                               nothing NAMES;
    "PUT /api/v1/integrations/infracost"                               unit ConfigWrite;
    "DELETE /api/v1/integrations/infracost"                            unit ConfigDelete;
    "GET /api/v1/integrations/infracost/history"                       nothing NAMES;
    "POST /api/v1/integrations/infracost/test"                         unit IntegrationTest;
    "GET /api/v1/integrations/notification"                            nothing NAMES;
    "PUT /api/v1/integrations/notification"                            unit ConfigWrite;
    "DELETE /api/v1/integrations/notification"                         unit ConfigDelete;
    "GET /api/v1/integrations/notification/history"                    nothing NAMES;
    "GET /api/v1/integrations/opa"                                     nothing NAMES;
    "PUT /api/v1/integrations/opa"                                     unit ConfigWrite;
    "DELETE /api/v1/integrations/opa"                                  unit ConfigDelete;
    "GET /api/v1/integrations/opa/history"                             nothing NAMES;
    "GET /api/v1/integrations/slack"                                   nothing NAMES;
    "PUT /api/v1/integrations/slack"                                   unit ConfigWrite;
    "DELETE /api/v1/integrations/slack"                                unit ConfigDelete;
    "GET /api/v1/integrations/slack/history"                           nothing NAMES;
    "POST /api/v1/integrations/slack/test"                             unit IntegrationTest;
    "GET /api/v1/integrations/smtp"                                    nothing NAMES;
    "PUT /api/v1/integrations/smtp"                                    unit ConfigWrite;
    "DELETE /api/v1/integrations/smtp"                                 unit ConfigDelete;
    "GET /api/v1/integrations/smtp/history"                            nothing NAMES;
    "GET /api/v1/integrations/webhook"                                 nothing NAMES;
    "PUT /api/v1/integrations/webhook"                                 unit ConfigWrite;
    "DELETE /api/v1/integrations/webhook"                              unit ConfigDelete;
    "GET /api/v1/integrations/webhook/history"                         nothing NAMES;
    "GET /api/v1/me"                                                   nothing OWN;
    "PUT /api/v1/me/password"                                          platform UserChangePassword;
    "GET /api/v1/presence"                                             nothing NAMES;
    "POST /api/v1/presence"                                            nothing OWN;
    "POST /api/v1/quarantined-states/{id}/discard"                     unit StateDiscard;
    "POST /api/v1/quarantined-states/{id}/promote"                     unit StatePromote;
    "GET /api/v1/resources"                                            nothing NAMES;
    "GET /api/v1/runs"                                                 nothing RUNS;
    "POST /api/v1/runs"                                                unit RunTrigger;
    "GET /api/v1/runs/{id}"                                            nothing RUNS;
    "GET /api/v1/runs/{id}/artifacts"                                  nothing RUNS;
    "GET /api/v1/runs/{id}/artifacts/{kind}"                           unit RunRead;
    "POST /api/v1/runs/{id}/cancel"                                    unit RunCancel;
    "GET /api/v1/runs/{id}/logs"                                       unit RunRead;
    "GET /api/v1/runs/{id}/plan"                                       unit RunRead;
    "POST /api/v1/runs/{id}/promote"                                   unit RunTrigger;
    "GET /api/v1/runs/{id}/steps"                                      nothing RUNS;
    "GET /api/v1/runs/{id}/unrecorded-resources"                       unit RunRead;
    "GET /api/v1/runs/{id}/variables"                                  nothing NAMES;
    "GET /api/v1/runtime-config"                                       nothing NAMES;
    "GET /api/v1/runtime-config/{key}"                                 nothing NAMES;
    "PUT /api/v1/runtime-config/{key}"                                 platform ConfigWrite;
    "DELETE /api/v1/runtime-config/{key}"                              platform ConfigDelete;
    "GET /api/v1/runtime-config/{key}/history"                         nothing NAMES;
    "GET /api/v1/server-info"                                          nothing OPEN;
    "GET /api/v1/sessions"                                             nothing OWN;
    "DELETE /api/v1/sessions/{id}"                                     platform SessionEnd;
    "GET /api/v1/state-versions/{id}"                                  nothing NAMES;
    "GET /api/v1/state-versions/{id}/diff"                             unit StateRead;
    "GET /api/v1/state-versions/{id}/download"                         unit StateRead;
    "GET /api/v1/state-versions/{id}/outputs"                          nothing OUTPUTS;
    "POST /api/v1/state-versions/{id}/rollback"                        unit StateRollback;
    "GET /api/v1/tasks"                                                nothing NAMES;
    "GET /api/v1/tasks/{id}"                                           nothing NAMES;
    "POST /api/v1/tasks/{id}/replay"                                   unit TaskReplay;
    "GET /api/v1/users"                                                nothing NAMES;
    "POST /api/v1/users"                                               person UserCreate MembershipGrant;
    "GET /api/v1/users/{id}"                                           nothing NAMES;
    "PATCH /api/v1/users/{id}"                                         person UserUpdate MembershipGrant;
    "DELETE /api/v1/users/{id}"                                        person UserDelete MembershipRevoke;
    "POST /api/v1/users/{id}/disable"                                  platform UserDisable;
    "POST /api/v1/users/{id}/enable"                                   platform UserEnable;
    "POST /api/v1/users/{id}/invite"                                   platform UserInvite;
    "DELETE /api/v1/users/{id}/invite"                                 platform UserInviteRevoke;
    "PUT /api/v1/users/{id}/password"                                  platform UserSetPassword;
    "DELETE /api/v1/users/{id}/sessions"                               platform SessionEndAll;
    "GET /api/v1/variable-sets"                                        nothing NAMES;
    "POST /api/v1/variable-sets"                                       unit VariableSetCreate;
    "GET /api/v1/variable-sets/{id}"                                   nothing NAMES;
    "PATCH /api/v1/variable-sets/{id}"                                 unit VariableSetUpdate;
    "DELETE /api/v1/variable-sets/{id}"                                unit VariableSetDelete;
    "GET /api/v1/variable-sets/{id}/variables"                         nothing NAMES;
    "POST /api/v1/variable-sets/{id}/variables"                        unit VariableCreate;
    "GET /api/v1/variable-sets/{id}/variables/{variable_id}"           nothing NAMES;
    "PATCH /api/v1/variable-sets/{id}/variables/{variable_id}"         unit VariableUpdate;
    "DELETE /api/v1/variable-sets/{id}/variables/{variable_id}"        unit VariableDelete;
    "GET /api/v1/variable-sets/{id}/workspaces"                        nothing NAMES;
    "PUT /api/v1/variable-sets/{id}/workspaces/{workspace_id}"         unit VariableSetAttach;
    "DELETE /api/v1/variable-sets/{id}/workspaces/{workspace_id}"      unit VariableSetDetach;
    "GET /api/v1/variables"                                            nothing NAMES;
    "POST /api/v1/variables"                                           unit VariableCreate;
    "GET /api/v1/variables/{id}"                                       nothing NAMES;
    "PATCH /api/v1/variables/{id}"                                     unit VariableUpdate;
    "DELETE /api/v1/variables/{id}"                                    unit VariableDelete;
    "GET /api/v1/workspaces"                                           nothing NAMES;
    "POST /api/v1/workspaces"                                          unit WorkspaceCreate;
    "POST /api/v1/workspaces/discover"                                 unit RepositoryDiscover;
    "POST /api/v1/workspaces/import"                                   unit WorkspaceImport;
    "GET /api/v1/workspaces/{id}"                                      nothing NAMES;
    "PUT /api/v1/workspaces/{id}"                                      unit WorkspaceUpdate;
    "DELETE /api/v1/workspaces/{id}"                                   unit WorkspaceDelete;
    "POST /api/v1/workspaces/{id}/accept-next-lineage"                 unit StateAcceptLineage;
    "POST /api/v1/workspaces/{id}/branches"                            nothing ASKS_A_FORGE;
    "GET /api/v1/workspaces/{id}/outputs"                              nothing OUTPUTS;
    "POST /api/v1/workspaces/{id}/lock"                                unit WorkspaceLock;
    "GET /api/v1/workspaces/{id}/quarantined-states"                   nothing NAMES;
    "GET /api/v1/workspaces/{id}/state-consumers"                      nothing NAMES;
    "PUT /api/v1/workspaces/{id}/state-consumers"                      unit StateShare;
    "GET /api/v1/workspaces/{id}/state-lock"                           nothing NAMES;
    "DELETE /api/v1/workspaces/{id}/state-lock"                        unit StateForceUnlock;
    "GET /api/v1/workspaces/{id}/state-versions"                       nothing NAMES;
    "POST /api/v1/workspaces/{id}/unblock"                             unit WorkspaceUnblock;
    "POST /api/v1/workspaces/{id}/unlock"                              unit WorkspaceUnlock;
    "GET /api/v1/workspaces/{id}/variables"                            nothing NAMES;
    "POST /api/v1/workspaces/{id}/variables"                           unit WorkspaceVariableCreate;
    "GET /api/v1/workspaces/{id}/variables/effective"                  nothing NAMES;
    "GET /api/v1/workspaces/{id}/variables/{variable_id}"              nothing NAMES;
    "PATCH /api/v1/workspaces/{id}/variables/{variable_id}"            unit WorkspaceVariableUpdate;
    "DELETE /api/v1/workspaces/{id}/variables/{variable_id}"           unit WorkspaceVariableDelete;

    "GET /api/v1/state/{workspace_id}"                                 unit StateRead;
    "HEAD /api/v1/state/{workspace_id}"                                unit StateRead;
    "POST /api/v1/state/{workspace_id}"                                unit StateWrite;
    "PUT /api/v1/state/{workspace_id}"                                 unit StateWrite;
    "DELETE /api/v1/state/{workspace_id}"                              refused;
    "LOCK /api/v1/state/{workspace_id}"                                unit StateLock;
    "UNLOCK /api/v1/state/{workspace_id}"                              unit StateUnlock;
    "LOCK /api/v1/state/{workspace_id}/lock"                           unit StateLock;
    "POST /api/v1/state/{workspace_id}/lock"                           unit StateLock;
    "PUT /api/v1/state/{workspace_id}/lock"                            unit StateLock;
    // With an empty body, as Terraform's force-unlock sends it.
    "UNLOCK /api/v1/state/{workspace_id}/lock"                         unit StateForceUnlock;
    "DELETE /api/v1/state/{workspace_id}/lock"                         unit StateUnlock;
    "POST /api/v1/state/{workspace_id}/uploads"                        nothing PROGRESS;
    "POST /api/v1/state/{workspace_id}/uploads/{upload_id}/commit"     unit StateWrite;

    "POST /executor/v1/trade"                                          system CredentialsUse GitCredentialUse RunSecretsUse;
    "POST /executor/v1/heartbeat"                                      nothing PROGRESS;
    "POST /executor/v1/identity-token"                                 system IdentityTokenIssue;
    "PUT /executor/v1/steps/{position}"                                nothing PROGRESS;
    "PUT /executor/v1/steps/{position}/log"                            nothing PROGRESS;
    "POST /executor/v1/artifacts"                                      nothing LATER;
    "GET /executor/v1/artifacts/{kind}"                                nothing OF_THE_RUN;
    "POST /executor/v1/artifacts/{kind}/commit"                        nothing PROGRESS;
    "POST /executor/v1/plan/complete"                                  system RunPlanned;
    "POST /executor/v1/apply/begin"                                    system RunApplyBegin;
    "POST /executor/v1/apply/touched"                                  nothing PROGRESS;
    "POST /executor/v1/apply/complete"                                 system RunEnd;
    "POST /executor/v1/fail"                                           system RunEnd;
    "GET /executor/v1/state"                                           nothing OF_THE_RUN;
    "HEAD /executor/v1/state"                                          nothing OF_THE_RUN;
    "POST /executor/v1/state"                                          system StateWrite;
    "PUT /executor/v1/state"                                           system StateWrite;
    "DELETE /executor/v1/state"                                        refused;
    "LOCK /executor/v1/state"                                          system StateLock;
    "UNLOCK /executor/v1/state"                                        system StateUnlock;
    "LOCK /executor/v1/state/lock"                                     system StateLock;
    "POST /executor/v1/state/lock"                                     system StateLock;
    "PUT /executor/v1/state/lock"                                      system StateLock;
    "UNLOCK /executor/v1/state/lock"                                   system StateUnlock;
    "DELETE /executor/v1/state/lock"                                   system StateUnlock;
    "POST /executor/v1/state/uploads"                                  nothing LATER;
    "POST /executor/v1/state/uploads/{id}/commit"                      system StateWrite;
}

/// What is left where the same request is sent once more and refused. Nothing, but for these.
pub(super) const REFUSED_AGAIN: &[(&str, Said)] = &[
    // The password that was right is wrong now.
    ("PUT /api/v1/me/password", Said::Entries(&[(OfThePlatform, TheCallers, UserChangePasswordFailed)])),
    // A code that comes twice ends the session that it opened.
    ("POST /api/v1/auth/oidc/token", Said::Entries(&[(OfThePlatform, Nobodys, SignInCodeReused)])),
];
