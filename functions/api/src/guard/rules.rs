//! What every route needs. The only place where a route is opened to somebody.

use plumbline_core::access::Permission::{
    self, AdministerCloudAccounts, AdministerGitCredentials, AdministerIntegrations, AdministerKeys,
    AdministerPlatform, AdministerState, AdministerUsers, AdministerVariables, AdministerWorkspaces,
    ApplyRuns, PlanRuns, Read, ReadAudit, ReadGitCredentials, ReadIntegrations, ReadLogs, ReadRuntimeConfig,
    ReadState, ReadTasks, ReplayTasks, WriteWorkspaceVariables,
};

use Need::{May, Newcomer, Open, Own, Person, SignedIn};
use Reach::{Body, Listed, OwnUnit, QuarantinedState, Run, StateVersion, Unit, Workspace};

/// Who may call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Need {
    /// Anybody; the route itself looks at what it is given.
    Open,
    /// Whoever is signed in, also with an API key.
    SignedIn,
    /// Whoever is signed in with a session of their own.
    Person,
    /// The same, also while they must change their password.
    Newcomer,
    /// A person about what is theirs alone, whatever unit they act in or whether they are in any. The use case says what
    /// is open to those who must change their password.
    Own,
    /// Whoever has at least this permission. What is asked may take more, which the use case says.
    May(Permission),
}

/// What the route is about, for API keys that reach only some workspaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reach {
    /// Nothing that belongs to a workspace, and nothing that such a key must not see.
    OwnUnit,
    /// The whole unit: refused to such keys.
    Unit,
    /// The workspace in the path.
    Workspace,
    /// The run in the path.
    Run,
    /// The state version in the path.
    StateVersion,
    /// The quarantined state in the path.
    QuarantinedState,
    /// The `workspace_id` in the body.
    Body,
    /// A list, of which such a key sees the part that it reaches.
    Listed,
}

/// One route's rule.
#[derive(Clone, Copy, Debug)]
pub struct Rule {
    /// In upper case.
    pub method: &'static str,
    /// Below `/api/v1`.
    below: &'static str,
    /// Who may call.
    pub need: Need,
    /// What it is about.
    pub reach: Reach,
}

impl Rule {
    /// The whole path, with its parameters in braces.
    pub fn path(&self) -> String {
        [PREFIX, self.below].concat()
    }

    /// Whether it is about this path, with its parameters in braces.
    pub(super) fn is_of(&self, path: &str) -> bool {
        path.strip_prefix(PREFIX) == Some(self.below)
    }
}

const PREFIX: &str = "/api/v1";

/// Where the OpenAPI document is served.
pub(super) const DOCUMENT: &str = "/api/v1/openapi.json";

const fn get(below: &'static str, need: Need, reach: Reach) -> Rule {
    Rule { method: "GET", below, need, reach }
}

const fn post(below: &'static str, need: Need, reach: Reach) -> Rule {
    Rule { method: "POST", below, need, reach }
}

const fn put(below: &'static str, need: Need, reach: Reach) -> Rule {
    Rule { method: "PUT", below, need, reach }
}

const fn patch(below: &'static str, need: Need, reach: Reach) -> Rule {
    Rule { method: "PATCH", below, need, reach }
}

const fn delete(below: &'static str, need: Need, reach: Reach) -> Rule {
    Rule { method: "DELETE", below, need, reach }
}

