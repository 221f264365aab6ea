//! Every call that the CLI makes: method, path, and how many values the path takes.
//!
//! Only this file can build a [`Route`], and [`super::Client`] takes nothing else, so a call that is not declared here
//! cannot be made. The contract test compares [`TABLE`] with the server's OpenAPI document.

use std::fmt::Write as _;

/// A request method.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Reads.
    Get,
    /// Creates or acts.
    Post,
    /// Replaces.
    Put,
    /// Changes a part.
    Patch,
    /// Removes.
    Delete,
}

impl Method {
    /// As OpenAPI and HTTP write it, in upper case.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Get => "GET",
            Self::Post => "POST",
            Self::Put => "PUT",
            Self::Patch => "PATCH",
            Self::Delete => "DELETE",
        }
    }
}

/// One declared call, whose path takes `N` values.
#[derive(Clone, Copy, Debug)]
pub struct Route<const N: usize> {
    method: Method,
    template: &'static str,
}

impl<const N: usize> Route<N> {
    const fn new(method: Method, template: &'static str) -> Self {
        assert!(placeholders(template) == N, "the template and its number of values differ");
        Self { method, template }
    }

    /// Its method.
    pub fn method(&self) -> Method {
        self.method
    }

    /// The path with its values filled in, each as one percent-encoded segment.
    pub fn path(&self, values: [&str; N]) -> String {
        let mut values = values.into_iter();
        let segments: Vec<String> = self
            .template
            .split('/')
            .map(|segment| {
                if segment.starts_with('{') {
                    values.next().map(encode).unwrap_or_default()
                } else {
                    segment.into()
                }
            })
            .collect();
        segments.join("/")
    }
}

const fn placeholders(template: &str) -> usize {
    let bytes = template.as_bytes();
    let (mut index, mut found) = (0, 0);
    while index < bytes.len() {
        if bytes[index] == b'{' {
            found += 1;
        }
        index += 1;
    }
    found
}

fn encode(value: &str) -> String {
    let mut out = String::with_capacity(value.len());
    for byte in value.bytes() {
        if byte.is_ascii_alphanumeric() || b"-_.~".contains(&byte) {
            out.push(char::from(byte));
        } else {
            let _ = write!(out, "%{byte:02X}");
        }
    }
    out
}

macro_rules! routes {
    ($($name:ident: $count:literal = $method:ident $path:literal;)*) => {
        $(
            #[doc = concat!("`", $path, "`")]
            pub const $name: Route<$count> = Route::new(Method::$method, $path);
        )*

        /// Every declared call, for the contract test.
        pub const TABLE: &[(Method, &str)] = &[$((Method::$method, $path)),*];
    };
}

