//! The stored state, into a file.

use std::path::Path;
use std::time::Duration;

use plumbline_core::protocol::Presigned;
use reqwest::{Method, StatusCode, header};

use crate::transfers;
use crate::upstream::{Call, Refusal, Upstream};

const READ_TIMEOUT: Duration = Duration::from_secs(900);

/// Why there is no state to read.
#[derive(Debug, thiserror::Error)]
pub enum ReadError {
    /// For good.
    #[error("reading the state was refused with {}: {}", .0.status, .0.reason())]
    Refused(Refusal),
    /// It may work another time.
    #[error("the state could not be read: {0}")]
    Passing(String),
}

/// Downloads the state. `false` if there is none.
pub async fn download(upstream: &dyn Upstream, to: &Path) -> Result<bool, ReadError> {
    let call = Call::new(Method::GET, "").timeout(READ_TIMEOUT);
    let answer = upstream.send(&call).await.map_err(|away| ReadError::Passing(away.to_string()))?;
    let response = answer.map_err(ReadError::Refused)?;
    if response.status() == StatusCode::NO_CONTENT {
        return Ok(false);
    }
    if response.status().is_redirection() {
        let url = response.headers().get(header::LOCATION).and_then(|url| url.to_str().ok());
        let url = url
            .filter(|url| upstream.trusts(url))
            .ok_or_else(|| ReadError::Passing("a redirect to nowhere that can be followed".into()))?;
        let signed = Presigned { method: "GET".into(), url: url.to_owned(), headers: Default::default() };
        transfers::get(upstream.http(), &signed, to).await.map_err(ReadError::Passing)?;
    } else {
        transfers::save(response, to).await.map_err(ReadError::Passing)?;
    }
    Ok(std::fs::metadata(to).is_ok_and(|meta| meta.len() > 0))
}