/// Every route, sorted by path.
#[rustfmt::skip]
pub const RULES: &[Rule] = &[
    get   ("/admin/rekey",                                            May(AdministerPlatform),        Unit),
    post  ("/admin/rekey",                                            May(AdministerPlatform),        Unit),
    get   ("/api-keys",                                               May(AdministerKeys),            Unit),
    post  ("/api-keys",                                               May(AdministerKeys),            Unit),
    get   ("/api-keys/{id}",                                          May(AdministerKeys),            Unit),
    delete("/api-keys/{id}",                                          May(AdministerKeys),            Unit),
    post  ("/api-keys/{id}/regenerate",                               May(AdministerKeys),            Unit),
    post  ("/api-keys/{id}/rotate",                                   May(AdministerKeys),            Unit),
    post  ("/approvals/{run_id}/approve",                             May(ApplyRuns),                 Run),
    post  ("/approvals/{run_id}/reject",                              May(ApplyRuns),                 Run),
    get   ("/audit",                                                  May(ReadAudit),                 Unit),
    get   ("/audit/chains",                                           May(ReadAudit),                 Unit),
    get   ("/audit/export",                                           May(ReadAudit),                 Unit),
    get   ("/audit/verify",                                           May(ReadAudit),                 Unit),
    post  ("/auth/accept-invite",                                     Open,                           OwnUnit),
    post  ("/auth/ci-token",                                          Open,                           OwnUnit),
    get   ("/auth/config",                                            Open,                           OwnUnit),
    get   ("/auth/issuer-keys",                                       May(AdministerPlatform),        Unit),
    post  ("/auth/issuer-keys",                                       May(AdministerPlatform),        Unit),
    get   ("/auth/jwt-secrets",                                       May(AdministerPlatform),        Unit),
    post  ("/auth/jwt-secrets",                                       May(AdministerPlatform),        Unit),
    post  ("/auth/logout",                                            Open,                           OwnUnit),
    post  ("/auth/logout-all",                                        Own,                            OwnUnit),
    post  ("/auth/oidc/token",                                        Open,                           OwnUnit),
    post  ("/auth/refresh",                                           Open,                           OwnUnit),
    post  ("/auth/token",                                             Open,                           OwnUnit),
    get   ("/aws-accounts",                                           May(Read),                      Unit),
    post  ("/aws-accounts",                                           May(AdministerCloudAccounts),   Unit),
    get   ("/aws-accounts/{id}",                                      May(Read),                      Unit),
    put   ("/aws-accounts/{id}",                                      May(AdministerCloudAccounts),   Unit),
    delete("/aws-accounts/{id}",                                      May(AdministerCloudAccounts),   Unit),
    post  ("/aws-accounts/{id}/test",                                 May(AdministerCloudAccounts),   Unit),
    get   ("/azure-subscriptions",                                    May(Read),                      Unit),
    post  ("/azure-subscriptions",                                    May(AdministerCloudAccounts),   Unit),
    get   ("/azure-subscriptions/{id}",                               May(Read),                      Unit),
    put   ("/azure-subscriptions/{id}",                               May(AdministerCloudAccounts),   Unit),
    delete("/azure-subscriptions/{id}",                               May(AdministerCloudAccounts),   Unit),
    post  ("/azure-subscriptions/{id}/test",                          May(AdministerCloudAccounts),   Unit),
    get   ("/business-units",                                         SignedIn,                       OwnUnit),
    post  ("/business-units",                                         May(AdministerPlatform),        Unit),
    get   ("/business-units/{id}",                                    SignedIn,                       OwnUnit),
    put   ("/business-units/{id}",                                    May(AdministerPlatform),        Unit),
    post  ("/business-units/{id}/archive",                            May(AdministerPlatform),        Unit),
    post  ("/business-units/{id}/unarchive",                          May(AdministerPlatform),        Unit),
    get   ("/ci-trust-rules",                                         May(AdministerKeys),            Unit),
    post  ("/ci-trust-rules",                                         May(AdministerKeys),            Unit),
    get   ("/ci-trust-rules/{id}",                                    May(AdministerKeys),            Unit),
    delete("/ci-trust-rules/{id}",                                    May(AdministerKeys),            Unit),
    get   ("/clusters",                                               May(Read),                      Unit),
    post  ("/clusters",                                               May(AdministerCloudAccounts),   Unit),
    get   ("/clusters/{id}",                                          May(Read),                      Unit),
    put   ("/clusters/{id}",                                          May(AdministerCloudAccounts),   Unit),
    delete("/clusters/{id}",                                          May(AdministerCloudAccounts),   Unit),
    post  ("/clusters/{id}/test",                                     May(AdministerCloudAccounts),   Unit),
    get   ("/gcp-projects",                                           May(Read),                      Unit),
    post  ("/gcp-projects",                                           May(AdministerCloudAccounts),   Unit),
    get   ("/gcp-projects/{id}",                                      May(Read),                      Unit),
    put   ("/gcp-projects/{id}",                                      May(AdministerCloudAccounts),   Unit),
    delete("/gcp-projects/{id}",                                      May(AdministerCloudAccounts),   Unit),
    post  ("/gcp-projects/{id}/test",                                 May(AdministerCloudAccounts),   Unit),
    get   ("/git-credentials",                                        May(ReadGitCredentials),        Unit),
    post  ("/git-credentials",                                        May(AdministerGitCredentials),  Unit),
    get   ("/git-credentials/{id}",                                   May(ReadGitCredentials),        Unit),
    patch ("/git-credentials/{id}",                                   May(AdministerGitCredentials),  Unit),
    delete("/git-credentials/{id}",                                   May(AdministerGitCredentials),  Unit),
    post  ("/git-credentials/{id}/test",                              May(AdministerGitCredentials),  Unit),
    get   ("/git-credentials/{id}/usage",                             May(ReadGitCredentials),        Unit),
    get   ("/health/live",                                            Open,                           OwnUnit),
    get   ("/health/ready",                                           Open,                           OwnUnit),
    get   ("/integrations/checkov",                                   May(ReadIntegrations),          Unit),
    put   ("/integrations/checkov",                   May(AdministerIntegrations),Unit),
    delete("/integrations/checkov",                   May(AdministerIntegrations),Unit),
    get   ("/integrations/checkov/history",                           May(ReadIntegrations),          Unit),
    get   ("/integrations/infra-repo",                                May(ReadIntegrations),          Unit),
    put   ("/integrations/infra-repo",                May(AdministerIntegrations),Unit),
    delete("/integrations/infra-repo",                May(AdministerIntegrations),Unit),
    get   ("/integrations/infra-repo/history",                        May(ReadIntegrations),          Unit),
    get   ("/integrations/infracost",                                 May(ReadIntegrations),          Unit),
    put   ("/integrations/infracost",                 May(AdministerIntegrations),Unit),
    delete("/integrations/infracost",                 May(AdministerIntegrations),Unit),
    get   ("/integrations/infracost/history",                         May(ReadIntegrations),          Unit),
    post  ("/integrations/infracost/test",                            May(AdministerIntegrations),   Unit),
    get   ("/integrations/notification",                              May(ReadIntegrations),          Unit),
    put   ("/integrations/notification",              May(AdministerIntegrations),Unit),
    delete("/integrations/notification",              May(AdministerIntegrations),Unit),
    get   ("/integrations/notification/history",                      May(ReadIntegrations),          Unit),
    get   ("/integrations/opa",                                       May(ReadIntegrations),          Unit),
    put   ("/integrations/opa",                       May(AdministerIntegrations),Unit),
    delete("/integrations/opa",                       May(AdministerIntegrations),Unit),
    get   ("/integrations/opa/history",                               May(ReadIntegrations),          Unit),
    get   ("/integrations/slack",                                     May(ReadIntegrations),          Unit),
    put   ("/integrations/slack",                     May(AdministerIntegrations),Unit),
    delete("/integrations/slack",                     May(AdministerIntegrations),Unit),
    get   ("/integrations/slack/history",                             May(ReadIntegrations),          Unit),
    post  ("/integrations/slack/test",                                May(AdministerIntegrations),   Unit),
    get   ("/integrations/smtp",                                      May(ReadIntegrations),          Unit),
    put   ("/integrations/smtp",                      May(AdministerIntegrations),Unit),
    delete("/integrations/smtp",                      May(AdministerIntegrations),Unit),
    get   ("/integrations/smtp/history",                              May(ReadIntegrations),          Unit),
    get   ("/integrations/webhook",                                   May(ReadIntegrations),          Unit),
    put   ("/integrations/webhook",                   May(AdministerIntegrations),Unit),
    delete("/integrations/webhook",                   May(AdministerIntegrations),Unit),
    get   ("/integrations/webhook/history",                           May(ReadIntegrations),          Unit),
    get   ("/me",                                                     Newcomer,                       OwnUnit),
    put   ("/me/password",                                            Own,                            OwnUnit),
    get   ("/openapi.json",                                           Open,                           OwnUnit),
    get   ("/presence",                                               Person,                         OwnUnit),
    post  ("/presence",                                               Person,                         OwnUnit),
    post  ("/quarantined-states/{id}/discard",                        May(AdministerState),           QuarantinedState),
    post  ("/quarantined-states/{id}/promote",                        May(AdministerState),           QuarantinedState),
    get   ("/resources",                                              May(Read),                      Listed),
    get   ("/runs",                                                   May(Read),                      Listed),
    post  ("/runs",                                                   May(PlanRuns),                  Body),
    get   ("/runs/{id}",                                              May(Read),                      Run),
    get   ("/runs/{id}/artifacts",                                    May(Read),                      Run),
    get   ("/runs/{id}/artifacts/{kind}",                             May(Read),                      Run),
    post  ("/runs/{id}/cancel",                                       May(PlanRuns),                  Run),
    get   ("/runs/{id}/logs",                                         May(ReadLogs),                  Run),
    get   ("/runs/{id}/plan",                                         May(Read),                      Run),
    post  ("/runs/{id}/promote",                                      May(ApplyRuns),                 Run),
    get   ("/runs/{id}/steps",                                        May(Read),                      Run),
    get   ("/runs/{id}/unrecorded-resources",                         May(ReadState),                 Run),
    get   ("/runs/{id}/variables",                                    May(Read),                      Run),
    get   ("/runtime-config",                                         May(ReadRuntimeConfig),         Unit),
    get   ("/runtime-config/{key}",                                   May(ReadRuntimeConfig),         Unit),
    put   ("/runtime-config/{key}",                                   May(AdministerPlatform),        Unit),
    delete("/runtime-config/{key}",                                   May(AdministerPlatform),        Unit),
    get   ("/runtime-config/{key}/history",                           May(AdministerPlatform),        Unit),
    get   ("/server-info",                                            Open,                           OwnUnit),
    get   ("/sessions",                                               Own,                            OwnUnit),
    delete("/sessions/{id}",                                          Own,                            OwnUnit),
    get   ("/state-versions/{id}",                                    May(Read),                      StateVersion),
    get   ("/state-versions/{id}/diff",                               May(ReadState),                 StateVersion),
    get   ("/state-versions/{id}/download",                           May(ReadState),                 StateVersion),
    get   ("/state-versions/{id}/outputs",                            May(Read),                      StateVersion),
    post  ("/state-versions/{id}/rollback",                           May(AdministerState),           StateVersion),
    get   ("/tasks",                                                  May(ReadTasks),                 Unit),
    get   ("/tasks/{id}",                                             May(Read),                      Unit),
    post  ("/tasks/{id}/replay",                                      May(ReplayTasks),               Unit),
    get   ("/users",                                                  May(AdministerUsers),           OwnUnit),
    post  ("/users",                                                  May(AdministerUsers),           OwnUnit),
    get   ("/users/{id}",                                             May(AdministerUsers),           OwnUnit),
    patch ("/users/{id}",                                             May(AdministerUsers),           OwnUnit),
    delete("/users/{id}",                                             May(AdministerUsers),           OwnUnit),
    post  ("/users/{id}/disable",                                     May(AdministerUsers),           OwnUnit),
    post  ("/users/{id}/enable",                                      May(AdministerUsers),           OwnUnit),
    post  ("/users/{id}/invite",                                      May(AdministerUsers),           OwnUnit),
    delete("/users/{id}/invite",                                      May(AdministerUsers),           OwnUnit),
    put   ("/users/{id}/password",                                    May(AdministerUsers),           OwnUnit),
    delete("/users/{id}/sessions",                                    May(AdministerUsers),           OwnUnit),
    get   ("/variable-sets",                                          May(Read),                      Unit),
    post  ("/variable-sets",                                          May(AdministerVariables),       Unit),
    get   ("/variable-sets/{id}",                                     May(Read),                      Unit),
    patch ("/variable-sets/{id}",                                     May(AdministerVariables),       Unit),
    delete("/variable-sets/{id}",                                     May(AdministerVariables),       Unit),
    get   ("/variable-sets/{id}/variables",                           May(Read),                      Unit),
    post  ("/variable-sets/{id}/variables",                           May(AdministerVariables),       Unit),
    get   ("/variable-sets/{id}/variables/{variable_id}",             May(Read),                      Unit),
    patch ("/variable-sets/{id}/variables/{variable_id}",             May(AdministerVariables),       Unit),
    delete("/variable-sets/{id}/variables/{variable_id}",             May(AdministerVariables),       Unit),
    get   ("/variable-sets/{id}/workspaces",                          May(Read),                      Unit),
    put   ("/variable-sets/{id}/workspaces/{workspace_id}",           May(AdministerVariables),       Unit),
    delete("/variable-sets/{id}/workspaces/{workspace_id}",           May(AdministerVariables),       Unit),
    get   ("/variables",                                              May(Read),                      Unit),
    post  ("/variables",                                              May(AdministerVariables),       Unit),
    get   ("/variables/{id}",                                         May(Read),                      Unit),
    patch ("/variables/{id}",                                         May(AdministerVariables),       Unit),
    delete("/variables/{id}",                                         May(AdministerVariables),       Unit),
    get   ("/workspaces",                                             May(Read),                      Listed),
    post  ("/workspaces",                                             May(AdministerWorkspaces),      Unit),
    post  ("/workspaces/discover",                                    May(AdministerWorkspaces),      Unit),
    post  ("/workspaces/import",                                      May(AdministerWorkspaces),      Unit),
    get   ("/workspaces/{id}",                                        May(Read),                      Workspace),
    put   ("/workspaces/{id}",                                        May(AdministerWorkspaces),      Workspace),
    delete("/workspaces/{id}",                                        May(AdministerWorkspaces),      Workspace),
    post  ("/workspaces/{id}/accept-next-lineage",                    May(AdministerState),           Workspace),
    // Its result is a task of the unit.
    post  ("/workspaces/{id}/branches",                               May(Read),                      Unit),
    post  ("/workspaces/{id}/lock",                                   May(ApplyRuns),                 Workspace),
    get   ("/workspaces/{id}/outputs",                                May(Read),                      Workspace),
    get   ("/workspaces/{id}/quarantined-states",                     May(Read),                      Workspace),
    get   ("/workspaces/{id}/state-consumers",                        May(Read),                      Workspace),
    put   ("/workspaces/{id}/state-consumers",                        May(AdministerState),           Workspace),
    get   ("/workspaces/{id}/state-lock",                             May(Read),                      Workspace),
    delete("/workspaces/{id}/state-lock",                             May(AdministerState),           Workspace),
    get   ("/workspaces/{id}/state-versions",                         May(Read),                      Workspace),
    post  ("/workspaces/{id}/unblock",                                May(AdministerState),           Workspace),
    post  ("/workspaces/{id}/unlock",                                 May(ApplyRuns),                 Workspace),
    get   ("/workspaces/{id}/variables",                              May(Read),                      Workspace),
    post  ("/workspaces/{id}/variables",                              May(WriteWorkspaceVariables),   Workspace),
    get   ("/workspaces/{id}/variables/effective",                    May(Read),                      Workspace),
    get   ("/workspaces/{id}/variables/{variable_id}",                May(Read),                      Workspace),
    patch ("/workspaces/{id}/variables/{variable_id}",                May(WriteWorkspaceVariables),   Workspace),
    delete("/workspaces/{id}/variables/{variable_id}",                May(WriteWorkspaceVariables),   Workspace),
];
