//! Asking at addresses that a tenant chose.
//!
//! A host's addresses are checked and pinned before the call, so that its name cannot mean another machine a moment
//! later; redirects are refused, and answers are bounded in size and time. Nothing of an answer or of what was sent is in
//! an error.

mod tls;

use std::error::Error as _;
use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use reqwest::header::{CONTENT_TYPE, HeaderName, HeaderValue};
use reqwest::{ClientBuilder, Method, StatusCode};
use url::Url;

use crate::secrets::SecretText;
use crate::workspaces::may_reach;

pub use tls::Trust;

/// Why there is no answer. The texts are for people and hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// Asking again will give the same.
    #[error("{0}")]
    Refused(String),
    /// Asking again may work.
    #[error("{0}")]
    Unavailable(String),
}

/// The address of something below another one. Parts are escaped.
pub fn below(base: &str, parts: &[&str]) -> Result<Url, WebError> {
    let wrong = || WebError::Refused("the address of the service is none".into());
    let mut url = Url::parse(base).map_err(|_| wrong())?;
    url.path_segments_mut().map_err(|()| wrong())?.pop_if_empty().extend(parts);
    Ok(url)
}

/// How far a call may go.
#[derive(Clone, Copy, Debug)]
pub struct Bounds {
    /// Whether the address may be private, and the call without encryption: on one machine.
    pub allow_private: bool,
    /// For all of it.
    pub timeout: Duration,
    /// Longest answer that is read.
    pub bytes_max: usize,
}

/// What is asked.
#[derive(Debug)]
pub struct Question<'a> {
    url: &'a Url,
    headers: Vec<(HeaderName, SecretText)>,
    body: Option<(&'static str, SecretText)>,
    trust: Trust,
}

impl<'a> Question<'a> {
    /// The document at an address.
    pub fn get(url: &'a Url) -> Self {
        Self { url, headers: Vec::new(), body: None, trust: Trust::default() }
    }

    /// A form.
    pub fn form(url: &'a Url, fields: &[(&str, &str)]) -> Self {
        let text = url::form_urlencoded::Serializer::new(String::new()).extend_pairs(fields).finish();
        Self { body: Some(("application/x-www-form-urlencoded", text.into())), ..Self::get(url) }
    }

    /// JSON.
    pub fn json(url: &'a Url, body: &serde_json::Value) -> Self {
        Self { body: Some(("application/json", body.to_string().into())), ..Self::get(url) }
    }

    /// One more header, which nobody logs.
    pub fn header(mut self, name: &'static str, value: SecretText) -> Self {
        self.headers.push((HeaderName::from_static(name), value));
        self
    }

    /// A token that lets whoever has it in.
    pub fn bearer(self, token: &str) -> Self {
        self.header("authorization", SecretText::new(format!("Bearer {token}")))
    }

    /// Whose certificate the host shows, and ours.
    pub fn trusting(mut self, trust: Trust) -> Self {
        self.trust = trust;
        self
    }
}

/// What came back: neither a redirect nor a failure of the host's own.
#[derive(Clone, PartialEq, Eq)]
pub struct Answer {
    /// Success, or a refusal.
    pub status: StatusCode,
    /// All of it.
    pub body: Bytes,
}

impl std::fmt::Debug for Answer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Answer({}, {} bytes)", self.status, self.body.len())
    }
}

/// The document at an address, at most `bytes_max` long. Without encryption only where private addresses are allowed.
pub async fn get(
    url: &Url,
    allow_private: bool,
    timeout: Duration,
    bytes_max: usize,
) -> Result<Bytes, WebError> {
    let host = url.host_str().unwrap_or_default();
    match ask(Question::get(url), Bounds { allow_private, timeout, bytes_max }).await? {
        Answer { status, body } if status.is_success() => Ok(body),
        Answer { status, .. } => Err(WebError::Refused(format!("{host} says {status}"))),
    }
}

/// Asks once.
pub async fn ask(question: Question<'_>, bounds: Bounds) -> Result<Answer, WebError> {
    let url = question.url;
    let host = url.host_str().unwrap_or_default();
    if url.scheme() != "https" && !(bounds.allow_private && url.scheme() == "http") {
        return Err(WebError::Refused(format!("{host} is not asked without encryption")));
    }
    let addresses = resolve(url, bounds).await?;
    // The provider can only be installed once; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(bounds.timeout)
        .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")));
    let (client, address) = question.trust.apply(client, url, &addresses)?;
    let mut answer = send(client, &question, address).await.map_err(|error| said(host, &error))?;
    match answer.status() {
        status if status.is_redirection() => {
            return Err(WebError::Refused(format!(
                "{host} sends callers elsewhere ({status}), and is not followed"
            )));
        }
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(WebError::Unavailable(format!("{host} says {status}")));
        }
        _ => {}
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|error| said(host, &error))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > bounds.bytes_max {
            return Err(WebError::Refused(format!("{host} answers more than {} bytes", bounds.bytes_max)));
        }
    }
    Ok(Answer { status: answer.status(), body: bytes.into() })
}

async fn send(
    client: ClientBuilder,
    question: &Question<'_>,
    address: Url,
) -> Result<reqwest::Response, reqwest::Error> {
    let method = if question.body.is_some() { Method::POST } else { Method::GET };
    let mut call = client.build()?.request(method, address);
    for (name, value) in &question.headers {
        // What cannot stand in a header is refused by the call itself.
        let mut header = match HeaderValue::from_str(value) {
            Ok(header) => header,
            Err(_) => HeaderValue::from_static(""),
        };
        header.set_sensitive(true);
        call = call.header(name, header);
    }
    if let Some((kind, body)) = &question.body {
        call = call.header(CONTENT_TYPE, *kind).body(body.expose().to_owned());
    }
    call.send().await
}

async fn resolve(url: &Url, bounds: Bounds) -> Result<Vec<SocketAddr>, WebError> {
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    let lookup = tokio::time::timeout(bounds.timeout, tokio::net::lookup_host((name, port))).await;
    let Ok(Ok(found)) = lookup else { return Err(away(host)) };
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(away(host));
    }
    if addresses.iter().all(|address| may_reach(address.ip(), bounds.allow_private)) {
        Ok(addresses)
    } else {
        Err(WebError::Refused(format!("the host {host} is at an address that may not be reached")))
    }
}

fn away(host: &str) -> WebError {
    WebError::Unavailable(format!("{host} cannot be reached"))
}

fn said(host: &str, error: &reqwest::Error) -> WebError {
    if error.is_timeout() {
        return WebError::Unavailable(format!("{host} does not answer in time"));
    }
    let mut cause = error.source();
    while let Some(one) = cause {
        if one
            .downcast_ref::<rustls::Error>()
            .is_some_and(|error| matches!(error, rustls::Error::InvalidCertificate(_)))
        {
            return WebError::Refused(format!("{host} shows a certificate that is not trusted"));
        }
        cause = match one.downcast_ref::<std::io::Error>() {
            Some(error) => error.get_ref().map(|inner| inner as &(dyn std::error::Error + 'static)),
            None => one.source(),
        };
    }
    away(host)
}
