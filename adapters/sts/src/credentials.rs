//! The executor's side: the credentials that ECS gives a task for its role, and what they prove.

use std::ffi::CStr;
use std::net::{IpAddr, Ipv4Addr};
use std::time::Duration;

use chrono::{DateTime, Utc};
use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{AwsKeys, IdentityProof};
use reqwest::Url;
use serde::Deserialize;

use crate::endpoint;
use crate::request::{BODY, CONTENT_TYPE, TICKET};
use crate::signature::{Signed, Signer};

/// Variables that lead to credentials: who can read them can be the task.
pub const SECRET_VARIABLES: [&CStr; 3] = [RELATIVE_URI, FULL_URI, AUTHORIZATION];

const RELATIVE_URI: &CStr = c"AWS_CONTAINER_CREDENTIALS_RELATIVE_URI";
const FULL_URI: &CStr = c"AWS_CONTAINER_CREDENTIALS_FULL_URI";
const AUTHORIZATION: &CStr = c"AWS_CONTAINER_AUTHORIZATION_TOKEN";
const REGION: &str = "AWS_REGION";
/// Where the agent of ECS answers, from inside a task.
const AGENT: Ipv4Addr = Ipv4Addr::new(169, 254, 170, 2);
/// The agent is on the same machine.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A variable is missing or wrong.
#[derive(Debug, thiserror::Error)]
#[error("the environment variable {0} is missing or not valid")]
pub struct VariableError(pub &'static str);

/// Why there are no credentials. Trying again helps.
#[derive(Debug, thiserror::Error)]
#[error("the credentials of this task's role cannot be read: {0}")]
pub struct CredentialsError(String);

/// Where the credentials of this task's role are.
#[derive(Clone)]
pub struct TaskRole {
    url: Url,
    authorization: Option<String>,
    region: String,
}

impl TaskRole {
    /// What ECS says in the environment, which `find` reads. `None` where there is no role.
    pub fn from_environment(find: impl Fn(&str) -> Option<String>) -> Result<Option<Self>, VariableError> {
        let named = |name: &'static CStr| {
            let name = name.to_str().unwrap_or_default();
            find(name).map(|value| (name, value))
        };
        let (url, authorization) = match (named(RELATIVE_URI), named(FULL_URI)) {
            (Some((name, path)), _) => (relative(&path).ok_or(VariableError(name))?, None),
            (None, Some((name, url))) => {
                let authorization = named(AUTHORIZATION).map(|(_, value)| value);
                (full(&url).ok_or(VariableError(name))?, authorization)
            }
            (None, None) => return Ok(None),
        };
        let region = find(REGION).ok_or(VariableError(REGION))?;
        Ok(Some(Self { url, authorization, region }))
    }

    /// Reads the credentials, once. The default of rustls must be installed.
    pub async fn credentials(&self) -> Result<Credentials, CredentialsError> {
        let failed = |error: reqwest::Error| CredentialsError(error.without_url().to_string());
        let http = reqwest::Client::builder()
            .no_proxy()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .build()
            .map_err(failed)?;
        let mut request = http.get(self.url.clone());
        if let Some(authorization) = &self.authorization {
            request = request.header(reqwest::header::AUTHORIZATION, authorization);
        }
        let answer = request.send().await.map_err(failed)?;
        if !answer.status().is_success() {
            return Err(CredentialsError(format!("the answer was {}", answer.status())));
        }
        let answer: Answer = answer.json().await.map_err(failed)?;
        let keys = AwsKeys {
            access_key_id: answer.access_key_id,
            secret_access_key: answer.secret_access_key,
            session_token: Some(answer.token),
        };
        Ok(Credentials { keys, region: self.region.clone() })
    }
}

/// The secret is in the path: a resource of the agent that only this task knows.
fn relative(path: &str) -> Option<Url> {
    let url = Url::parse(&format!("http://{AGENT}")).ok()?;
    // Joined, `//host` would be another host.
    Some(url.join(path).ok()?)
        .filter(|url| path.starts_with('/') && url.host_str() == Some(&AGENT.to_string()))
}

