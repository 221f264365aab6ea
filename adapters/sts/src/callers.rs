//! The control plane's side: sends what an executor has signed, and reads who that was.
//!
//! Nothing that a stranger sends decides where a request goes or what it asks: address, method, path, body and the
//! other headers are ours.

use std::time::Duration;

use async_trait::async_trait;
use plumbline_core::digest::Sha256Digest;
use plumbline_core::ports::{CallerArn, CallerIdentity, IdentityError};
use plumbline_core::protocol::IdentityProof;
use reqwest::header::{AUTHORIZATION, CONTENT_TYPE, HOST, HeaderValue};
use reqwest::{Response, StatusCode, Url};

use crate::request::{self, ALGORITHM, BODY, SIGNED_HEADERS};

/// The whole call; the executor tries again.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Longest header that is sent.
const HEADER_BYTES_MAX: usize = 16 << 10;
/// Longest code of an error that is repeated.
const CODE_CHARS_MAX: usize = 64;
/// Codes of errors that are no judgement about the proof, whatever their status.
const PASSING: [&str; 4] =
    ["Throttling", "ThrottlingException", "RequestLimitExceeded", "ServiceUnavailable"];

/// The endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(String);

/// Asks AWS's security token service.
#[derive(Clone, Debug)]
pub struct StsCallers {
    http: reqwest::Client,
    endpoint: Url,
    host: String,
}

impl StsCallers {
    /// The service of a region; `endpoint` is another address for it, such as that of a VPC endpoint. The name that
    /// executors sign stays the region's. The default of rustls must be installed.
    pub fn new(region: &str, endpoint: Option<&str>) -> Result<Self, EndpointError> {
        let host = request::host(region);
        let regional = format!("https://{host}");
        let endpoint = Url::parse(endpoint.unwrap_or(&regional))
            .map_err(|_| EndpointError("must be an address with https://".into()))?;
        let is_local = matches!(endpoint.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if endpoint.scheme() != "https" && !(endpoint.scheme() == "http" && is_local) {
            return Err(EndpointError("must begin with https://".into()));
        }
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")));
        if is_local {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|error| EndpointError(format!("no HTTP client: {error}")))?;
        Ok(Self { http, endpoint, host })
    }
}

#[async_trait]
impl CallerIdentity for StsCallers {
    async fn identify(
        &self,
        proof: &IdentityProof,
        ticket: Sha256Digest,
    ) -> Result<CallerArn, IdentityError> {
        check_authorization(&proof.authorization)?;
        let request = self
            .http
            .post(self.endpoint.clone())
            .header(HOST, &self.host)
            .header(CONTENT_TYPE, request::CONTENT_TYPE)
            .header(AUTHORIZATION, header(&proof.authorization)?)
            .header("x-amz-date", header(&proof.date)?)
            .header("x-amz-security-token", header(&proof.security_token)?)
            .header("x-plumbline-ticket", ticket.to_string())
            .body(BODY);
        let answer = request.send().await.map_err(away)?;
        let status = answer.status();
        let text = read(answer).await?;
        if status == StatusCode::OK {
            return caller(&text)
                .map(|arn| CallerArn(arn.to_owned()))
                .ok_or_else(|| IdentityError::Unavailable("the answer of STS cannot be read".into()));
        }
        Err(refusal(status, &text))
    }
}

/// AWS looks only at the headers that a signature names; one that leaves out the ticket could be anybody's.
fn check_authorization(authorization: &str) -> Result<(), IdentityError> {
    let covers_all = authorization.strip_prefix(ALGORITHM).is_some_and(|rest| {
        let fields: Vec<&str> = rest.split(',').map(str::trim).collect();
        let [credential, headers, signature] = fields[..] else { return false };
        credential.starts_with("Credential=")
            && headers.strip_prefix("SignedHeaders=") == Some(SIGNED_HEADERS)
            && signature.strip_prefix("Signature=").is_some_and(|hex| hex.parse::<Sha256Digest>().is_ok())
    });
    if covers_all {
        return Ok(());
    }
    Err(IdentityError::Refused("the proof is not a signature over the headers that must be signed".into()))
}

fn header(value: &str) -> Result<HeaderValue, IdentityError> {
    let is_plain = !value.is_empty() && value.bytes().all(|byte| (b' '..=b'~').contains(&byte));
    let value = HeaderValue::from_str(value).ok().filter(|_| is_plain && value.len() <= HEADER_BYTES_MAX);
    let mut value =
        value.ok_or_else(|| IdentityError::Refused("a part of the proof is not a header".into()))?;
    value.set_sensitive(true);
    Ok(value)
}

async fn read(mut answer: Response) -> Result<String, IdentityError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(away)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(IdentityError::Unavailable("the answer of STS is too long".into()));
        }
    }
    String::from_utf8(bytes)
        .map_err(|_| IdentityError::Unavailable("the answer of STS cannot be read".into()))
}

