//! Reading documents at addresses that a tenant chose.
//!
//! A host's addresses are checked and pinned before the call, so that its name cannot mean another machine a moment
//! later; redirects are refused, and answers are bounded in size and time.

use std::net::SocketAddr;
use std::time::Duration;

use bytes::Bytes;
use reqwest::StatusCode;
use url::Url;

use crate::workspaces::may_reach;

/// Why there is no document. The texts are for people and hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WebError {
    /// Asking again will give the same.
    #[error("{0}")]
    Refused(String),
    /// Asking again may work.
    #[error("{0}")]
    Unavailable(String),
}

/// The document at an address, at most `bytes_max` long. Without encryption only where private addresses are allowed.
pub async fn get(
    url: &Url,
    allow_private: bool,
    timeout: Duration,
    bytes_max: usize,
) -> Result<Bytes, WebError> {
    let host = url.host_str().unwrap_or_default();
    if url.scheme() != "https" && !(allow_private && url.scheme() == "http") {
        return Err(WebError::Refused(format!("{host} is not asked without encryption")));
    }
    let addresses = resolve(url, allow_private, timeout).await?;
    // The provider can only be installed once; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(timeout)
        .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")))
        .resolve_to_addrs(host, &addresses)
        .build()
        .map_err(|_| WebError::Unavailable("no HTTP client could be made".into()))?;
    let mut answer = client.get(url.clone()).send().await.map_err(|_| away(host))?;
    match answer.status() {
        status if status.is_success() => {}
        status if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS => {
            return Err(WebError::Unavailable(format!("{host} says {status}")));
        }
        status => return Err(WebError::Refused(format!("{host} says {status}"))),
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|_| away(host))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > bytes_max {
            return Err(WebError::Refused(format!("{host} answers more than {bytes_max} bytes")));
        }
    }
    Ok(bytes.into())
}

async fn resolve(url: &Url, allow_private: bool, timeout: Duration) -> Result<Vec<SocketAddr>, WebError> {
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    let lookup = tokio::time::timeout(timeout, tokio::net::lookup_host((name, port))).await;
    let Ok(Ok(found)) = lookup else { return Err(away(host)) };
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(away(host));
    }
    if addresses.iter().all(|address| may_reach(address.ip(), allow_private)) {
        Ok(addresses)
    } else {
        Err(WebError::Refused(format!("the host {host} is at an address that may not be reached")))
    }
}

fn away(host: &str) -> WebError {
    WebError::Unavailable(format!("{host} cannot be reached"))
}