/// In plain text only to this machine.
fn full(url: &str) -> Option<Url> {
    let url = Url::parse(url).ok()?;
    let host = url.host_str()?.trim_matches(['[', ']']).to_owned();
    let is_near = host == "localhost"
        || host.parse::<IpAddr>().is_ok_and(|address| address.is_loopback() || address == IpAddr::V4(AGENT));
    (url.scheme() == "https" || (url.scheme() == "http" && is_near)).then_some(url)
}

#[derive(Deserialize)]
#[serde(rename_all = "PascalCase")]
struct Answer {
    access_key_id: String,
    secret_access_key: String,
    token: String,
}

/// The credentials of this task's role. They go nowhere but into signatures.
pub struct Credentials {
    keys: AwsKeys,
    region: String,
}

impl Credentials {
    /// What signs, for whoever may ask STS for more.
    pub fn keys(&self) -> &AwsKeys {
        &self.keys
    }

    /// Proves for one ticket who we are. AWS takes it for a few minutes around `at`.
    pub fn prove(&self, ticket: &str, at: DateTime<Utc>) -> IdentityProof {
        let date = at.format("%Y%m%dT%H%M%SZ").to_string();
        let token = self.keys.session_token.clone().unwrap_or_default();
        let (host, ticket) = (endpoint::host(&self.region), Sha256Digest::of(ticket.as_bytes()).to_string());
        let headers = [
            ("content-type", CONTENT_TYPE),
            ("host", host.as_str()),
            ("x-amz-date", date.as_str()),
            ("x-amz-security-token", token.as_str()),
            (TICKET, ticket.as_str()),
        ];
        let signed = Signed { method: "POST", query: "", headers: &headers, body: BODY };
        let authorization = Signer { keys: &self.keys, region: &self.region }.authorization(&date, &signed);
        IdentityProof { authorization, date, security_token: token }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn role(variables: &[(&str, &str)]) -> Result<Option<TaskRole>, VariableError> {
        TaskRole::from_environment(|wanted| {
            variables.iter().find(|(name, _)| *name == wanted).map(|(_, value)| (*value).to_owned())
        })
    }

    fn url(variable: &str, value: &str) -> Option<String> {
        let found = role(&[(variable, value), ("AWS_REGION", "eu-central-1")]);
        found.ok().flatten().map(|role| role.url.to_string())
    }

    #[test]
    fn a_process_without_a_role_proves_nothing_and_one_without_a_region_cannot() {
        assert!(role(&[("AWS_REGION", "eu-central-1")]).expect("fine").is_none());
        let error = role(&[("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", "/x")]).err().expect("refused");
        assert!(error.to_string().contains("AWS_REGION"), "{error}");
    }

    #[test]
    fn a_relative_address_is_the_agent_s_and_no_other() {
        let url = |path| url("AWS_CONTAINER_CREDENTIALS_RELATIVE_URI", path);
        assert_eq!(url("/v2/credentials/a-b").as_deref(), Some("http://169.254.170.2/v2/credentials/a-b"));
        for elsewhere in ["//192.0.2.1/x", "http://192.0.2.1/x", "@192.0.2.1/x", "x"] {
            assert_eq!(url(elsewhere), None, "{elsewhere}");
        }
    }

    #[test]
    fn a_full_address_is_near_or_encrypted() {
        let url = |full| url("AWS_CONTAINER_CREDENTIALS_FULL_URI", full);
        for near in
            ["http://127.0.0.1:9/x", "http://[::1]:9/x", "http://localhost/x", "http://169.254.170.2/x"]
        {
            assert_eq!(url(near).as_deref(), Some(near));
        }
        assert_eq!(url("https://192.0.2.1/x").as_deref(), Some("https://192.0.2.1/x"));
        for far in ["http://192.0.2.1/x", "http://127.0.0.1.example.com/x", "file:///x", "x"] {
            assert_eq!(url(far), None, "{far}");
        }
    }
}
