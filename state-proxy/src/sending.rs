//! One body on its way to the control plane: in the request if it is small, else begin, upload, commit.

use std::path::Path;
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use plumbline_core::protocol::{StateUploadAnswer, StateUploadBegin, StateUploadCommit};
use reqwest::{Method, StatusCode};
use serde::Serialize;

use crate::digests::Digests;
use crate::facts;
use crate::pauses::Pauses;
use crate::transfers;
use crate::upstream::{Away, Call, Refusal, Upstream};

/// Larger bodies go through the object store.
const INLINE_BYTES_MAX: u64 = 1 << 20;
/// How often a body is sent to the object store, with a fresh URL each time, before it counts as away.
const TRIES: u32 = 4;
const PAUSE_MAX: Duration = Duration::from_secs(5);

/// Why a body is not the newest version.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsent {
    /// For good.
    #[error("{0}")]
    Refused(String),
    /// It is not the newest version, and the control plane keeps it all the same.
    #[error("{0}")]
    Quarantined(String),
    /// There was no answer.
    #[error("{0}")]
    Away(String),
}

impl From<Away> for Unsent {
    fn from(away: Away) -> Self {
        Self::Away(away.0)
    }
}

/// Sends a state of any size, under a lock or, where that is allowed, without one.
pub async fn send_file(
    upstream: &dyn Upstream,
    path: &Path,
    found: &Digests,
    lock_id: Option<&str>,
) -> Result<(), Unsent> {
    if found.size_bytes <= INLINE_BYTES_MAX {
        send_inline(upstream, path, found, lock_id).await
    } else {
        send_large(upstream, path, found, lock_id).await
    }
}

async fn send_inline(
    upstream: &dyn Upstream,
    path: &Path,
    found: &Digests,
    lock_id: Option<&str>,
) -> Result<(), Unsent> {
    let bytes = Bytes::from(std::fs::read(path).map_err(unreadable)?);
    let query = lock_id.map(|id| {
        let id: String = url::form_urlencoded::byte_serialize(id.as_bytes()).collect();
        format!("?ID={id}")
    });
    let call = Call::new(Method::PUT, query.unwrap_or_default());
    let call = call.body(bytes).content_md5(STANDARD.encode(found.md5));
    upstream.send(&call).await?.map(drop).map_err(|refusal| refused(&refusal))
}

async fn send_large(
    upstream: &dyn Upstream,
    path: &Path,
    found: &Digests,
    lock_id: Option<&str>,
) -> Result<(), Unsent> {
    let owned = path.to_owned();
    let facts = tokio::task::spawn_blocking(move || facts::read_written(&owned))
        .await
        .map_err(|error| Unsent::Refused(error.to_string()))?
        .map_err(unreadable)?;
    let begin = StateUploadBegin {
        lock_id: lock_id.map(str::to_owned),
        serial: facts.serial,
        lineage: facts.lineage,
        size_bytes: found.size_bytes,
        md5: hex::encode(found.md5),
        sha256: found.sha256,
        terraform_version: facts.terraform_version,
    };
    let begin = Call::new(Method::POST, "/uploads").body(json(&begin));
    let mut pauses = Pauses::up_to(PAUSE_MAX);
    let mut last = String::new();
    for attempt in 1..=TRIES {
        let answer = upstream.send(&begin).await?.map_err(|refusal| refused(&refusal))?;
        let answer: StateUploadAnswer =
            answer.json().await.map_err(|error| Unsent::Away(error.without_url().to_string()))?;
        if !upstream.trusts(&answer.request.url) {
            return Err(Unsent::Refused("the object store has an address that is not encrypted".into()));
        }
        match transfers::put(upstream.http(), &answer.request, path, found.size_bytes).await {
            Ok(()) => return commit(upstream, &answer).await,
            // The URL may have expired while the store was away: ask for another.
            Err(reason) => {
                tracing::warn!(%reason, "a state upload did not work, trying again");
                last = reason;
            }
        }
        if attempt < TRIES {
            pauses.pause().await;
        }
    }
    Err(Unsent::Away(last))
}

async fn commit(upstream: &dyn Upstream, upload: &StateUploadAnswer) -> Result<(), Unsent> {
    let path = format!("/uploads/{}/commit", upload.upload_id);
    let call = Call::new(Method::POST, path).body(Bytes::from_static(b"{}"));
    let answer = upstream.send(&call).await?.map_err(|refusal| refused(&refusal))?;
    match answer.json().await {
        Ok(StateUploadCommit::Accepted) => Ok(()),
        Ok(StateUploadCommit::Quarantined) => Err(Unsent::Quarantined(
            "the lock was lost, or the stored state has moved on; the state is kept in quarantine".into(),
        )),
        // The same commit once more answers the same.
        Err(error) => Err(Unsent::Away(error.without_url().to_string())),
    }
}

fn json(value: &impl Serialize) -> Bytes {
    serde_json::to_vec(value).expect("plain data is JSON").into()
}

fn unreadable(error: std::io::Error) -> Unsent {
    Unsent::Refused(format!("the state cannot be read: {error}"))
}

fn refused(refusal: &Refusal) -> Unsent {
    let text = refusal.reason();
    if refusal.is_quarantine() {
        return Unsent::Quarantined(text);
    }
    Unsent::Refused(match refusal.status {
        StatusCode::LOCKED => format!("the state was refused, somebody else holds its lock: {text}"),
        StatusCode::CONFLICT => format!("the state was refused: {text}"),
        status => format!("the state was refused with {status}: {text}"),
    })
}
