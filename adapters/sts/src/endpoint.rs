//! Where STS answers, and how it is called.

use std::time::Duration;

use reqwest::header::HOST;
use reqwest::{RequestBuilder, Response, StatusCode, Url};

use crate::xml::element;

/// One call; the caller tries again.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
/// Longest code of an error that is repeated.
const CODE_CHARS_MAX: usize = 64;
/// Codes of errors that are no judgement about a request, whatever their status.
const PASSING: [&str; 5] = [
    "Throttling",
    "ThrottlingException",
    "RequestLimitExceeded",
    "ServiceUnavailable",
    // It could not fetch an issuer's keys.
    "IDPCommunicationError",
];
const SERVICE: &str = "sts";

/// The endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct EndpointError(String);

/// The service of a region.
#[derive(Clone, Debug)]
pub(crate) struct Endpoint {
    http: reqwest::Client,
    url: Url,
    host: String,
}

/// What STS said.
pub(crate) enum Answer {
    /// What was asked for.
    Fine(String),
    /// No, now and later.
    Refused(Refusal),
    /// Nothing that could be judged by.
    Unavailable(String),
}

/// A refusal.
pub(crate) struct Refusal {
    /// AWS's word for it, and the status.
    pub(crate) said: String,
    /// AWS's sentence, as it came.
    pub(crate) text: String,
}

/// The regional service's name, which a signature covers.
pub(crate) fn host(region: &str) -> String {
    let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
    format!("{SERVICE}.{region}.{domain}")
}

impl Endpoint {
    /// The service of a region; `endpoint` is another address for it, such as that of a VPC endpoint. The name that is
    /// signed stays the region's. The default of rustls must be installed.
    pub(crate) fn new(region: &str, endpoint: Option<&str>) -> Result<Self, EndpointError> {
        let host = host(region);
        let regional = format!("https://{host}");
        let url = Url::parse(endpoint.unwrap_or(&regional))
            .map_err(|_| EndpointError("must be an address with https://".into()))?;
        let is_local = matches!(url.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if url.scheme() != "https" && !(url.scheme() == "http" && is_local) {
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
        Ok(Self { http, url, host })
    }

    /// The name that a signature covers.
    pub(crate) fn host(&self) -> &str {
        &self.host
    }

    /// A call, still without its other headers and its body.
    pub(crate) fn post(&self) -> RequestBuilder {
        self.http.post(self.url.clone()).header(HOST, &self.host)
    }
}

/// Sends a call and sorts what comes back.
pub(crate) async fn send(request: RequestBuilder) -> Answer {
    let away = |error: reqwest::Error| Answer::Unavailable(error.without_url().to_string());
    let answer = match request.send().await {
        Ok(answer) => answer,
        Err(error) => return away(error),
    };
    let status = answer.status();
    match read(answer).await {
        Ok(text) if status == StatusCode::OK => Answer::Fine(text),
        Ok(text) => sort(status, text),
        Err(why) => Answer::Unavailable(why),
    }
}

async fn read(mut answer: Response) -> Result<String, String> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| error.without_url().to_string())? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err("the answer of STS is too long".into());
        }
    }
    String::from_utf8(bytes).map_err(|_| "the answer of STS cannot be read".into())
}

/// Only 4xx is about the request. A redirect is none: it is not followed, for STS has nowhere to send us.
fn sort(status: StatusCode, text: String) -> Answer {
    let code = element(&text, "Code").filter(|code| {
        code.len() <= CODE_CHARS_MAX && code.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'.')
    });
    let is_passing = [StatusCode::REQUEST_TIMEOUT, StatusCode::TOO_MANY_REQUESTS].contains(&status)
        || code.is_some_and(|code| PASSING.contains(&code));
    let said = code.map_or_else(|| status.to_string(), |code| format!("{code} ({status})"));
    if status.is_client_error() && !is_passing {
        Answer::Refused(Refusal { said, text })
    } else {
        Answer::Unavailable(format!("STS answered {said}"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_judgement_about_a_request_passes_by_itself() {
        let error = |code: &str| format!("<ErrorResponse><Error><Code>{code}</Code></Error></ErrorResponse>");
        let is_refused = |status: u16, text: &str| {
            let status = StatusCode::from_u16(status).expect("a status");
            matches!(sort(status, text.into()), Answer::Refused(_))
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
            assert_eq!(Endpoint::new("eu-central-1", Some(endpoint)).is_ok(), is_fine, "{endpoint}");
        }
        let china = Endpoint::new("cn-north-1", None).expect("fine");
        assert_eq!(china.url.as_str(), "https://sts.cn-north-1.amazonaws.com.cn/");
    }
}
