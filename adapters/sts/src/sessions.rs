//! Asking STS with keys at hand: who they are, and for the session of a role.

use chrono::{DateTime, Utc};
use plumbline_core::protocol::{AwsKeys, AwsRole};
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HeaderValue};
use reqwest::{RequestBuilder, Url};

use crate::endpoint::{self, Answer, Endpoint, EndpointError, Refusal};
use crate::request;
use crate::signature::{Signed, Signer};
use crate::xml::{element, plain, unescape};

const VERSION: (&str, &str) = ("Version", "2011-06-15");
/// Longest sentence of AWS that is repeated.
const MESSAGE_CHARS_MAX: usize = 400;

/// Why STS gave nothing. Holds nothing secret.
#[derive(Debug, PartialEq, Eq, thiserror::Error)]
pub enum StsError {
    /// It said no, and will again.
    #[error("AWS refused: {0}")]
    Refused(String),
    /// Passes by itself.
    #[error("AWS cannot be asked: {0}")]
    Unavailable(String),
}

/// Who signs with some keys.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Caller {
    /// The account.
    pub account: String,
    /// The user or session.
    pub arn: String,
}

/// The keys of a role's session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoleSession {
    /// Good until the session ends.
    pub keys: AwsKeys,
    /// What AWS calls it.
    pub arn: String,
}

/// AWS's security token service in one region.
#[derive(Clone, Debug)]
pub struct Sts {
    endpoint: Endpoint,
    region: String,
}

impl Sts {
    /// The service of a region; `endpoint` is another address for it. The default of rustls must be installed.
    pub fn new(region: &str, endpoint: Option<&str>) -> Result<Self, EndpointError> {
        Ok(Self { endpoint: Endpoint::new(region, endpoint)?, region: region.to_owned() })
    }

    /// Who the keys are.
    pub async fn caller(&self, keys: &AwsKeys, at: DateTime<Utc>) -> Result<Caller, StsError> {
        let text = self.ask(keys, at, &[("Action", "GetCallerIdentity"), VERSION]).await?;
        let caller = element(&text, "GetCallerIdentityResult").and_then(|result| {
            Some(Caller { account: plain(result, "Account")?.into(), arn: plain(result, "Arn")?.into() })
        });
        caller.ok_or_else(unreadable)
    }

    /// A session of the role.
    pub async fn assume(
        &self,
        keys: &AwsKeys,
        at: DateTime<Utc>,
        role: &AwsRole,
    ) -> Result<RoleSession, StsError> {
        let duration = role.duration_seconds.to_string();
        let mut form: Vec<(String, String)> = [
            ("Action", "AssumeRole"),
            VERSION,
            ("RoleArn", &role.role_arn),
            ("RoleSessionName", &role.session_name),
            ("ExternalId", &role.external_id),
            ("DurationSeconds", &duration),
        ]
        .map(|(name, value)| (name.to_owned(), value.to_owned()))
        .into();
        form.extend(role.session_policy.iter().map(|policy| ("Policy".to_owned(), policy.clone())));
        for (number, (key, value)) in (1..).zip(&role.tags) {
            form.push((format!("Tags.member.{number}.Key"), key.clone()));
            form.push((format!("Tags.member.{number}.Value"), value.clone()));
        }
        let text = self.ask(keys, at, &form).await?;
        session(&text, "AssumeRoleResult")
    }

    /// A session of a role that trusts the issuer of the token. Nothing is signed: the token says who asks, and the tags.
    pub async fn assume_with_token(&self, token: &str, role: &AwsRole) -> Result<RoleSession, StsError> {
        let duration = role.duration_seconds.to_string();
        let mut form = vec![
            ("Action", "AssumeRoleWithWebIdentity"),
            VERSION,
            ("RoleArn", &role.role_arn),
            ("RoleSessionName", &role.session_name),
            ("WebIdentityToken", token),
            ("DurationSeconds", &duration),
        ];
        form.extend(role.session_policy.iter().map(|policy| ("Policy", policy.as_str())));
        let call = self.endpoint.post().header(CONTENT_TYPE, request::CONTENT_TYPE).body(url_form(&form));
        session(&answer(call).await?, "AssumeRoleWithWebIdentityResult")
    }

