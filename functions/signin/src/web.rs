//! Calls to the provider: encrypted, bounded in time and size, never redirected.
//!
//! The provider's addresses were named by a superadmin or by the provider's own document, so a private one is no reason
//! to refuse: companies run their provider inside. Only encrypted ones are asked, which no metadata service answers;
//! where everything is one machine, plain ones too.

use std::future::Future;
use std::pin::Pin;
use std::time::Duration;

use openidconnect::{AsyncHttpClient, HttpRequest, HttpResponse};
use plumbline_core::Deps;
use url::Url;

const TIMEOUT: Duration = Duration::from_secs(5);
const CONNECT_TIMEOUT: Duration = Duration::from_secs(3);
/// Longest answer that is read: documents and keys have some kilobytes.
const ANSWER_BYTES_MAX: usize = 512 << 10;

/// Why there is no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(crate) enum WebError {
    /// Asking again may work.
    #[error("it does not answer")]
    Away,
    /// Nobody would wait for that.
    #[error("its answer is longer than anybody would believe")]
    TooLong,
    /// Anybody on the way could read and change it.
    #[error("its address is not encrypted")]
    Plain,
}

/// The client of one process.
#[derive(Clone, Debug)]
pub(crate) struct Web {
    http: reqwest::Client,
    allow_plain: bool,
}

impl Web {
    pub(crate) fn new(deps: &Deps) -> Result<Self, WebError> {
        // The provider of cryptography can only be installed once; a second time changes nothing.
        let _ = rustls::crypto::ring::default_provider().install_default();
        let http = reqwest::Client::builder()
            .redirect(reqwest::redirect::Policy::none())
            .timeout(TIMEOUT)
            .connect_timeout(CONNECT_TIMEOUT)
            .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")))
            .build()
            .map_err(|_| WebError::Away)?;
        Ok(Self { http, allow_plain: deps.allow_private_addresses })
    }

    /// Whether an address may be asked, or a person be sent there.
    pub(crate) fn may_use(&self, url: &Url) -> bool {
        url.scheme() == "https" || (self.allow_plain && url.scheme() == "http")
    }

    /// Sends a request. Any status is an answer; one that says the provider is in trouble is none.
    pub(crate) async fn send(&self, request: HttpRequest) -> Result<HttpResponse, WebError> {
        let (parts, body) = request.into_parts();
        let url = Url::parse(&parts.uri.to_string()).map_err(|_| WebError::Plain)?;
        if !self.may_use(&url) {
            return Err(WebError::Plain);
        }
        let call = self.http.request(parts.method, url).headers(parts.headers).body(body);
        let mut answer = call.send().await.map_err(|_| WebError::Away)?;
        if answer.status().is_server_error() || answer.status() == http::StatusCode::TOO_MANY_REQUESTS {
            return Err(WebError::Away);
        }
        let mut bytes = Vec::new();
        while let Some(chunk) = answer.chunk().await.map_err(|_| WebError::Away)? {
            bytes.extend_from_slice(&chunk);
            if bytes.len() > ANSWER_BYTES_MAX {
                return Err(WebError::TooLong);
            }
        }
        let mut response = HttpResponse::new(bytes);
        *response.status_mut() = answer.status();
        *response.headers_mut() = answer.headers().clone();
        Ok(response)
    }
}

/// The library's calls go through it.
impl<'c> AsyncHttpClient<'c> for Web {
    type Error = WebError;
    type Future = Pin<Box<dyn Future<Output = Result<HttpResponse, WebError>> + Send + 'c>>;

    fn call(&'c self, request: HttpRequest) -> Self::Future {
        Box::pin(self.send(request))
    }
}
