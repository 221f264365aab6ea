//! Fetching the public keys of an issuer, as `outbound` does it.
//!
//! The issuer was named by an admin, so its addresses are checked and pinned, and redirects are refused.

use std::time::Duration;

use jsonwebtoken::jwk::JwkSet;
use serde::Deserialize;
use serde_json::{Value, json};
use url::Url;

use super::store;
use crate::Deps;
use crate::adapters::web::{self, WebError};
use crate::tasks::{ClaimedTask, FailedAttempt};

/// Both calls.
const TIMEOUT: Duration = Duration::from_secs(5);
/// Longest answer that is read.
const ANSWER_BYTES_MAX: usize = 256 << 10;
/// Keys that an issuer may publish at once.
const KEYS_MAX: usize = 100;

#[derive(Deserialize)]
struct Payload {
    issuer: String,
}

/// The part of an issuer's discovery document that is needed.
#[derive(Deserialize)]
struct Discovery {
    issuer: String,
    jwks_uri: String,
}

/// Fetches and keeps the keys. The result says how many there are.
pub async fn fetch_keys(deps: &Deps, task: &ClaimedTask) -> Result<Value, FailedAttempt> {
    let Payload { issuer } = serde_json::from_value(task.payload.clone())
        .map_err(|_| FailedAttempt::Permanent("the task names no issuer".into()))?;
    let allow_private = deps.allow_private_addresses;
    let address = format!("{}/.well-known/openid-configuration", issuer.trim_end_matches('/'));
    let discovery: Discovery = read(&address, allow_private).await?;
    if discovery.issuer != issuer {
        return Err(FailedAttempt::Permanent("the issuer's document names another issuer".into()));
    }
    let keys: Value = read(&discovery.jwks_uri, allow_private).await?;
    let count = serde_json::from_value::<JwkSet>(keys.clone()).map(|keys| keys.keys.len());
    // The database takes every JSON text but one with this in it.
    let is_storable = !keys.to_string().contains("\\u0000");
    match count {
        Ok(count @ 1..=KEYS_MAX) if is_storable => {
            let conn = deps.db.conn().await.map_err(|error| FailedAttempt::Retry(error.to_string()))?;
            store::fetched(&conn, &issuer, &keys)
                .await
                .map_err(|error| FailedAttempt::Retry(error.to_string()))?;
            Ok(json!({ "issuer": issuer, "keys": count }))
        }
        _ => Err(FailedAttempt::Permanent("the issuer publishes no keys, or none that can be read".into())),
    }
}

async fn read<T: serde::de::DeserializeOwned>(
    address: &str,
    allow_private: bool,
) -> Result<T, FailedAttempt> {
    let failed = |error: WebError| match error {
        WebError::Refused(why) => FailedAttempt::Permanent(why),
        WebError::Unavailable(why) => FailedAttempt::Retry(why),
    };
    let url = Url::parse(address)
        .map_err(|_| FailedAttempt::Permanent("the issuer names an address that is none".into()))?;
    let bytes = web::get(&url, allow_private, TIMEOUT, ANSWER_BYTES_MAX).await.map_err(failed)?;
    serde_json::from_slice(&bytes)
        .map_err(|_| FailedAttempt::Permanent(format!("what lies at {address} cannot be read")))
}
