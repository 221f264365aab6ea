//! How a service account proves itself to Google: a token that it has signed, traded for one of Google's.

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use chrono::{DateTime, Utc};
use serde_json::json;
use zeroize::Zeroizing;

use super::ServiceAccount;
use crate::issuer_keys::LocalTokenSigner;
use crate::ports::TokenSigner as _;
use crate::secrets::SecretText;

/// Whom it is for, wherever Google is asked.
const AUDIENCE: &str = "https://oauth2.googleapis.com/token";
/// It shows that the key works and is good for nothing more.
const SCOPE: &str = "https://www.googleapis.com/auth/cloud-platform.read-only";
const GOOD_FOR_SECONDS: i64 = 300;
/// Clocks differ.
const BACKDATED_SECONDS: i64 = 30;

/// What the account signs now, or why it cannot.
pub(in crate::cloud_accounts) async fn assertion(
    account: &ServiceAccount,
    now: DateTime<Utc>,
) -> Result<SecretText, &'static str> {
    let signer = signer(account.private_key()).ok_or("cannot be read: it is no RSA key in PEM")?;
    let part = |value: serde_json::Value| URL_SAFE_NO_PAD.encode(value.to_string());
    let claims = json!({
        "iss": account.client_email(), "scope": SCOPE, "aud": AUDIENCE,
        "iat": now.timestamp() - BACKDATED_SECONDS, "exp": now.timestamp() + GOOD_FOR_SECONDS,
    });
    let header = json!({ "alg": "RS256", "typ": "JWT", "kid": account.private_key_id() });
    let message = [part(header), part(claims)].join(".");
    let signature = signer.sign(message.as_bytes()).await.map_err(|_| "does not sign")?;
    Ok(SecretText::new([message, URL_SAFE_NO_PAD.encode(signature)].join(".")))
}

fn signer(pem: &str) -> Option<LocalTokenSigner> {
    let inside: Zeroizing<String> =
        Zeroizing::new(pem.lines().map(str::trim).filter(|line| !line.starts_with("-----")).collect());
    let der = Zeroizing::new(STANDARD.decode(inside.as_bytes()).ok()?);
    LocalTokenSigner::from_pkcs8(&der)
}
