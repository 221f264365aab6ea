//! Calls over HTTP, and what a service says when it does not do as asked.

use std::error::Error;
use std::time::Duration;

use async_trait::async_trait;
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Request, StatusCode};
use http_body_util::{BodyExt as _, Limited};
use object_store::client::{
    HttpClient, HttpConnector, HttpError, HttpErrorKind, HttpRequest, HttpResponse, HttpService,
    ReqwestConnector,
};
use object_store::{BackoffConfig, ClientOptions, RetryConfig};
use plumbline_core::ports::BlobError;
use url::Url;

/// How often a call is made in all, if what went wrong passes by itself.
pub(crate) const TRIES: u32 = 4;
/// Before the second try; doubled for each further one.
const PAUSE: Duration = Duration::from_millis(100);
/// For a connection.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(5);
/// Between two pieces of an answer. There is no limit for the whole: objects may be large.
const READ_TIMEOUT: Duration = Duration::from_secs(30);
/// How long tries go on.
const RETRY_TIMEOUT: Duration = Duration::from_secs(60);
/// What is read of a refusal.
const REFUSAL_BYTES_MAX: usize = 64 << 10;
/// What is passed on of its message.
const REASON_CHARS_MAX: usize = 200;

/// Codes of a container or bucket that is not there, or not any more.
const MISSING: [&str; 4] =
    ["ContainerNotFound", "ContainerBeingDeleted", "ContainerDisabled", "NoSuchBucket"];

/// What a service said instead of doing it; or that it said nothing. Holds no address and nothing of what was sent:
/// addresses of uploads are secrets.
#[derive(Clone, Debug, thiserror::Error)]
#[error("{reason}")]
pub(crate) struct Fault {
    /// `None` if there was no answer.
    pub(crate) status: Option<u16>,
    code: Option<String>,
    reason: String,
}

impl Fault {
    fn lost(kind: HttpErrorKind) -> Self {
        let reason = match kind {
            HttpErrorKind::Connect => "no connection",
            HttpErrorKind::Timeout => "it did not answer in time",
            _ => "the connection broke off",
        };
        Self { status: None, code: None, reason: reason.into() }
    }

    /// Something went wrong that is nobody's refusal.
    pub(crate) fn strange(reason: &str) -> Self {
        Self { status: None, code: None, reason: reason.into() }
    }

    async fn read(answer: HttpResponse) -> Self {
        let status = answer.status().as_u16();
        let named = answer.headers().get("x-ms-error-code").and_then(|code| code.to_str().ok());
        let named = named.map(str::to_owned);
        let body = Limited::new(answer.into_body(), REFUSAL_BYTES_MAX).collect().await;
        let text = body.map(|body| String::from_utf8_lossy(&body.to_bytes()).into_owned());
        let (code, message) = said(&text.unwrap_or_default());
        let code = named.or(code);
        let reason = match (&code, message) {
            (Some(code), Some(message)) => format!("{code}: {message}"),
            (Some(text), None) => text.clone(),
            (None, Some(text)) => text,
            (None, None) => format!("it answered {status}"),
        };
        Self { status: Some(status), code, reason }
    }

