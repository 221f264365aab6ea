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
    SIGN_IN: 0 = Post "/api/v1/auth/token";
    REFRESH_SESSION: 0 = Post "/api/v1/auth/refresh";
    SIGN_OUT: 0 = Post "/api/v1/auth/logout";
    GET_ME: 0 = Get "/api/v1/me";

    LIST_API_KEYS: 0 = Get "/api/v1/api-keys";
    CREATE_API_KEY: 0 = Post "/api/v1/api-keys";
    GET_API_KEY: 1 = Get "/api/v1/api-keys/{id}";
    REVOKE_API_KEY: 1 = Delete "/api/v1/api-keys/{id}";
    REGENERATE_API_KEY: 1 = Post "/api/v1/api-keys/{id}/regenerate";
    ROTATE_API_KEY: 1 = Post "/api/v1/api-keys/{id}/rotate";

    LIST_BUSINESS_UNITS: 0 = Get "/api/v1/business-units";
    CREATE_BUSINESS_UNIT: 0 = Post "/api/v1/business-units";
    UPDATE_BUSINESS_UNIT: 1 = Put "/api/v1/business-units/{id}";

    LIST_WORKSPACES: 0 = Get "/api/v1/workspaces";
    CREATE_WORKSPACE: 0 = Post "/api/v1/workspaces";
    DISCOVER_WORKSPACES: 0 = Post "/api/v1/workspaces/discover";
    IMPORT_WORKSPACES: 0 = Post "/api/v1/workspaces/import";
    GET_WORKSPACE: 1 = Get "/api/v1/workspaces/{id}";
    UPDATE_WORKSPACE: 1 = Put "/api/v1/workspaces/{id}";
    DELETE_WORKSPACE: 1 = Delete "/api/v1/workspaces/{id}";
    LIST_BRANCHES: 1 = Post "/api/v1/workspaces/{id}/branches";
    UNBLOCK_WORKSPACE: 1 = Post "/api/v1/workspaces/{id}/unblock";

    LIST_RUNS: 0 = Get "/api/v1/runs";
    TRIGGER_RUN: 0 = Post "/api/v1/runs";
    GET_RUN: 1 = Get "/api/v1/runs/{id}";
    CANCEL_RUN: 1 = Post "/api/v1/runs/{id}/cancel";
    PROMOTE_RUN: 1 = Post "/api/v1/runs/{id}/promote";
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

    LIST_TUNABLES: 0 = Get "/api/v1/runtime-config";
    GET_TUNABLE: 1 = Get "/api/v1/runtime-config/{key}";
    SET_TUNABLE: 1 = Put "/api/v1/runtime-config/{key}";
    UNSET_TUNABLE: 1 = Delete "/api/v1/runtime-config/{key}";
    TUNABLE_HISTORY: 1 = Get "/api/v1/runtime-config/{key}/history";
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
    GET_SLACK: 0 = Get "/api/v1/integrations/slack";
    UPDATE_SLACK: 0 = Put "/api/v1/integrations/slack";
    DELETE_SLACK: 0 = Delete "/api/v1/integrations/slack";
    SLACK_HISTORY: 0 = Get "/api/v1/integrations/slack/history";
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
