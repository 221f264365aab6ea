//! Installation tokens of GitHub Apps: made at use by whoever runs Git, good for an hour, kept nowhere.
//!
//! The API that the credential names is asked, and no other: its addresses are checked and pinned, redirects refused.

use std::net::SocketAddr;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::StatusCode;
use reqwest::header::{ACCEPT, AUTHORIZATION, HeaderValue};
use ring::signature::{RSA_PKCS1_SHA256, RsaKeyPair};
use serde::Deserialize;
use serde_json::json;
use url::Url;

use super::app_keys::{self, Layout};
use super::model::AppKey;
use crate::workspaces::may_reach;

/// What goes beside an installation token.
pub const USERNAME: &str = "x-access-token";
/// The whole call.
const TIMEOUT: Duration = Duration::from_secs(10);
/// GitHub allows ten minutes; clocks differ.
const GOOD_FOR_SECONDS: u64 = 9 * 60;
const BACKDATED_SECONDS: u64 = 60;
const ANSWER_BYTES_MAX: usize = 64 << 10;
const TOKEN_BYTES_MAX: usize = 4096;

/// A token. Shown to nobody.
#[derive(Clone)]
pub struct InstallationToken(String);

impl std::fmt::Debug for InstallationToken {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("InstallationToken(..)")
    }
}

impl InstallationToken {
    /// The token itself.
    pub fn into_text(self) -> String {
        self.0
    }
}

/// Why there is no token. The texts are for people and hold no secrets.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum AppTokenError {
    /// Asking again will give the same.
    #[error("{0}")]
    Refused(String),
    /// Asking again may work.
    #[error("{0}")]
    Unavailable(String),
}

/// Makes a token that may read the installation's repositories.
pub async fn mint(app: &AppKey, allow_private: bool) -> Result<InstallationToken, AppTokenError> {
    let refused = |why: &str| AppTokenError::Refused(format!("the GitHub App {why}"));
    let url = Url::parse(&app.api_url).map_err(|_| refused("has an API address that is not one"))?;
    let addresses = resolve(&url, allow_private).await?;
    let host = url.host_str().unwrap_or_default();
    // The provider can only be installed once; a second time changes nothing.
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .redirect(reqwest::redirect::Policy::none())
        .no_proxy()
        .timeout(TIMEOUT)
        .user_agent(concat!("plumbline/", env!("CARGO_PKG_VERSION")))
        .resolve_to_addrs(host, &addresses)
        .build()
        .map_err(|_| AppTokenError::Unavailable("no HTTP client could be made".into()))?;
    let assertion = assertion(app, now_seconds())?;
    let mut bearer = HeaderValue::from_str(&format!("Bearer {assertion}"))
        .map_err(|_| refused("has an id that cannot be sent"))?;
    bearer.set_sensitive(true);
    let path = format!("{}/app/installations/{}/access_tokens", app.api_url, app.installation_id);
    let answer = client
        .post(path)
        .header(AUTHORIZATION, bearer)
        .header(ACCEPT, "application/vnd.github+json")
        // No more than Git needs: whatever else the app may do stays with the app.
        .json(&json!({ "permissions": { "contents": "read" } }))
        .send()
        .await
        .map_err(|_| away(host))?;
    read(answer, host).await
}

/// Refuses a private key that cannot sign.
pub fn check_key(private_key: &str) -> Result<(), &'static str> {
    signer(private_key).map(|_| ())
}

fn signer(private_key: &str) -> Result<RsaKeyPair, &'static str> {
    let (layout, bytes) = app_keys::read(private_key)?;
    let key = match layout {
        Layout::Pkcs1 => RsaKeyPair::from_der(&bytes),
        Layout::Pkcs8 => RsaKeyPair::from_pkcs8(&bytes),
    };
    key.map_err(|_| "is not one that can sign: RSA with 2,048 to 4,096 bits is needed")
}

/// Since 1970.
#[expect(
    clippy::disallowed_methods,
    reason = "an API judges by its own clock, and only the machine's is near to it"
)]
fn now_seconds() -> u64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |since| since.as_secs())
}

/// The JWT by which the app proves itself.
fn assertion(app: &AppKey, now: u64) -> Result<String, AppTokenError> {
    let refused = |why: &str| AppTokenError::Refused(format!("the GitHub App's private key {why}"));
    let key = signer(&app.private_key).map_err(refused)?;
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({
        "iat": now.saturating_sub(BACKDATED_SECONDS),
        "exp": now + GOOD_FOR_SECONDS,
        "iss": app.app_id,
    });
    let signed = format!("{}.{}", part(json!({ "alg": "RS256", "typ": "JWT" })), part(claims));
    let mut signature = vec![0; key.public().modulus_len()];
    key.sign(&RSA_PKCS1_SHA256, &ring::rand::SystemRandom::new(), signed.as_bytes(), &mut signature)
        .map_err(|_| refused("could not sign"))?;
    Ok(format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature)))
}

async fn resolve(url: &Url, allow_private: bool) -> Result<Vec<SocketAddr>, AppTokenError> {
    let host = url.host_str().unwrap_or_default();
    let name = host.trim_matches(['[', ']']);
    let port = url.port_or_known_default().unwrap_or(443);
    let lookup = tokio::time::timeout(TIMEOUT, tokio::net::lookup_host((name, port))).await;
    let Ok(Ok(found)) = lookup else { return Err(away(host)) };
    let addresses: Vec<SocketAddr> = found.collect();
    if addresses.is_empty() {
        return Err(away(host));
    }
    if addresses.iter().all(|address| may_reach(address.ip(), allow_private)) {
        Ok(addresses)
    } else {
        Err(AppTokenError::Refused(format!("the host {host} is at an address that may not be reached")))
    }
}

fn away(host: &str) -> AppTokenError {
    AppTokenError::Unavailable(format!("the API of the GitHub App at {host} cannot be reached"))
}

#[derive(Deserialize)]
struct Answer {
    token: String,
}

async fn read(mut answer: reqwest::Response, host: &str) -> Result<InstallationToken, AppTokenError> {
    let status = answer.status();
    if status.is_server_error() || status == StatusCode::TOO_MANY_REQUESTS {
        return Err(AppTokenError::Unavailable(format!("the API of the GitHub App at {host} says {status}")));
    }
    if !status.is_success() {
        return Err(AppTokenError::Refused(format!(
            "the API at {host} refused the GitHub App ({status}): look at its id, installation and private key"
        )));
    }
    let mut bytes = Vec::new();
    while let Some(chunk) = answer.chunk().await.map_err(|_| away(host))? {
        bytes.extend_from_slice(&chunk);
        if bytes.len() > ANSWER_BYTES_MAX {
            return Err(AppTokenError::Refused(format!("the API at {host} answers too much")));
        }
    }
    let token = serde_json::from_slice::<Answer>(&bytes).map(|answer| answer.token).unwrap_or_default();
    let is_word = token.bytes().all(|b| b.is_ascii_graphic());
    if token.is_empty() || token.len() > TOKEN_BYTES_MAX || !is_word {
        return Err(AppTokenError::Refused(format!("the API at {host} gave no token")));
    }
    Ok(InstallationToken(token))
}