    async fn ask(
        &self,
        keys: &AwsKeys,
        at: DateTime<Utc>,
        form: &[(impl AsRef<str>, impl AsRef<str>)],
    ) -> Result<String, StsError> {
        let body = url_form(form);
        let date = at.format("%Y%m%dT%H%M%SZ").to_string();
        let mut headers = vec![
            ("content-type", request::CONTENT_TYPE),
            ("host", self.endpoint.host()),
            ("x-amz-date", date.as_str()),
        ];
        headers.extend(keys.session_token.as_deref().map(|token| ("x-amz-security-token", token)));
        let signer = Signer { keys, region: &self.region };
        let signed = Signed { method: "POST", query: "", headers: &headers, body: &body };
        let authorization = signer.authorization(&date, &signed);
        let mut call = self
            .endpoint
            .post()
            .header(CONTENT_TYPE, request::CONTENT_TYPE)
            .header(AUTHORIZATION, secret_header(&authorization)?)
            .header("x-amz-date", &date);
        if let Some(token) = &keys.session_token {
            call = call.header("x-amz-security-token", secret_header(token)?);
        }
        answer(call.body(body)).await
    }
}

async fn answer(call: RequestBuilder) -> Result<String, StsError> {
    match endpoint::send(call).await {
        Answer::Fine(text) => Ok(text),
        Answer::Refused(refusal) => Err(StsError::Refused(sentence(&refusal))),
        Answer::Unavailable(why) => Err(StsError::Unavailable(why)),
    }
}

/// The session in the answer's element of this name.
fn session(text: &str, result: &str) -> Result<RoleSession, StsError> {
    let session = element(text, result).and_then(|result| {
        let credentials = element(result, "Credentials")?;
        Some(RoleSession {
            keys: AwsKeys {
                access_key_id: plain(credentials, "AccessKeyId")?.into(),
                secret_access_key: plain(credentials, "SecretAccessKey")?.into(),
                session_token: Some(plain(credentials, "SessionToken")?.into()),
            },
            arn: plain(element(result, "AssumedRoleUser")?, "Arn")?.into(),
        })
    });
    session.ok_or_else(unreadable)
}

fn url_form(form: &[(impl AsRef<str>, impl AsRef<str>)]) -> String {
    // The serializer of `url` writes what STS reads; the address itself is of no use here.
    let mut url = Url::parse("https://form.invalid").expect("a valid address");
    url.query_pairs_mut().extend_pairs(form);
    url.query().unwrap_or_default().to_owned()
}

fn secret_header(value: &str) -> Result<HeaderValue, StsError> {
    let mut value = HeaderValue::from_str(value)
        .map_err(|_| StsError::Refused("the keys hold characters that no key has".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

fn unreadable() -> StsError {
    StsError::Unavailable("the answer of STS cannot be read".into())
}

/// AWS's words: they name the role and who asked for it, and that is what people need to know.
fn sentence(refusal: &Refusal) -> String {
    let message = element(&refusal.text, "Message").map(unescape).unwrap_or_default();
    let message: String = message.chars().filter(|c| !c.is_control()).take(MESSAGE_CHARS_MAX).collect();
    if message.is_empty() { refusal.said.clone() } else { format!("{}: {message}", refusal.said) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_form_is_written_as_sts_reads_it() {
        let form = url_form(&[("Policy", "{\"a\":\"b c+d\"}"), ("Tags.member.1.Key", "plumbline:unit")]);
        assert_eq!(form, "Policy=%7B%22a%22%3A%22b+c%2Bd%22%7D&Tags.member.1.Key=plumbline%3Aunit");
    }

    #[test]
    fn a_refusal_says_what_aws_says_and_no_more_than_fits() {
        let text =
            format!("<Error><Message>User &quot;x&quot; may not\u{7}{}</Message></Error>", "y".repeat(900));
        let said = sentence(&Refusal { said: "AccessDenied (403)".into(), text });
        assert!(said.starts_with("AccessDenied (403): User \"x\" may notyyy") && said.len() < 450, "{said}");
    }
}
