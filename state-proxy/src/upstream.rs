//! What stands behind the proxy: `callback` for a run, `tfstate` for a person. Both serve the same paths below an
//! address of their own, and differ in who proves what.

use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use reqwest::{Method, RequestBuilder, Response, StatusCode};
use serde_json::Value;

/// One small call.
const CALL_TIMEOUT: Duration = Duration::from_secs(60);
const SHOWN_CHARS_MAX: usize = 300;

/// One call of the state's protocol, which may be sent again and again.
#[derive(Clone, Debug)]
pub struct Call {
    /// Its method.
    pub method: Method,
    /// What follows the state's own address: empty, `/lock`, `?ID=…`, `/uploads`…
    pub path: String,
    /// JSON.
    body: Option<Bytes>,
    content_md5: Option<String>,
    timeout: Duration,
}

impl Call {
    pub(crate) fn new(method: Method, path: impl Into<String>) -> Self {
        Self { method, path: path.into(), body: None, content_md5: None, timeout: CALL_TIMEOUT }
    }

    pub(crate) fn body(mut self, json: Bytes) -> Self {
        self.body = Some(json);
        self
    }

    pub(crate) fn content_md5(mut self, base64: String) -> Self {
        self.content_md5 = Some(base64);
        self
    }

    pub(crate) fn timeout(mut self, timeout: Duration) -> Self {
        self.timeout = timeout;
        self
    }

    /// Writes all but method, address and credentials into a request.
    pub fn fill(&self, mut request: RequestBuilder) -> RequestBuilder {
        if let Some(body) = &self.body {
            request = request.header("content-type", "application/json").body(body.clone());
        }
        if let Some(md5) = &self.content_md5 {
            request = request.header("content-md5", md5);
        }
        request.timeout(self.timeout)
    }
}

/// An answer that will not change by asking again.
#[derive(Clone, Debug)]
pub struct Refusal {
    /// HTTP status.
    pub status: StatusCode,
    /// The body as it came.
    pub body: Bytes,
}

impl Refusal {
    /// Whether the state that was sent is kept all the same.
    pub(crate) fn is_quarantine(&self) -> bool {
        let said = serde_json::from_slice::<Value>(&self.body).ok();
        let kind = said.as_ref().and_then(|said| said.get("type")?.as_str());
        kind.is_some_and(|kind| kind.ends_with(":state-quarantined"))
    }

    /// Why, in the control plane's own words.
    pub fn reason(&self) -> String {
        let said = serde_json::from_slice::<Value>(&self.body).ok();
        let detail = said.as_ref().and_then(|said| said.get("detail")?.as_str());
        let text = detail.map_or_else(|| String::from_utf8_lossy(&self.body).into_owned(), str::to_owned);
        text.chars().take(SHOWN_CHARS_MAX).collect()
    }
}

/// Whether the same call may have another answer later.
pub fn is_passing(status: StatusCode) -> bool {
    // 424: the object store is missing for a moment; what is not stored yet must not be thrown away.
    let passing = [StatusCode::TOO_MANY_REQUESTS, StatusCode::REQUEST_TIMEOUT, StatusCode::FAILED_DEPENDENCY];
    status.is_server_error() || passing.contains(&status)
}

/// There was no answer; there may be one later.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Away(pub String);

/// The way to the state of one workspace.
#[async_trait]
pub trait Upstream: Send + Sync {
    /// Sends a call until there is an answer to work with, or until this upstream's own patience ends. A redirect is an
    /// answer.
    async fn send(&self, call: &Call) -> Result<Result<Response, Refusal>, Away>;

    /// A client without credentials, for signed URLs.
    fn http(&self) -> &reqwest::Client;

    /// Whether bytes of a state may go to and come from this address that the control plane named.
    fn trusts(&self, url: &str) -> bool;
}
