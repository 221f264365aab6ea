//! Artifacts on their way to and from the object store: begin, send to the signed URL, commit.

use std::path::Path;
use std::time::Duration;

use plumbline_core::digest::Sha256Digest;
use plumbline_core::protocol::{ArtifactKind, Presigned, UploadAnswer, UploadBegin};
use reqwest::{Method, RequestBuilder, StatusCode};
use tokio_util::io::ReaderStream;

use crate::callback::Callback;
use crate::error::StepError;
use crate::files::{Digests, digests};
use crate::pauses::Pauses;

/// One transfer of a large body.
const TRANSFER_TIMEOUT: Duration = Duration::from_secs(900);
/// Signed URLs live for a minute: each try asks for a fresh one.
const TRIES: u32 = 8;
const PAUSE_MAX: Duration = Duration::from_secs(10);

/// Uploads a file of ours and commits it.
pub(crate) async fn upload(
    callback: &Callback,
    kind: ArtifactKind,
    path: &Path,
) -> Result<Digests, StepError> {
    let found = digests(path).map_err(StepError::machine("an artifact cannot be read"))?;
    let begin = UploadBegin { kind, size_bytes: found.size_bytes, sha256: found.sha256 };
    let mut pauses = Pauses::up_to(PAUSE_MAX);
    for attempt in 1..=TRIES {
        let answer: UploadAnswer = callback.post("artifacts", &begin).await?;
        match put(callback, &answer.request, path, found.size_bytes).await {
            Ok(()) => {
                let commit = format!("artifacts/{}/commit", kind.as_str());
                callback.tell(Method::POST, &commit, &serde_json::json!({})).await?;
                return Ok(found);
            }
            Err(reason) => {
                tracing::warn!(artifact = kind.as_str(), attempt, %reason, "an upload did not work")
            }
        }
        pauses.pause().await;
    }
    Err(StepError::Transient(format!("the {} could not be uploaded", kind.as_str())))
}

/// Downloads an artifact and checks its digest. Returns whether there is one.
pub(crate) async fn download(
    callback: &Callback,
    kind: ArtifactKind,
    to: &Path,
    sha256: Sha256Digest,
) -> Result<(), StepError> {
    let name = kind.as_str();
    for attempt in 1..=TRIES {
        let answer: Option<UploadAnswer> = callback.find(&format!("artifacts/{name}")).await?;
        let answer =
            answer.ok_or_else(|| StepError::Permanent(format!("the {name} of the plan is not there")))?;
        match get(callback, &answer.request, to).await {
            Ok(()) => {
                let found = digests(to).map_err(StepError::machine("an artifact cannot be read"))?;
                if found.sha256 == sha256 {
                    return Ok(());
                }
                return Err(StepError::Permanent(format!("the {name} is not the one that was approved")));
            }
            Err(reason) => tracing::warn!(artifact = name, attempt, %reason, "a download did not work"),
        }
        tokio::time::sleep(Duration::from_millis(200) * attempt).await;
    }
    Err(StepError::Transient(format!("the {name} could not be downloaded")))
}

/// Sends a file to a signed URL.
pub(crate) async fn put(
    callback: &Callback,
    to: &Presigned,
    path: &Path,
    size_bytes: u64,
) -> Result<(), String> {
    let file = tokio::fs::File::open(path).await.map_err(|error| error.to_string())?;
    let mut request = signed(callback, to)?.body(reqwest::Body::wrap_stream(ReaderStream::new(file)));
    if !to.headers.keys().any(|name| name.eq_ignore_ascii_case("content-length")) {
        request = request.header("content-length", size_bytes);
    }
    let response = request.send().await.map_err(|error| error.without_url().to_string())?;
    if response.status().is_success() {
        Ok(())
    } else {
        Err(format!("the object store answered {}", response.status()))
    }
}

/// Reads a signed URL into a file.
pub(crate) async fn get(callback: &Callback, from: &Presigned, to: &Path) -> Result<(), String> {
    let response = signed(callback, from)?.send().await.map_err(|error| error.without_url().to_string())?;
    if response.status() != StatusCode::OK {
        return Err(format!("the object store answered {}", response.status()));
    }
    save(response, to).await
}

/// Writes a body to a file, piece by piece.
pub(crate) async fn save(mut response: reqwest::Response, to: &Path) -> Result<(), String> {
    use tokio::io::AsyncWriteExt as _;
    let mut file = tokio::fs::File::create(to).await.map_err(|error| error.to_string())?;
    while let Some(chunk) = response.chunk().await.map_err(|error| error.without_url().to_string())? {
        file.write_all(&chunk).await.map_err(|error| error.to_string())?;
    }
    file.flush().await.map_err(|error| error.to_string())
}

fn signed(callback: &Callback, request: &Presigned) -> Result<RequestBuilder, String> {
    let method = Method::from_bytes(request.method.as_bytes())
        .map_err(|_| "the signed method is not valid".to_owned())?;
    let mut builder = callback.http().request(method, &request.url).timeout(TRANSFER_TIMEOUT);
    for (name, value) in &request.headers {
        builder = builder.header(name, value);
    }
    Ok(builder)
}