fn away(error: reqwest::Error) -> IdentityError {
    IdentityError::Unavailable(error.without_url().to_string())
}

/// Only 4xx is about the proof. A redirect is none: it is not followed, for STS has nowhere to send us.
fn refusal(status: StatusCode, text: &str) -> IdentityError {
    let code = element(text, "Code").filter(|code| {
        code.len() <= CODE_CHARS_MAX && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    });
    let is_passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
        || code.is_some_and(|code| PASSING.contains(&code));
    let said = code.map_or_else(|| status.to_string(), |code| format!("{code} ({status})"));
    if status.is_client_error() && !is_passing {
        IdentityError::Refused(format!("STS refused the proof: {said}"))
    } else {
        IdentityError::Unavailable(format!("STS answered {said}"))
    }
}

/// The caller in the answer of `GetCallerIdentity`.
fn caller(xml: &str) -> Option<&str> {
    element(element(xml, "GetCallerIdentityResult")?, "Arn").filter(|arn| !arn.contains(['<', '&']))
}

/// What is in the element of this name, if there is exactly one. No XML in general: ARNs and codes hold nothing special.
fn element<'a>(xml: &'a str, name: &str) -> Option<&'a str> {
    let (_, rest) = xml.split_once(&format!("<{name}>"))?;
    let (inside, after) = rest.split_once(&format!("</{name}>"))?;
    (!after.contains(&format!("<{name}>"))).then(|| inside.trim())
}

#[cfg(test)]
mod tests {
    use super::*;

    const ANSWER: &str = "<GetCallerIdentityResponse xmlns=\"https://sts.amazonaws.com/doc/2011-06-15/\">
      <GetCallerIdentityResult><Arn>arn:aws:sts::1:assumed-role/r/s</Arn><UserId>A:s</UserId><Account>1</Account>
      </GetCallerIdentityResult><ResponseMetadata><RequestId>1</RequestId></ResponseMetadata>
      </GetCallerIdentityResponse>";

    #[test]
    fn only_a_whole_answer_names_a_caller() {
        assert_eq!(caller(ANSWER), Some("arn:aws:sts::1:assumed-role/r/s"));
        assert_eq!(caller(&ANSWER.replace("GetCallerIdentityResult", "AssumeRoleResult")), None);
        assert_eq!(caller(&ANSWER.replace("</Arn>", "</Arn><Arn>x</Arn>")), None);
        assert_eq!(caller(&ANSWER.replace("role/r/s", "role/r/&lt;s")), None);
        assert_eq!(caller(""), None);
    }

    #[test]
    fn what_is_no_judgement_about_the_proof_passes_by_itself() {
        let error = |code: &str| format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>");
        let is_refused = |status: u16, text: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            matches!(refusal(status, text), IdentityError::Refused(_))
        };
        assert!(is_refused(403, &error("SignatureDoesNotMatch")) && is_refused(400, &error("ExpiredToken")));
        assert!(is_refused(403, "no XML"));
        for (status, text) in
            [(400, error("Throttling")), (429, String::new()), (408, String::new()), (503, error("x"))]
        {
            assert!(!is_refused(status, &text), "{status} {text}");
        }
        assert!(!is_refused(301, "") && !is_refused(307, &error("SignatureDoesNotMatch")));
    }

    #[test]
    fn an_endpoint_is_encrypted_or_on_this_machine() {
        for (endpoint, is_fine) in [
            ("https://vpce-1.sts.eu-central-1.vpce.amazonaws.com", true),
            ("http://127.0.0.1:9", true),
            ("http://192.0.2.1", false),
            ("sts", false),
        ] {
            let _ = rustls::crypto::ring::default_provider().install_default();
            assert_eq!(StsCallers::new("eu-central-1", Some(endpoint)).is_ok(), is_fine, "{endpoint}");
        }
        let china = StsCallers::new("cn-north-1", None).expect("fine");
        assert_eq!(china.endpoint.as_str(), "https://sts.cn-north-1.amazonaws.com.cn/");
    }
}
