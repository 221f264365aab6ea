//! Roles that the fake knows, and the sessions that it gave.

use std::collections::BTreeMap;

use aws_sdk_ecs::config::Credentials as Keys;

use super::{FakeSts, Principal, Service};

/// A role that somebody may assume.
#[derive(Clone)]
pub(super) struct Role {
    /// What its trust policy asks for; `None` lets in whoever says nothing.
    external_id: Option<String>,
    /// ARN of the only principal that it trusts.
    trusts: String,
}

/// A session that was given: what was asked for, and its keys.
#[derive(Clone, Debug)]
pub struct GivenSession {
    pub asked_by: String,
    pub role_arn: String,
    pub name: String,
    pub duration_seconds: String,
    pub policy: Option<String>,
    pub tags: BTreeMap<String, String>,
    pub access_key_id: String,
    pub secret_access_key: String,
    pub session_token: String,
}

impl FakeSts {
    /// A role that trusts one principal, who must know the external id.
    pub fn role(&self, role_arn: &str, trusts: &str, external_id: Option<&str>) {
        let role = Role { external_id: external_id.map(str::to_owned), trusts: trusts.to_owned() };
        self.service().roles.insert(role_arn.to_owned(), role);
    }

    /// Sessions in the order in which they were given.
    pub fn sessions(&self) -> Vec<GivenSession> {
        self.service().sessions.clone()
    }

    /// Keys of a user, without a token.
    pub fn user(&self, arn: &str) -> Principal {
        let number = self.service().principals.len();
        let (key_id, secret) = (format!("AKIA{number:016}"), format!("secret+of/user+{number:025}"));
        self.principal_with(Keys::new(key_id, secret, None, None, "a test"), arn)
    }
}

/// The answer to `AssumeRole`, or the error's code and sentence.
pub(super) fn assume(
    service: &mut Service,
    url: &str,
    caller: &str,
    form: &BTreeMap<String, String>,
) -> Result<String, (&'static str, String)> {
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let role_arn = field("RoleArn");
    let denied = || {
        let why =
            format!("User: {caller} is not authorized to perform: sts:AssumeRole on resource: {role_arn}");
        ("AccessDenied", why)
    };
    let role = service.roles.get(&role_arn).ok_or_else(denied)?;
    if role.trusts != caller || role.external_id.as_ref() != form.get("ExternalId") {
        return Err(denied());
    }
    let tags = (1..)
        .map_while(|n| {
            Some((form.get(&format!("Tags.member.{n}.Key"))?, form.get(&format!("Tags.member.{n}.Value"))?))
        })
        .map(|(key, value)| (key.clone(), value.clone()))
        .collect();
    Ok(give(service, url, caller, form, tags, "AssumeRole"))
}

/// Gives a session and answers with it.
pub(super) fn give(
    service: &mut Service,
    url: &str,
    caller: &str,
    form: &BTreeMap<String, String>,
    tags: BTreeMap<String, String>,
    action: &str,
) -> String {
    let field = |name: &str| form.get(name).cloned().unwrap_or_default();
    let (role_arn, name) = (field("RoleArn"), field("RoleSessionName"));
    let number = service.sessions.len();
    let session = GivenSession {
        asked_by: caller.to_owned(),
        role_arn: role_arn.clone(),
        name: name.clone(),
        duration_seconds: field("DurationSeconds"),
        policy: form.get("Policy").cloned(),
        tags,
        access_key_id: format!("ASIASESSION{number:09}"),
        secret_access_key: format!("secret+of/session+{number:09}"),
        session_token: format!("token+of/session+{number:09}=="),
    };
    let arn = role_arn.replace(":iam:", ":sts:").replace(":role/", ":assumed-role/") + "/" + &name;
    let GivenSession { access_key_id, secret_access_key, session_token, .. } = &session;
    let keys = Keys::new(access_key_id, secret_access_key, Some(session_token.clone()), None, "a test");
    let agent = format!("{url}/credentials/{access_key_id}");
    service.principals.insert(access_key_id.clone(), Principal { keys, arn: arn.clone(), agent });
    let answer = format!(
        "<{action}Response xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\"><{action}Result>
           <AssumedRoleUser><AssumedRoleId>AROA:x</AssumedRoleId><Arn>{arn}</Arn></AssumedRoleUser>
           <Credentials><AccessKeyId>{access_key_id}</AccessKeyId>
             <SecretAccessKey>{secret_access_key}</SecretAccessKey><SessionToken>{session_token}</SessionToken>
             <Expiration>2099-01-01T00:00:00Z</Expiration></Credentials>
         </{action}Result></{action}Response>"
    );
    service.sessions.push(session);
    answer
}
