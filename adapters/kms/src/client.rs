//! One signed call to KMS.

use std::time::Duration;

use aws_credential_types::provider::{ProvideCredentials as _, SharedCredentialsProvider};
use aws_sigv4::http_request::{SignableBody, SignableRequest, SigningSettings, sign};
use aws_sigv4::sign::v4::SigningParams;
use chrono::Utc;
use plumbline_core::ports::SignerError;
use reqwest::{Response, Url};
use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::answers::refusal;

/// The whole call; the sweep tries again.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 64 << 10;
const CONTENT_TYPE: &str = "application/x-amz-json-1.1";
const SERVICE: &str = "kms";

/// The endpoint cannot be used.
#[derive(Debug, thiserror::Error)]
#[error("the address of KMS {0}")]
pub struct EndpointError(&'static str);

pub(crate) struct Client {
    http: reqwest::Client,
    endpoint: Url,
    region: String,
    credentials: SharedCredentialsProvider,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Client").field("endpoint", &self.endpoint.as_str()).finish_non_exhaustive()
    }
}

impl Client {
    pub(crate) fn new(
        region: &str,
        endpoint: Option<&str>,
        credentials: SharedCredentialsProvider,
    ) -> Result<Self, EndpointError> {
        let domain = if region.starts_with("cn-") { "amazonaws.com.cn" } else { "amazonaws.com" };
        let regional = format!("https://{SERVICE}.{region}.{domain}/");
        let endpoint = Url::parse(endpoint.unwrap_or(&regional))
            .map_err(|_| EndpointError("must be an address with https://"))?;
        let is_local = matches!(endpoint.host_str(), Some("127.0.0.1" | "localhost" | "[::1]"));
        if endpoint.scheme() != "https" && !(endpoint.scheme() == "http" && is_local) {
            return Err(EndpointError("must begin with https://"));
        }
        let mut http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")));
        if is_local {
            http = http.no_proxy();
        }
        let http = http.build().map_err(|_| EndpointError("cannot be called: there is no HTTP client"))?;
        Ok(Self { http, endpoint, region: region.to_owned(), credentials })
    }

    pub(crate) async fn call<T: DeserializeOwned>(
        &self,
        operation: &'static str,
        request: &Value,
    ) -> Result<T, SignerError> {
        let body = request.to_string();
        let target = format!("TrentService.{operation}");
        let headers = [("content-type", CONTENT_TYPE), ("x-amz-target", target.as_str())];
        let mut call = self.http.post(self.endpoint.clone());
        for (name, value) in headers {
            call = call.header(name, value);
        }
        for (name, value) in self.signature(&headers, &body).await? {
            call = call.header(name, value);
        }
        let answer = call.body(body).send().await.map_err(away)?;
        let status = answer.status();
        let text = read(answer).await?;
        if !status.is_success() {
            return Err(refusal(status, &text));
        }
        serde_json::from_str(&text)
            .map_err(|_| SignerError::Unavailable("the answer of KMS cannot be read".into()))
    }

    /// The headers that prove who calls.
    async fn signature(
        &self,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Result<Vec<(String, String)>, SignerError> {
        let credentials = self.credentials.provide_credentials().await;
        let identity = credentials
            .map_err(|_| SignerError::Unavailable("there are no credentials of AWS at the moment".into()))?
            .into();
        let unsignable = || SignerError::Refused("the request cannot be signed".into());
        let params = SigningParams::builder()
            .identity(&identity)
            .region(&self.region)
            .name(SERVICE)
            .time(Utc::now().into())
            .settings(SigningSettings::default())
            .build()
            .map_err(|_| unsignable())?
            .into();
        let body = SignableBody::Bytes(body.as_bytes());
        let request = SignableRequest::new("POST", self.endpoint.as_str(), headers.iter().copied(), body)
            .map_err(|_| unsignable())?;
        let (instructions, _) = sign(request, &params).map_err(|_| unsignable())?.into_parts();
        Ok(instructions.headers().map(|(name, value)| (name.to_owned(), value.to_owned())).collect())
    }
}

async fn read(mut answer: Response) -> Result<String, SignerError> {
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(away)? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(SignerError::Unavailable("the answer of KMS is too long".into()));
        }
    }
    String::from_utf8(bytes).map_err(|_| SignerError::Unavailable("the answer of KMS cannot be read".into()))
}

fn away(error: reqwest::Error) -> SignerError {
    SignerError::Unavailable(error.without_url().to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_endpoint_is_encrypted_or_on_this_machine() {
        let _ = rustls::crypto::ring::default_provider().install_default();
        let client = |region, endpoint| {
            let credentials = aws_credential_types::Credentials::new("id", "secret", None, None, "tests");
            Client::new(region, endpoint, SharedCredentialsProvider::new(credentials))
        };
        for (endpoint, is_fine) in [
            ("https://vpce-1.kms.eu-central-1.vpce.amazonaws.com", true),
            ("http://127.0.0.1:9", true),
            ("http://192.0.2.1", false),
            ("kms", false),
        ] {
            assert_eq!(client("eu-central-1", Some(endpoint)).is_ok(), is_fine, "{endpoint}");
        }
        let china = client("cn-north-1", None).expect("fine");
        assert_eq!(china.endpoint.as_str(), "https://kms.cn-north-1.amazonaws.com.cn/");
        assert!(!format!("{china:?}").contains("secret"));
    }
}