routes! {
    AUTH_CONFIG: 0 = Get "/api/v1/auth/config";
    SIGN_IN: 0 = Post "/api/v1/auth/token";
    TRADE_CODE: 0 = Post "/api/v1/auth/oidc/token";
    REFRESH_SESSION: 0 = Post "/api/v1/auth/refresh";
    SIGN_OUT: 0 = Post "/api/v1/auth/logout";
    SIGN_OUT_EVERYWHERE: 0 = Post "/api/v1/auth/logout-all";
    ACCEPT_INVITE: 0 = Post "/api/v1/auth/accept-invite";
    GET_ME: 0 = Get "/api/v1/me";
    CHANGE_PASSWORD: 0 = Put "/api/v1/me/password";
    LIST_SESSIONS: 0 = Get "/api/v1/sessions";
    END_SESSION: 1 = Delete "/api/v1/sessions/{id}";

    LIST_USERS: 0 = Get "/api/v1/users";
    CREATE_USER: 0 = Post "/api/v1/users";
    GET_USER: 1 = Get "/api/v1/users/{id}";
    UPDATE_USER: 1 = Patch "/api/v1/users/{id}";
    DELETE_USER: 1 = Delete "/api/v1/users/{id}";
    DISABLE_USER: 1 = Post "/api/v1/users/{id}/disable";
    ENABLE_USER: 1 = Post "/api/v1/users/{id}/enable";
    SET_PASSWORD: 1 = Put "/api/v1/users/{id}/password";
    INVITE_USER: 1 = Post "/api/v1/users/{id}/invite";
    REVOKE_INVITE: 1 = Delete "/api/v1/users/{id}/invite";
    END_USER_SESSIONS: 1 = Delete "/api/v1/users/{id}/sessions";

    LIST_API_KEYS: 0 = Get "/api/v1/api-keys";
    CREATE_API_KEY: 0 = Post "/api/v1/api-keys";
    GET_API_KEY: 1 = Get "/api/v1/api-keys/{id}";
    REVOKE_API_KEY: 1 = Delete "/api/v1/api-keys/{id}";
    REGENERATE_API_KEY: 1 = Post "/api/v1/api-keys/{id}/regenerate";
    ROTATE_API_KEY: 1 = Post "/api/v1/api-keys/{id}/rotate";

    LIST_CI_TRUST_RULES: 0 = Get "/api/v1/ci-trust-rules";
    CREATE_CI_TRUST_RULE: 0 = Post "/api/v1/ci-trust-rules";
    GET_CI_TRUST_RULE: 1 = Get "/api/v1/ci-trust-rules/{id}";
    DELETE_CI_TRUST_RULE: 1 = Delete "/api/v1/ci-trust-rules/{id}";

    LIST_BUSINESS_UNITS: 0 = Get "/api/v1/business-units";
    CREATE_BUSINESS_UNIT: 0 = Post "/api/v1/business-units";
    RENAME_BUSINESS_UNIT: 1 = Put "/api/v1/business-units/{id}";
    ARCHIVE_BUSINESS_UNIT: 1 = Post "/api/v1/business-units/{id}/archive";
    UNARCHIVE_BUSINESS_UNIT: 1 = Post "/api/v1/business-units/{id}/unarchive";

    LIST_GIT_CREDENTIALS: 0 = Get "/api/v1/git-credentials";
    CREATE_GIT_CREDENTIAL: 0 = Post "/api/v1/git-credentials";
    GET_GIT_CREDENTIAL: 1 = Get "/api/v1/git-credentials/{id}";
    UPDATE_GIT_CREDENTIAL: 1 = Patch "/api/v1/git-credentials/{id}";
    DELETE_GIT_CREDENTIAL: 1 = Delete "/api/v1/git-credentials/{id}";
    GET_GIT_CREDENTIAL_USAGE: 1 = Get "/api/v1/git-credentials/{id}/usage";
    TEST_GIT_CREDENTIAL: 1 = Post "/api/v1/git-credentials/{id}/test";

    LIST_WORKSPACES: 0 = Get "/api/v1/workspaces";
    CREATE_WORKSPACE: 0 = Post "/api/v1/workspaces";
    DISCOVER_WORKSPACES: 0 = Post "/api/v1/workspaces/discover";
    IMPORT_WORKSPACES: 0 = Post "/api/v1/workspaces/import";
    GET_WORKSPACE: 1 = Get "/api/v1/workspaces/{id}";
    UPDATE_WORKSPACE: 1 = Put "/api/v1/workspaces/{id}";
    DELETE_WORKSPACE: 1 = Delete "/api/v1/workspaces/{id}";
    LIST_BRANCHES: 1 = Post "/api/v1/workspaces/{id}/branches";
    LIST_STATE_CONSUMERS: 1 = Get "/api/v1/workspaces/{id}/state-consumers";
    SHARE_STATE: 1 = Put "/api/v1/workspaces/{id}/state-consumers";
    LOCK_WORKSPACE: 1 = Post "/api/v1/workspaces/{id}/lock";
    UNLOCK_WORKSPACE: 1 = Post "/api/v1/workspaces/{id}/unlock";
    UNBLOCK_WORKSPACE: 1 = Post "/api/v1/workspaces/{id}/unblock";

    LIST_AWS_ACCOUNTS: 0 = Get "/api/v1/aws-accounts";
    CREATE_AWS_ACCOUNT: 0 = Post "/api/v1/aws-accounts";
    GET_AWS_ACCOUNT: 1 = Get "/api/v1/aws-accounts/{id}";
    UPDATE_AWS_ACCOUNT: 1 = Put "/api/v1/aws-accounts/{id}";
    DELETE_AWS_ACCOUNT: 1 = Delete "/api/v1/aws-accounts/{id}";
    LIST_AZURE_SUBSCRIPTIONS: 0 = Get "/api/v1/azure-subscriptions";
    CREATE_AZURE_SUBSCRIPTION: 0 = Post "/api/v1/azure-subscriptions";
    GET_AZURE_SUBSCRIPTION: 1 = Get "/api/v1/azure-subscriptions/{id}";
    UPDATE_AZURE_SUBSCRIPTION: 1 = Put "/api/v1/azure-subscriptions/{id}";
    DELETE_AZURE_SUBSCRIPTION: 1 = Delete "/api/v1/azure-subscriptions/{id}";
    LIST_GCP_PROJECTS: 0 = Get "/api/v1/gcp-projects";
    CREATE_GCP_PROJECT: 0 = Post "/api/v1/gcp-projects";
    GET_GCP_PROJECT: 1 = Get "/api/v1/gcp-projects/{id}";
    UPDATE_GCP_PROJECT: 1 = Put "/api/v1/gcp-projects/{id}";
    DELETE_GCP_PROJECT: 1 = Delete "/api/v1/gcp-projects/{id}";
    LIST_CLUSTERS: 0 = Get "/api/v1/clusters";
    CREATE_CLUSTER: 0 = Post "/api/v1/clusters";
    GET_CLUSTER: 1 = Get "/api/v1/clusters/{id}";
    UPDATE_CLUSTER: 1 = Put "/api/v1/clusters/{id}";
    DELETE_CLUSTER: 1 = Delete "/api/v1/clusters/{id}";
    TEST_AWS_ACCOUNT: 1 = Post "/api/v1/aws-accounts/{id}/test";
    TEST_AZURE_SUBSCRIPTION: 1 = Post "/api/v1/azure-subscriptions/{id}/test";
    TEST_GCP_PROJECT: 1 = Post "/api/v1/gcp-projects/{id}/test";
    TEST_CLUSTER: 1 = Post "/api/v1/clusters/{id}/test";
    LIST_VARIABLES: 0 = Get "/api/v1/variables";
    CREATE_VARIABLE: 0 = Post "/api/v1/variables";
    GET_VARIABLE: 1 = Get "/api/v1/variables/{id}";
    UPDATE_VARIABLE: 1 = Patch "/api/v1/variables/{id}";
    DELETE_VARIABLE: 1 = Delete "/api/v1/variables/{id}";
    LIST_WORKSPACE_VARIABLES: 1 = Get "/api/v1/workspaces/{id}/variables";
    CREATE_WORKSPACE_VARIABLE: 1 = Post "/api/v1/workspaces/{id}/variables";
    GET_EFFECTIVE_VARIABLES: 1 = Get "/api/v1/workspaces/{id}/variables/effective";
    GET_WORKSPACE_VARIABLE: 2 = Get "/api/v1/workspaces/{id}/variables/{variable_id}";
    UPDATE_WORKSPACE_VARIABLE: 2 = Patch "/api/v1/workspaces/{id}/variables/{variable_id}";
    DELETE_WORKSPACE_VARIABLE: 2 = Delete "/api/v1/workspaces/{id}/variables/{variable_id}";
    LIST_VARIABLE_SETS: 0 = Get "/api/v1/variable-sets";
    CREATE_VARIABLE_SET: 0 = Post "/api/v1/variable-sets";
    GET_VARIABLE_SET: 1 = Get "/api/v1/variable-sets/{id}";
    UPDATE_VARIABLE_SET: 1 = Patch "/api/v1/variable-sets/{id}";
    DELETE_VARIABLE_SET: 1 = Delete "/api/v1/variable-sets/{id}";
    LIST_SET_VARIABLES: 1 = Get "/api/v1/variable-sets/{id}/variables";
    CREATE_SET_VARIABLE: 1 = Post "/api/v1/variable-sets/{id}/variables";
    GET_SET_VARIABLE: 2 = Get "/api/v1/variable-sets/{id}/variables/{variable_id}";
    UPDATE_SET_VARIABLE: 2 = Patch "/api/v1/variable-sets/{id}/variables/{variable_id}";
    DELETE_SET_VARIABLE: 2 = Delete "/api/v1/variable-sets/{id}/variables/{variable_id}";
    LIST_VARIABLE_SET_WORKSPACES: 1 = Get "/api/v1/variable-sets/{id}/workspaces";
    ATTACH_VARIABLE_SET: 2 = Put "/api/v1/variable-sets/{id}/workspaces/{workspace_id}";
    DETACH_VARIABLE_SET: 2 = Delete "/api/v1/variable-sets/{id}/workspaces/{workspace_id}";

    LIST_RUNS: 0 = Get "/api/v1/runs";
    TRIGGER_RUN: 0 = Post "/api/v1/runs";
    GET_RUN: 1 = Get "/api/v1/runs/{id}";
    CANCEL_RUN: 1 = Post "/api/v1/runs/{id}/cancel";
    PROMOTE_RUN: 1 = Post "/api/v1/runs/{id}/promote";
    LIST_RUN_VARIABLES: 1 = Get "/api/v1/runs/{id}/variables";
    LIST_STEPS: 1 = Get "/api/v1/runs/{id}/steps";
    READ_LOG: 1 = Get "/api/v1/runs/{id}/logs";
    GET_PLAN: 1 = Get "/api/v1/runs/{id}/plan";
    LIST_ARTIFACTS: 1 = Get "/api/v1/runs/{id}/artifacts";
    LIST_UNRECORDED: 1 = Get "/api/v1/runs/{id}/unrecorded-resources";
    DOWNLOAD_ARTIFACT: 2 = Get "/api/v1/runs/{id}/artifacts/{kind}";
    APPROVE_RUN: 1 = Post "/api/v1/approvals/{run_id}/approve";
    REJECT_RUN: 1 = Post "/api/v1/approvals/{run_id}/reject";

    LIST_STATE_VERSIONS: 1 = Get "/api/v1/workspaces/{id}/state-versions";
    GET_STATE_VERSION: 1 = Get "/api/v1/state-versions/{id}";
    DOWNLOAD_STATE_VERSION: 1 = Get "/api/v1/state-versions/{id}/download";
    DIFF_STATE_VERSION: 1 = Get "/api/v1/state-versions/{id}/diff";
    ROLL_BACK_STATE: 1 = Post "/api/v1/state-versions/{id}/rollback";
    VERSION_OUTPUTS: 1 = Get "/api/v1/state-versions/{id}/outputs";
    WORKSPACE_OUTPUTS: 1 = Get "/api/v1/workspaces/{id}/outputs";
    SEARCH_RESOURCES: 0 = Get "/api/v1/resources";
    LIST_QUARANTINED_STATES: 1 = Get "/api/v1/workspaces/{id}/quarantined-states";
    PROMOTE_QUARANTINED_STATE: 1 = Post "/api/v1/quarantined-states/{id}/promote";
    DISCARD_QUARANTINED_STATE: 1 = Post "/api/v1/quarantined-states/{id}/discard";
    ACCEPT_NEXT_LINEAGE: 1 = Post "/api/v1/workspaces/{id}/accept-next-lineage";
    GET_STATE_LOCK: 1 = Get "/api/v1/workspaces/{id}/state-lock";
    RELEASE_STATE_LOCK: 1 = Delete "/api/v1/workspaces/{id}/state-lock";

    LIST_TASKS: 0 = Get "/api/v1/tasks";
    GET_TASK: 1 = Get "/api/v1/tasks/{id}";
    REPLAY_TASK: 1 = Post "/api/v1/tasks/{id}/replay";

    LIST_AUDIT_ENTRIES: 0 = Get "/api/v1/audit";
    VERIFY_AUDIT: 0 = Get "/api/v1/audit/verify";
    LIST_AUDIT_CHAINS: 0 = Get "/api/v1/audit/chains";
    EXPORT_AUDIT: 0 = Get "/api/v1/audit/export";

    GET_REKEY: 0 = Get "/api/v1/admin/rekey";
    REQUEST_REKEY: 0 = Post "/api/v1/admin/rekey";

    LIST_TUNABLES: 0 = Get "/api/v1/runtime-config";
    GET_TUNABLE: 1 = Get "/api/v1/runtime-config/{key}";
    SET_TUNABLE: 1 = Put "/api/v1/runtime-config/{key}";
    UNSET_TUNABLE: 1 = Delete "/api/v1/runtime-config/{key}";
    TUNABLE_HISTORY: 1 = Get "/api/v1/runtime-config/{key}/history";
    LIST_ISSUER_KEYS: 0 = Get "/api/v1/auth/issuer-keys";
    ROTATE_ISSUER_KEY: 0 = Post "/api/v1/auth/issuer-keys";
    ROTATE_JWT_SECRET: 0 = Post "/api/v1/auth/jwt-secrets";

    GET_CHECKOV: 0 = Get "/api/v1/integrations/checkov";
    UPDATE_CHECKOV: 0 = Put "/api/v1/integrations/checkov";
    DELETE_CHECKOV: 0 = Delete "/api/v1/integrations/checkov";
    CHECKOV_HISTORY: 0 = Get "/api/v1/integrations/checkov/history";
    GET_OPA: 0 = Get "/api/v1/integrations/opa";
    UPDATE_OPA: 0 = Put "/api/v1/integrations/opa";
    DELETE_OPA: 0 = Delete "/api/v1/integrations/opa";
    OPA_HISTORY: 0 = Get "/api/v1/integrations/opa/history";
    GET_INFRACOST: 0 = Get "/api/v1/integrations/infracost";
    UPDATE_INFRACOST: 0 = Put "/api/v1/integrations/infracost";
    DELETE_INFRACOST: 0 = Delete "/api/v1/integrations/infracost";
    INFRACOST_HISTORY: 0 = Get "/api/v1/integrations/infracost/history";
    TEST_INFRACOST: 0 = Post "/api/v1/integrations/infracost/test";
    GET_SLACK: 0 = Get "/api/v1/integrations/slack";
    UPDATE_SLACK: 0 = Put "/api/v1/integrations/slack";
    DELETE_SLACK: 0 = Delete "/api/v1/integrations/slack";
    SLACK_HISTORY: 0 = Get "/api/v1/integrations/slack/history";
    TEST_SLACK: 0 = Post "/api/v1/integrations/slack/test";
    GET_SMTP: 0 = Get "/api/v1/integrations/smtp";
    UPDATE_SMTP: 0 = Put "/api/v1/integrations/smtp";
    DELETE_SMTP: 0 = Delete "/api/v1/integrations/smtp";
    SMTP_HISTORY: 0 = Get "/api/v1/integrations/smtp/history";
    GET_WEBHOOK: 0 = Get "/api/v1/integrations/webhook";
    UPDATE_WEBHOOK: 0 = Put "/api/v1/integrations/webhook";
    DELETE_WEBHOOK: 0 = Delete "/api/v1/integrations/webhook";
    WEBHOOK_HISTORY: 0 = Get "/api/v1/integrations/webhook/history";
    GET_INFRA_REPO: 0 = Get "/api/v1/integrations/infra-repo";
    UPDATE_INFRA_REPO: 0 = Put "/api/v1/integrations/infra-repo";
    DELETE_INFRA_REPO: 0 = Delete "/api/v1/integrations/infra-repo";
    INFRA_REPO_HISTORY: 0 = Get "/api/v1/integrations/infra-repo/history";
    GET_NOTIFICATION: 0 = Get "/api/v1/integrations/notification";
    UPDATE_NOTIFICATION: 0 = Put "/api/v1/integrations/notification";
    DELETE_NOTIFICATION: 0 = Delete "/api/v1/integrations/notification";
    NOTIFICATION_HISTORY: 0 = Get "/api/v1/integrations/notification/history";
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_stays_one_segment_of_the_path() {
        assert_eq!(
            DOWNLOAD_ARTIFACT.path(["0190", "a/../b?c"]),
            "/api/v1/runs/0190/artifacts/a%2F..%2Fb%3Fc"
        );
    }

    #[test]
    fn no_call_is_declared_twice() {
        for (index, route) in TABLE.iter().enumerate() {
            assert!(!TABLE[index + 1..].contains(route), "{route:?}");
        }
    }
}