    /// What a call of `object_store` failed of.
    pub(crate) fn of(error: &(dyn Error + 'static)) -> Self {
        let mut cause = Some(error);
        while let Some(error) = cause {
            if let Some(fault) = error.downcast_ref::<Self>() {
                return fault.clone();
            }
            cause = error.source();
        }
        // Its own texts may name addresses.
        Self::strange("an answer that makes no sense")
    }

    /// The same of a directory that gives tokens: it knows nothing of objects, whatever its answer's number.
    pub(crate) fn of_the_directory(self) -> Self {
        let status = if self.passes() { self.status } else { Some(401) };
        Self { status, code: None, reason: format!("no token: {}", self.reason) }
    }

    pub(crate) fn passes(&self) -> bool {
        matches!(self.status, None | Some(408 | 429 | 500..))
    }

    /// Sorted by what a caller does about it.
    pub(crate) fn into_blob(self, store: &str, key: &str) -> BlobError {
        match (self.code.as_deref(), self.status) {
            (Some(code), _) if MISSING.contains(&code) => {
                BlobError::StoreMissing { name: store.to_owned(), reason: self.reason }
            }
            (_, Some(404)) => BlobError::NotFound(key.to_owned()),
            (_, Some(409 | 412)) => BlobError::Conflict(key.to_owned()),
            _ if self.passes() => BlobError::Unavailable(self.reason),
            _ => BlobError::Refused(self.reason),
        }
    }
}

/// Code and message in XML of either service, in JSON of Google's, or in JSON of a directory.
fn said(text: &str) -> (Option<String>, Option<String>) {
    let element = |name: &str| {
        let (_, rest) = text.split_once(&format!("<{name}>"))?;
        rest.split_once(&format!("</{name}>")).map(|(inside, _)| inside.to_owned())
    };
    let (code, message) = match serde_json::from_str::<serde_json::Value>(text) {
        Ok(json) => {
            let string =
                |pointer: &str| json.pointer(pointer).and_then(|value| value.as_str()).map(str::to_owned);
            (
                string("/error").or_else(|| string("/error/errors/0/reason")),
                string("/error_description").or_else(|| string("/error/message")),
            )
        }
        Err(_) => (element("Code"), element("Message")),
    };
    let first_line =
        |text: String| text.lines().next().map(|line| line.chars().take(REASON_CHARS_MAX).collect());
    (code.and_then(first_line), message.and_then(first_line))
}

/// Makes clients whose failures are [`Fault`]s, for `object_store` and for ourselves.
#[derive(Debug)]
pub(crate) struct Telling;

impl HttpConnector for Telling {
    fn connect(&self, options: &ClientOptions) -> object_store::Result<HttpClient> {
        // Whoever runs this has one already; the first stands.
        let _ = rustls::crypto::ring::default_provider().install_default();
        Ok(HttpClient::new(Teller(ReqwestConnector::default().connect(options)?)))
    }
}

#[derive(Debug)]
struct Teller(HttpClient);

#[async_trait]
impl HttpService for Teller {
    async fn call(&self, request: HttpRequest) -> Result<HttpResponse, HttpError> {
        // `object_store` sends again what failed as a "request". All that is sent here may be sent twice.
        let answer = match self.0.execute(request).await {
            Ok(answer) => answer,
            Err(error) => return Err(HttpError::new(HttpErrorKind::Request, Fault::lost(error.kind()))),
        };
        // 308 is how Google says that it has a piece of an upload.
        if answer.status().is_success() || answer.status() == StatusCode::PERMANENT_REDIRECT {
            return Ok(answer);
        }
        let fault = Fault::read(answer).await;
        let kind = if fault.passes() { HttpErrorKind::Request } else { HttpErrorKind::Unknown };
        Err(HttpError::new(kind, fault))
    }
}

/// How clients are made. HTTP without TLS is only for an endpoint that says so: of a machine's own stand-ins.
pub(crate) fn options<'a>(endpoints: impl IntoIterator<Item = &'a str>) -> ClientOptions {
    let plain = endpoints.into_iter().any(|endpoint| endpoint.starts_with("http://"));
    ClientOptions::new()
        .with_allow_http(plain)
        .with_connect_timeout(CONNECT_TIMEOUT)
        .with_read_timeout(READ_TIMEOUT)
        .with_timeout_disabled()
}

pub(crate) fn retries() -> RetryConfig {
    RetryConfig {
        backoff: BackoffConfig { init_backoff: PAUSE, max_backoff: PAUSE * 20, base: 2.0 },
        max_retries: TRIES as usize - 1,
        retry_timeout: RETRY_TIMEOUT,
    }
}

/// Waits before the next try.
pub(crate) async fn pause(tries_made: u32) {
    tokio::time::sleep(PAUSE * 2_u32.pow(tries_made.saturating_sub(1))).await;
}

/// A call of our own, which may be made more than once.
#[derive(Clone)]
pub(crate) struct Call {
    method: Method,
    url: Url,
    headers: HeaderMap,
    body: Bytes,
}

impl Call {
    pub(crate) fn new(method: Method, url: Url) -> Self {
        Self { method, url, headers: HeaderMap::new(), body: Bytes::new() }
    }

    /// `value` is one of ours: visible characters.
    pub(crate) fn header(mut self, name: &'static str, value: &str) -> Self {
        if let Ok(value) = HeaderValue::from_str(value) {
            self.headers.insert(HeaderName::from_static(name), value);
        }
        self
    }

    pub(crate) fn body(mut self, body: Bytes) -> Self {
        self.body = body;
        self
    }

    pub(crate) fn request(&self) -> Result<HttpRequest, Fault> {
        let mut request = Request::new(self.body.clone().into());
        *request.method_mut() = self.method.clone();
        *request.uri_mut() =
            self.url.as_str().parse().map_err(|_| Fault::strange("an address that is none"))?;
        *request.headers_mut() = self.headers.clone();
        request.headers_mut().insert(http::header::CONTENT_LENGTH, self.body.len().into());
        Ok(request)
    }
}

/// What a call of our own brought.
#[derive(Debug)]
pub(crate) struct Answer {
    pub(crate) status: StatusCode,
    pub(crate) headers: HeaderMap,
}

/// One try. The answer's body is read so that the connection can be used again, and left.
pub(crate) async fn once(client: &HttpClient, request: HttpRequest) -> Result<Answer, Fault> {
    let answer = client.execute(request).await.map_err(|error| Fault::of(&error))?;
    let (parts, body) = answer.into_parts();
    let _ = Limited::new(body, REFUSAL_BYTES_MAX).collect().await;
    Ok(Answer { status: parts.status, headers: parts.headers })
}
